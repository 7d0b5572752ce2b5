"""Switches of NNPACK. NNPACK is not used, so the switches have no effect."""
from gradus.backends._switch import KeptFlags


def is_available():
    """Returns False, because NNPACK is not used."""
    return False


class flags(KeptFlags):
    """Context manager that has no effect, because NNPACK is not used."""
