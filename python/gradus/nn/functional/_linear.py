"""Products with weights, and rows of a table."""
from __future__ import annotations

import gradus
from gradus import _C

from ._arguments import require

__all__ = ["bilinear", "embedding", "linear", "one_hot"]

_nn = _C.nn

linear = _nn.linear
one_hot = _nn.one_hot


def bilinear(input1, input2, weight, bias=None):
    """input1^T weight[k] input2 + bias[k] for each k: (…, A), (…, B), weight (K, A, B) and bias (K) give (…, K)."""
    require("bilinear", "Tensor", input1=input1, input2=input2, weight=weight, **({} if bias is None else {"bias": bias}))
    if input1.dim() != input2.dim():
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.dim()} and {input2.dim()}")
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(f"bilinear(): input batch dimensions do not match: got {tuple(input1.shape[:-1])} and {tuple(input2.shape[:-1])}")
    if input1.size(-1) != weight.size(1) or input2.size(-1) != weight.size(2):
        raise RuntimeError(f"bilinear(): input sizes do not match weight size: got {input1.size(-1)} and {input2.size(-1)} but expected "
                           f"{weight.size(1)} and {weight.size(2)}")
    products = input1 @ weight.permute(1, 0, 2).flatten(1)  # (…, K * B)
    result = (products.unflatten(-1, (weight.size(0), weight.size(2))) * input2.unsqueeze(-2)).sum(-1)
    return result if bias is None else result + bias


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
    return _nn.embedding(weight, input, padding_idx, scale_grad_by_freq)


def _shorten_rows(weight, used, max_norm, norm_type):
    length = weight.norm(norm_type, 1)
    too_long = gradus.zeros_like(length, dtype=gradus.bool).index_fill_(0, used.flatten(), True).logical_and(length > max_norm)
    weight.mul_(gradus.where(too_long, max_norm / (length + 1e-7), 1).unsqueeze(1))
