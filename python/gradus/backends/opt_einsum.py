"""Switches of the package opt_einsum. They have no effect, because einsum does not use the package, but chooses the order of products itself."""
enabled = True
strategy = "auto"


def is_available():
    """Returns False, because opt_einsum is not used."""
    return False


def get_opt_einsum():
    """Returns None, because opt_einsum is not used."""
    return None
