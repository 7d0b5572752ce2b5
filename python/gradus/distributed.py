"""Training in several processes: not there. Programs that ask first run as the one process they are.

>>> is_available(), is_initialized()
(False, False)
"""

__all__ = ["barrier", "destroy_process_group", "get_rank", "get_world_size", "init_process_group", "is_available", "is_initialized"]


def _refuse():
    raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")


def is_available():
    """False."""
    return False


def is_initialized():
    """False."""
    return False


def init_process_group(*args, **kwargs):
    """Raises RuntimeError."""
    raise RuntimeError("Gradus has no process groups: gradus.distributed.is_available() is False")


def destroy_process_group(group=None):
    """Raises ValueError: there is no group."""
    _refuse()


def get_rank(group=None):
    """Raises ValueError: there is no group."""
    _refuse()


def get_world_size(group=None):
    """Raises ValueError: there is no group."""
    _refuse()


def barrier(group=None, async_op=False, device_ids=None):
    """Raises ValueError: there is no group."""
    _refuse()
