"""The functions of torch.mps. Apple's Metal is not supported. Queries therefore report that there is no Metal device, and functions that need a
device raise RuntimeError.

>>> is_available(), device_count()
(False, 0)
"""

__all__ = ["current_allocated_memory", "device_count", "empty_cache", "is_available", "manual_seed", "seed", "synchronize"]


def _refuse(what):
    raise RuntimeError(f"Cannot execute {what}() without MPS backend.")


def is_available():
    """Returns False, because Metal is not supported."""
    return False


def device_count():
    """Returns 0, because Metal is not supported."""
    return 0


def manual_seed(seed):
    """Does nothing, because there is no Metal device."""


def seed():
    """Does nothing, because there is no Metal device."""


def synchronize():
    """Raises RuntimeError, because there is no Metal device."""
    _refuse("deviceSynchronize")


def empty_cache():
    """Raises RuntimeError, because there is no Metal device."""
    _refuse("emptyCache")


def current_allocated_memory():
    """Raises RuntimeError, because there is no Metal device."""
    _refuse("getCurrentAllocatedMemory")
