"""Switches of the package opt_einsum. It is not used, because einsum chooses the order of products itself, so the switches have no effect."""
enabled = True
strategy = "auto"


def is_available():
    """Returns False, because opt_einsum is not used."""
    return False


def get_opt_einsum():
    """Returns None, because opt_einsum is not used."""
    return None
