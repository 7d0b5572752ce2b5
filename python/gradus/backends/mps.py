"""Queries about Apple's Metal, which is not supported."""


def is_available():
    """Returns False, because Metal is not supported."""
    return False


def is_built():
    """Returns False, because Metal is not supported."""
    return False
