"""The functions of torch.xpu. XPUs are not supported. Queries such as is_available() answer as on a machine without XPUs. Functions that need an XPU
raise AssertionError.

>>> is_available(), device_count()
(False, 0)
"""
from gradus.cuda import device_count, is_available, is_initialized

__all__ = ["current_device", "device_count", "empty_cache", "get_device_name", "is_available", "is_initialized", "manual_seed",
           "manual_seed_all", "set_device", "synchronize"]


def _refuse():
    raise AssertionError("Gradus not compiled with XPU enabled")


def manual_seed(seed):
    """Does nothing, because there is no XPU."""


def manual_seed_all(seed):
    """Does nothing, because there is no XPU."""


def empty_cache():
    """Does nothing, because there is no XPU."""


def current_device():
    """Raises AssertionError, because there is no XPU."""
    _refuse()


def set_device(device):
    """Raises AssertionError, because there is no XPU."""
    _refuse()


def synchronize(device=None):
    """Raises AssertionError, because there is no XPU."""
    _refuse()


def get_device_name(device=None):
    """Raises AssertionError, because there is no XPU."""
    _refuse()
