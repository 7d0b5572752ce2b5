"""Distances, similarities and lengths of vectors along a dimension."""
from __future__ import annotations

import gradus
from gradus import _C

__all__ = ["cosine_similarity", "normalize", "pairwise_distance"]

_nn = _C.nn

cosine_similarity = _nn.cosine_similarity
pairwise_distance = _nn.pairwise_distance


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """input divided by its p-norm along dim, which counts as eps at least.

    >>> F.normalize(gradus.tensor([[3., 4.]])).tolist() == (gradus.tensor([[3., 4.]]) / 5).tolist()
    True
    """
    if out is None:
        return _nn.normalize(input, p, dim, eps)
    return gradus.div(input, input.norm(p, dim, keepdim=True).clamp_min(eps), out=out)
