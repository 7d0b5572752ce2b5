"""The answer of everything that would need a device."""


def refuse():
    """Raises AssertionError."""
    raise AssertionError("Gradus not compiled with CUDA enabled")
