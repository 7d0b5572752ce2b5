"""The functions of torch.accelerator. Gradus has no accelerator. Plug-ins can add devices, which programs choose by name.

>>> is_available(), device_count(), current_accelerator()
(False, 0, None)
"""

__all__ = ["current_accelerator", "current_device_index", "device_count", "is_available", "set_device_index", "synchronize"]


def _refuse():
    raise RuntimeError("Cannot access accelerator device when none is available.")


def is_available():
    """Returns False, because there is no accelerator."""
    return False


def device_count():
    """Returns 0, because there is no accelerator."""
    return 0


def current_accelerator(check_available=False):
    """Returns None, because there is no accelerator."""
    return None


def current_device_index():
    """Raises RuntimeError, because there is no accelerator."""
    _refuse()


def set_device_index(device):
    """Raises RuntimeError, because there is no accelerator to select."""
    _refuse()


def synchronize(device=None):
    """Raises RuntimeError, because there is no accelerator to wait for."""
    _refuse()
