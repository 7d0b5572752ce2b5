"""Distances, similarities and lengths of vectors along a dimension."""
from __future__ import annotations

import gradus


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """The p-norm of x1 - x2 + eps along the last dimension.

    >>> F.pairwise_distance(gradus.zeros(2, 4), gradus.ones(2, 4), eps=0).tolist()
    [2.0, 2.0]
    """
    return (x1 - x2 + eps).norm(p, -1, keepdim)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """The dot product of x1 and x2 along dim, each divided by its length, which counts as eps at least."""
    product = x1 * x2
    lengths = _length(x1.expand_as(product), dim, eps) * _length(x2.expand_as(product), dim, eps)
    return (product / lengths).sum(dim)


def _length(x, dim, eps):
    return x.norm(2, dim, keepdim=True).clamp_min(eps)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """input divided by its p-norm along dim, which counts as eps at least."""
    return gradus.div(input, input.norm(p, dim, keepdim=True).clamp_min(eps), out=out)
