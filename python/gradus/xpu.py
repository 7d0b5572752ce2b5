"""There are no XPUs here. Questions are answered; what would need a device raises AssertionError.

>>> is_available(), device_count()
(False, 0)
"""
from gradus.cuda import device_count, is_available, is_initialized

__all__ = ["current_device", "device_count", "empty_cache", "get_device_name", "is_available", "is_initialized", "manual_seed",
           "manual_seed_all", "set_device", "synchronize"]


def _refuse():
    raise AssertionError("Gradus not compiled with XPU enabled")


def manual_seed(seed):
    """Nothing: there is no generator to seed."""


def manual_seed_all(seed):
    """Nothing: there is no generator to seed."""


def empty_cache():
    """Nothing: no memory is cached on a device."""


def current_device():
    """Raises AssertionError."""
    _refuse()


def set_device(device):
    """Raises AssertionError."""
    _refuse()


def synchronize(device=None):
    """Raises AssertionError."""
    _refuse()


def get_device_name(device=None):
    """Raises AssertionError."""
    _refuse()
