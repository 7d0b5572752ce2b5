"""Apple's Metal: not there."""


def is_available():
    """False."""
    return False


def is_built():
    """False."""
    return False
