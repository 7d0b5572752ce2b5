"""Switches of NNPACK, which is not used."""
from gradus.backends._switch import KeptFlags


def is_available():
    """Returns False, because NNPACK is not used."""
    return False


class flags(KeptFlags):
    """Context manager without effect."""
