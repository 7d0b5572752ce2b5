"""The error of all functions that need a CUDA device."""


def refuse():
    """Raises AssertionError, because there is no CUDA device."""
    raise AssertionError("Gradus not compiled with CUDA enabled")
