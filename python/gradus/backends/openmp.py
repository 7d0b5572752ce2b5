"""Queries about OpenMP, which is not used. Gradus has its own thread pool."""


def is_available():
    """Returns False, because OpenMP is not used."""
    return False
