"""Normalization over the last dimensions."""
from __future__ import annotations

import gradus
from gradus import _C

_nn = _C.nn


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """(input - mean) / sqrt(var + eps) * weight + bias, with mean and variance over the last dimensions, those of normalized_shape.

    >>> F.layer_norm(gradus.tensor([1., 3.]), (2,), eps=0).tolist()
    [-1.0, 1.0]
    """
    return _nn.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """input / sqrt(mean(input^2) + eps) * weight, with the mean over the last dimensions, those of normalized_shape.

    eps: the dtype's machine epsilon when None.
    """
    shape = tuple(normalized_shape)
    if not shape:
        raise RuntimeError("Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
                           "normalized_shape = []")
    if input.dim() < len(shape):
        raise ValueError(f"Input tensor must have at least {len(shape)} dimensions, but got {input.dim()}")
    if tuple(input.shape[-len(shape):]) != shape:
        raise RuntimeError(f"Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], but got input of "
                           f"size{list(input.shape)}")
    if eps is None:
        eps = gradus.finfo(input.dtype).eps
    scale = (input.square().mean(tuple(range(-len(shape), 0)), keepdim=True) + eps).rsqrt()
    return input * scale if weight is None else input * scale * weight
