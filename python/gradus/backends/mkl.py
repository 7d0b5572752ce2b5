"""Intel's MKL: not used."""
from gradus.backends._switch import KeptFlags

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available():
    """False."""
    return False


class verbose(KeptFlags):
    """A with block that changes nothing."""
