"""OpenMP: not used; the threads are those of Gradus itself."""


def is_available():
    """False."""
    return False
