"""Switches of Intel's MKL, which is not used."""
from gradus.backends._switch import KeptFlags

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available():
    """Returns False, because MKL is not used."""
    return False


class verbose(KeptFlags):
    """Context manager without effect."""
