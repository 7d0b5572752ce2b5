"""Dropout of channels with warnings for ambiguous input shapes. The other dropout functions are generated from the schema."""
from __future__ import annotations

import warnings

from gradus import _C

__all__ = ["dropout1d", "dropout2d", "dropout3d"]


def _check_probability(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _warn_of_dims(name, input, dims):
    """Warns if the number of dimensions of `input` is not in `dims`."""
    if input.dim() not in dims:
        warnings.warn(f"{name}: Received a {input.dim()}-D input to {name}, which is deprecated and will result in an error in a future release.",
                      stacklevel=3)


def _dropout(input, p, training, inplace, batched_dim):
    """Returns `input` with each channel zeroed with probability `p`, in place if `inplace` is true. batched_dim: the number of dimensions of a batch.
    An input with another number of dimensions is treated as one sample."""
    dropout = _C.feature_dropout_ if inplace else _C.feature_dropout
    if input.dim() == batched_dim:
        return dropout(input, p, training)
    result = dropout(input.unsqueeze(0), p, training)
    return input if inplace else result.squeeze(0)


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Zeroes each channel of (C, L) or (N, C, L) with probability `p` and divides the other channels by 1 - p.

    Raises ValueError if `p` is not in [0, 1], RuntimeError for another number of dimensions.
    """
    _check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that dropout1d exists to provide channel-wise "
            "dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs).")
    return _dropout(input, p, training, inplace, 3)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Zeroes each channel of (N, C, H, W) with probability `p` and divides the other channels by 1 - p.

    An input of three dimensions is taken as (N, C, L), with a warning. Raises ValueError if `p` is not in [0, 1].
    """
    _check_probability(p)
    _warn_of_dims("dropout2d", input, (3, 4))
    if input.dim() == 3:
        warnings.warn("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input is "
                      "interpreted as shape (N, C, L), where C is the channel dim.", stacklevel=2)
    return _dropout(input, p, training, inplace, input.dim())


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Zeroes each channel of (C, D, H, W) or (N, C, D, H, W) with probability `p` and divides the other channels by 1 - p.

    Raises ValueError if `p` is not in [0, 1].
    """
    _check_probability(p)
    _warn_of_dims("dropout3d", input, (4, 5))
    return _dropout(input, p, training, inplace, 5)
