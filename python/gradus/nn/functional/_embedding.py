"""Rows of a table."""
from __future__ import annotations

import gradus
from gradus import _C

from ._arguments import require

__all__ = ["embedding"]

def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """Rows of weight: input of any shape holds their indices, the result has its shape and then weight's columns.

    padding_idx: a row that gets no gradient. max_norm: rows that are used and have a larger norm_type-norm are scaled to it first, in
    place. scale_grad_by_freq: the gradient of a row is divided by how often it was used. NotImplementedError: sparse.

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
        require("embedding", "float", max_norm=max_norm, norm_type=norm_type)
        _shorten_rows(weight.detach(), input, max_norm, norm_type)
    return _C.embedding(weight, input, padding_idx, scale_grad_by_freq)


def _shorten_rows(weight, used, max_norm, norm_type):
    length = weight.norm(norm_type, 1)
    too_long = gradus.zeros_like(length, dtype=gradus.bool).index_fill_(0, used.flatten(), True).logical_and(length > max_norm)
    weight.mul_(gradus.where(too_long, max_norm / (length + 1e-7), 1).unsqueeze(1))
