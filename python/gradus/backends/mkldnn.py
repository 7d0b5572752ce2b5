"""oneDNN: not used. The switches can be set and have no effect."""
from gradus.backends._switch import KeptFlags

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2
enabled = True
deterministic = False
allow_tf32 = True


def is_available():
    """False."""
    return False


class flags(KeptFlags):
    """A with block that changes nothing."""


class verbose(KeptFlags):
    """A with block that changes nothing."""
