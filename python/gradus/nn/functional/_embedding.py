"""Lookup of rows in an embedding table, and sums, means or maxima over bags of rows."""
from __future__ import annotations

import warnings

import gradus
from gradus import _C

from ._arguments import require

__all__ = ["embedding", "embedding_bag"]

def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """Returns the rows of `weight` at the indices in `input`. The result has the shape (*input.shape, weight.size(1)).

    padding_idx: the row that receives no gradient. max_norm: rows of `weight` that are looked up and have a larger norm_type-norm are first scaled to
    max_norm, in place.
    scale_grad_by_freq: the gradient of a row is divided by the number of times that the row was used. Raises NotImplementedError for sparse=True.

    >>> F.embedding(gradus.tensor([1, 0]), gradus.tensor([[1., 2.], [3., 4.]])).tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """
    require("embedding", "bool", sparse=sparse, scale_grad_by_freq=scale_grad_by_freq)
    if sparse:
        raise NotImplementedError("embedding: sparse gradients are not implemented")
    if padding_idx is None:
        padding_idx = -1
    else:
        require("embedding", "int", padding_idx=padding_idx)
        if not -weight.size(0) <= padding_idx < weight.size(0):
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= weight.size(0)
    if max_norm is not None:
        _shorten_rows(weight, input, max_norm, norm_type)
    return _C.embedding(weight, input, padding_idx, scale_grad_by_freq)


def _shorten_rows(weight, used, max_norm, norm_type):
    """Scales rows of `weight`, in place, so that their norm is at most max_norm. used: the indices of these rows."""
    with gradus.no_grad():
        _C.embedding_renorm_(weight, used, max_norm, norm_type)


_MODES = {"sum": 0, "mean": 1, "max": 2}


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean", sparse=False, per_sample_weights=None,
                  include_last_offset=False, padding_idx=None):
    """Returns the sum, mean or maximum of the rows of `weight` in each bag of indices, as a tensor (bags, columns).

    input (B, N): each row is a bag. input (N): bag b is input[offsets[b]:offsets[b + 1]]; the last bag ends at the end of the input or, with
    include_last_offset, at the last offset. per_sample_weights: factors for the rows, only for mode "sum". padding_idx: an index that is skipped.
    max_norm: rows with a larger norm_type-norm are first scaled to max_norm, in place. scale_grad_by_freq: the gradient of a row is divided by the
    number of times that the row was used. Raises ValueError for other shapes, and for a mode that does not support the given options.

    >>> F.embedding_bag(gradus.tensor([[0, 1]]), gradus.tensor([[1., 2.], [3., 4.]])).tolist()
    [[2.0, 3.0]]
    """
    require("embedding_bag", "Tensor", input=input, weight=weight)
    if weight.dtype == gradus.int64 and input.is_floating_point():
        warnings.warn("Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is deprecated, and should now be "
                      "`embedding_bag(input, weight, ...)`.", stacklevel=2)
        weight, input = input, weight
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the same shape as the "
                         f"input ({input.shape})")
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. However, found "
                             f"offsets of type {type(offsets)}")
        offsets = gradus.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        input = input.reshape(-1)
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    elif input.dim() != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    elif offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    elif offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if not isinstance(mode, str) or mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        _shorten_rows(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got mode="
                                  f"'{mode}'). Please open a feature request on GitHub.")
    return _C.embedding_bag(weight, input, offsets, scale_grad_by_freq, _MODES[mode], sparse, per_sample_weights, include_last_offset, padding_idx)[0]
