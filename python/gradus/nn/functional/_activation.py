"""The softmax functions, which normalise along a dimension and warn if it is not given. All other activations are generated from schema/*.toml."""
from __future__ import annotations

import warnings

from gradus import _C

__all__ = ["gumbel_softmax", "log_softmax", "softmax", "softmin"]

_nn = _C.nn


def _implicit_dim(name, ndim, stacklevel):
    """Returns the dimension that PyTorch chose for an input of `ndim` dimensions before `dim` was required. Warns that leaving out `dim` is
    deprecated."""
    warnings.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
                  stacklevel=stacklevel)
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """Returns exp(input) divided by its sum along dimension `dim`. The input is first converted to `dtype` unless that is None.

    >>> F.softmax(gradus.zeros(4), dim=0).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if dim is None:
        dim = _implicit_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """Returns softmax(-input) along dimension `dim`. The input is first converted to `dtype` unless that is None."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim(), _stacklevel)
    return _nn.softmin(input, dim, dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """Returns log(softmax(input)) along `dim`, computed without underflow. The input is first converted to `dtype` unless that is None."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """Returns softmax((logits + noise) / tau) along `dim`, where noise has the standard Gumbel distribution (Jang et al., 2017).

    hard: returns one-hot vectors instead, with the gradient of the soft sample. eps: deprecated, has no effect.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    return _nn.gumbel_softmax(logits, tau, hard, dim)
