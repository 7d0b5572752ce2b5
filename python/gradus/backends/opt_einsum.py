"""The package opt_einsum: einsum finds its order by itself, and the switches have no effect."""
enabled = True
strategy = "auto"


def is_available():
    """False."""
    return False


def get_opt_einsum():
    """None."""
    return None
