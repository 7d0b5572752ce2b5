"""The profiler under its older name."""
from gradus import _stand_ins, profiler
from gradus.profiler import record_function as record_function

__all__ = ["emit_itt", "emit_nvtx", "profile", "record_function"]


class profile(profiler.profile):
    """gradus.profiler.profile with the older arguments. enabled: False records nothing."""

    def __init__(self, enabled=True, *, use_cuda=False, use_device=None, record_shapes=False, with_flops=False, profile_memory=False, with_stack=False, with_modules=False,
                 use_kineto=False, use_cpu=True, **others):
        super().__init__(schedule=None if enabled else lambda step: profiler.ProfilerAction.NONE)

    @property
    def function_events(self):
        """All events."""
        return self.events()

    def table(self, sort_by=None, row_limit=100, **options):
        """Returns the events as text."""
        return self.events().table(sort_by, row_limit, **options)

    def __str__(self):
        return self.table()


class emit_nvtx:
    """A context manager that does nothing: there are no tools of NVIDIA to tell."""

    def __init__(self, enabled=True, record_shapes=False):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None


class emit_itt(emit_nvtx):
    """A context manager that does nothing: there are no tools of Intel to tell."""


__getattr__ = _stand_ins.of_module(__name__)
