"""NNPACK: not used."""
from gradus.backends._switch import KeptFlags


def is_available():
    """False."""
    return False


class flags(KeptFlags):
    """A with block that changes nothing."""
