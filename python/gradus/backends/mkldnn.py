"""Switches of oneDNN. oneDNN is not used, so the switches have no effect."""
from gradus.backends._switch import KeptFlags

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2
enabled = True
deterministic = False
allow_tf32 = True


def is_available():
    """Returns False, because oneDNN is not used."""
    return False


class flags(KeptFlags):
    """Context manager that has no effect, because oneDNN is not used."""


class verbose(KeptFlags):
    """Context manager that has no effect, because oneDNN is not used."""
