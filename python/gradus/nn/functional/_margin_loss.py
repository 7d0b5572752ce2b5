"""Margin losses and losses of embeddings. A margin loss is 0 where the correct answer wins by a margin. reduction: "mean", "sum" or "none"."""
from __future__ import annotations

from gradus import _C
from gradus._C.nn import pairwise_distance

from ._reduction import checked_reduction, named_reduction

__all__ = ["cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss",
           "multilabel_soft_margin_loss", "soft_margin_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss"]

_nn = _C.nn


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """Returns max(0, -target * (input1 - input2) + margin), reduced by `reduction`.

    target: 1 where input1 should be larger, -1 where input2 should be larger.
    """
    return _nn.margin_ranking_loss(input1, input2, target, margin, named_reduction(size_average, reduce, reduction))


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """Returns input where target is 1 and max(0, margin - input) where target is -1, reduced by `reduction`."""
    return _nn.hinge_embedding_loss(input, target, margin, named_reduction(size_average, reduce, reduction))


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Returns log(1 + exp(-target * input)), reduced by `reduction`. target: 1 or -1."""
    return _nn.soft_margin_loss(input, target, named_reduction(size_average, reduce, reduction))


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """Returns 1 - cos(input1, input2) where target is 1 and max(0, cos(input1, input2) - margin) where target is -1, reduced by `reduction`.

    input1 and input2 have the shape (N, D) and target (N), or (D) and target (). Raises RuntimeError for other shapes.
    """
    return _nn.cosine_embedding_loss(input1, input2, target, margin, named_reduction(size_average, reduce, reduction))


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Returns -(target * log(sigmoid(input)) + (1 - target) * log(sigmoid(-input))) * weight, averaged over the classes and reduced by `reduction`.

    input and target (..., C) give a loss of shape (...) before the reduction.
    """
    return _nn.multilabel_soft_margin_loss(input, target, weight, named_reduction(size_average, reduce, reduction))


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Returns weight[t] / C * (the sum of max(0, margin - input[t] + input[i])^p over all classes i except t), reduced by `reduction`.

    input: (N, C) or (C). target: class indices t, (N) or (). Raises ValueError if p is neither 1 nor 2.
    """
    return _nn.multi_margin_loss(input, target, p, margin, weight, checked_reduction(size_average, reduce, reduction))


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Returns the sum of max(0, 1 - input[t] + input[i]) over target classes t and other classes i, divided by the number of classes, reduced by
    `reduction`.

    input and target: (N, C) or (C). Each row of target lists class indices and ends at its first -1.
    """
    return _nn.multilabel_margin_loss(input, target, checked_reduction(size_average, reduce, reduction))


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
    """Returns max(0, margin + |anchor - positive| - |anchor - negative|), reduced by `reduction`, with p-norms along the last dimension.

    swap: |anchor - negative| is replaced by |positive - negative| where that is smaller. Raises ValueError if margin is not positive.
    """
    reduction = named_reduction(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return _nn.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction)


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
    """Returns triplet_margin_loss with distances computed by distance_function(x, y), which is pairwise_distance when None.

    Raises ValueError if margin is not positive, RuntimeError if the tensors have different numbers of dimensions.
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(f"The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor "
                           f"{anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs")
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    return _C._triplet_margin(near, far, distance(positive, negative) if swap else None, margin, reduction)
