"""The older interface of the profiler. New programs use gradus.profiler."""
from gradus import _stand_ins, profiler
from gradus.profiler import record_function as record_function

__all__ = ["emit_itt", "emit_nvtx", "profile", "record_function"]


class profile(profiler.profile):
    """gradus.profiler.profile with the arguments of PyTorch's older profiler. Only `enabled` has an effect: if it is False, nothing is recorded."""

    def __init__(self, enabled=True, *, use_cuda=False, use_device=None, record_shapes=False, with_flops=False, profile_memory=False, with_stack=False, with_modules=False,
                 use_kineto=False, use_cpu=True, **others):
        super().__init__(schedule=None if enabled else lambda step: profiler.ProfilerAction.NONE)

    @property
    def function_events(self):
        """Returns all recorded events."""
        return self.events()

    def table(self, sort_by=None, row_limit=100, **options):
        """Returns the recorded events as a table in text form."""
        return self.events().table(sort_by, row_limit, **options)

    def __str__(self):
        return self.table()


class emit_nvtx:
    """Context manager without effect, because events are not sent to NVIDIA's tools."""

    def __init__(self, enabled=True, record_shapes=False):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None


class emit_itt(emit_nvtx):
    """Context manager without effect, because events are not sent to Intel's tools."""


__getattr__ = _stand_ins.of_module(__name__)
