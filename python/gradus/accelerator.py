"""There is no accelerator here: only the cpu, and devices that plug-ins bring, which are chosen by name.

>>> is_available(), device_count(), current_accelerator()
(False, 0, None)
"""

__all__ = ["current_accelerator", "current_device_index", "device_count", "is_available", "set_device_index", "synchronize"]


def _refuse():
    raise RuntimeError("Cannot access accelerator device when none is available.")


def is_available():
    """False."""
    return False


def device_count():
    """Returns 0."""
    return 0


def current_accelerator(check_available=False):
    """None."""
    return None


def current_device_index():
    """Raises RuntimeError."""
    _refuse()


def set_device_index(device):
    """Raises RuntimeError."""
    _refuse()


def synchronize(device=None):
    """Raises RuntimeError."""
    _refuse()
