"""Dropout: elements, or whole channels, are zeroed with probability p while training, and the others scaled so that the mean stays."""
from __future__ import annotations

import math
import warnings

import gradus
from gradus import _C

from ._arguments import require

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]

_nn = _C.nn


def _check_probability(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input, p=0.5, training=True, inplace=False):
    """Zeroes each element with probability p and divides the others by 1 - p; returns input itself if not training.

    ValueError: p is not in [0, 1].
    """
    _check_probability(p)
    if not inplace:
        return _nn.dropout(input, p, training)
    return input.mul_(_nn.dropout(gradus.ones_like(input.detach()), p)) if training else input


def _channel_noise(input, noise):
    """noise of ones in the shape (N, C, 1, …) of input's channels."""
    if input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return noise(gradus.ones(*input.shape[:2], *[1] * (input.dim() - 2), dtype=input.dtype, device=input.device))


def _dropout_channels(input, p, training, inplace):
    require("feature_dropout", "bool", training=training)
    if not training or p == 0 or input.numel() == 0:
        return input
    noise = _channel_noise(input, lambda ones: _nn.dropout(ones, p))
    return input.mul_(noise) if inplace else input * noise


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Zeroes each channel of (C, L) or (N, C, L) with probability p and divides the others by 1 - p."""
    _check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that dropout1d exists to provide channel-wise "
            "dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs).")
    return _unbatched_too(input, 3, p, training, inplace)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Zeroes each channel of (N, C, H, W) with probability p and divides the others by 1 - p. Three dimensions are (N, C, L)."""
    _check_probability(p)
    if input.dim() not in (3, 4):
        warnings.warn(f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated and will result in an error in a future "
                      "release.", stacklevel=2)
    if input.dim() == 3:
        warnings.warn("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input is "
                      "interpreted as shape (N, C, L), where C is the channel dim.", stacklevel=2)
    return _dropout_channels(input, p, training, inplace)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Zeroes each channel of (C, D, H, W) or (N, C, D, H, W) with probability p and divides the others by 1 - p."""
    _check_probability(p)
    if input.dim() not in (4, 5):
        warnings.warn(f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated and will result in an error in a future "
                      "release.", stacklevel=2)
    return _unbatched_too(input, 5, p, training, inplace)


def _unbatched_too(input, batched_dim, p, training, inplace):
    """Drops channels; an input without batch dimension is a batch of one."""
    if input.dim() == batched_dim:
        return _dropout_channels(input, p, training, inplace)
    result = _dropout_channels(input.unsqueeze(0), p, training, inplace)
    return input if inplace else result.squeeze(0)


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that keeps mean and variance of selu's outputs: dropped elements get selu's lower limit, then all are scaled and shifted."""
    _check_probability(p)
    return _alpha_dropout("alpha_dropout", input, p, training, inplace, lambda input: gradus.ones_like(input.detach()))


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """alpha_dropout of whole channels."""
    _check_probability(p)
    return _alpha_dropout("feature_alpha_dropout", input, p, training, inplace, lambda input: _channel_noise(input, lambda ones: ones))


def _alpha_dropout(name, input, p, training, inplace, ones_for):
    require(name, "Tensor", input=input)
    require(name, "bool", training=training)
    if not training or p == 0 or input.numel() == 0:
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    limit = 1.7580993408473766  # selu(-inf) = -limit
    scale = 1 / math.sqrt((limit * limit * p + 1) * (1 - p))
    kept = ones_for(input).bernoulli_(1 - p)
    shift = (kept - 1) * (limit * scale) + limit * scale * p
    return input.mul_(kept * scale).add_(shift) if inplace else input * (kept * scale) + shift
