"""The short way that PyTorch's modules of attention take for inference: a switch that TransformerEncoder heeds for what it gives at padded places."""
_enabled = True


def get_fastpath_enabled():
    """The switch of set_fastpath_enabled."""
    return _enabled


def set_fastpath_enabled(value):
    """With False, TransformerEncoder computes padded places for inference as it does for training."""
    global _enabled
    _enabled = bool(value)
