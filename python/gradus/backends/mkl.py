"""Switches of Intel's MKL. MKL is not used, so the switches have no effect."""
from gradus.backends._switch import KeptFlags

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available():
    """Returns False, because MKL is not used."""
    return False


class verbose(KeptFlags):
    """Context manager that has no effect, because MKL is not used."""
