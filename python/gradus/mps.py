"""There is no Metal here. Questions are answered; what would need a device raises RuntimeError.

>>> is_available(), device_count()
(False, 0)
"""

__all__ = ["current_allocated_memory", "device_count", "empty_cache", "is_available", "manual_seed", "seed", "synchronize"]


def _refuse(what):
    raise RuntimeError(f"Cannot execute {what}() without MPS backend.")


def is_available():
    """False."""
    return False


def device_count():
    """Returns 0."""
    return 0


def manual_seed(seed):
    """Nothing: there is no generator to seed."""


def seed():
    """Nothing: there is no generator to seed."""


def synchronize():
    """Raises RuntimeError."""
    _refuse("deviceSynchronize")


def empty_cache():
    """Raises RuntimeError."""
    _refuse("emptyCache")


def current_allocated_memory():
    """Raises RuntimeError."""
    _refuse("getCurrentAllocatedMemory")
