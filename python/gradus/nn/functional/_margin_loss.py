"""Losses that are 0 where an answer is right by a margin, and their like for similarities. Reductions as in loss.py."""
from __future__ import annotations

import itertools
import math

import gradus
from gradus import _C
from gradus._C.nn import logsigmoid, pairwise_distance

from ._arguments import require
from ._reduction import checked_reduction, named_reduction, reduced

__all__ = ["cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss",
           "multilabel_soft_margin_loss", "soft_margin_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss"]

_nn = _C.nn
_BLOCK = 1 << 18  # margins made at a time


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """max(0, -target (input1 - input2) + margin): target is 1 where input1 should be the larger one, -1 where input2 should."""
    return _nn.margin_ranking_loss(input1, input2, target, margin, named_reduction(size_average, reduce, reduction))


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """input where target is 1, max(0, margin - input) where it is -1."""
    return _nn.hinge_embedding_loss(input, target, margin, named_reduction(size_average, reduce, reduction))


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + exp(-target input)), target being 1 or -1."""
    return _nn.soft_margin_loss(input, target, named_reduction(size_average, reduce, reduction))


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """1 - cos of the angle between input1 and input2 where target is 1, max(0, cos - margin) where it is -1.

    (N, D), (N, D) and (N), or (D), (D) and (). RuntimeError: other shapes.
    """
    return _nn.cosine_embedding_loss(input1, input2, target, margin, named_reduction(size_average, reduce, reduction))


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """-(target log(sigmoid(input)) + (1 - target) log(sigmoid(-input))), times weight, averaged over the classes: (…, C) give (…)."""
    reduction = named_reduction(size_average, reduce, reduction)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    return reduced(loss.sum(-1) / input.size(-1), reduction)


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """max(0, margin - input[t] + input[i])^p, summed over the classes i other than t and divided by C, times weight[t].

    input (N, C) or (C), target (N) or () of classes. ValueError: p is neither 1 nor 2.
    """
    reduction = checked_reduction(size_average, reduce, reduction)
    require("multi_margin_loss", "Tensor", input=input, target=target, **({} if weight is None else {"weight": weight}))
    require("multi_margin_loss", "Number", p=p, margin=margin)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    if input.dim() > 2 or input.numel() == 0 and input.size(-1) == 0:
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}")
    samples = input.size(0) if input.dim() == 2 else 1
    if target.dim() > 1 or target.numel() != samples:
        raise RuntimeError("multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). Expected target size "
                           f"[{samples}], but got {list(target.shape)}. Input has shape {list(input.shape)}.")
    if target.dtype != gradus.int64:
        raise RuntimeError(f"expected scalar type Long but found {target.type().split('.')[-1].removesuffix('Tensor')}")
    if weight is not None and weight.numel() != (input.size(-1) if input.dim() > 0 else 1):
        raise RuntimeError(f"inconsistent weight size, expected {input.size(-1)} but got {list(weight.shape)}")
    margin = float(margin)
    if input.dim() < 2:  # one sample: a target of () or (1), and so the loss
        input = input.reshape(target.shape + (-1,))
    right = target.unsqueeze(-1)
    loss = (margin - input.gather(-1, right) + input).clamp_min(0) ** p
    if weight is not None:
        loss = loss * weight[right]
    return reduced(loss.scatter(-1, right, 0).sum(-1) / input.size(-1), reduction)


def _positive_margins(x, target):
    """The derivative of the sum of the positive margins by x (N, C), and the number of these margins in each row.

    Margins are made for a block of rows and targets at a time."""
    listed = (target < 0).cumsum(-1) == 0
    classes = target.clamp_min(0)
    is_other = gradus.zeros_like(target).scatter_add(-1, classes, listed.to(target.dtype)) == 0
    slopes, pairs = gradus.zeros_like(x), x.new_zeros(x.size(0))
    most = int(listed.sum(-1).max()) if listed.numel() > 0 else 0
    rows, columns = max(1, _BLOCK // max(1, most * x.size(1))), max(1, _BLOCK // max(1, x.size(1)))
    for row, column in itertools.product(range(0, x.size(0), rows), range(0, most, columns)):
        here = slice(row, row + rows)
        of_targets = classes[here, column:column + columns]
        margins = 1 - x[here].gather(-1, of_targets).unsqueeze(-1) + x[here].unsqueeze(-2)  # (row, target, class)
        counted = listed[here, column:column + columns].unsqueeze(-1).logical_and(is_other[here].unsqueeze(-2))
        positive = (margins > 0).logical_and(counted).to(x.dtype)
        each = positive.sum(-1)
        slopes[here] += positive.sum(-2).scatter_add(-1, of_targets, -each)
        pairs[here] += each.sum(-1)
    return slopes, pairs


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """max(0, 1 - input[t] + input[i]), summed over the classes t that are targets and i that are not, divided by C.

    input and target (N, C) or (C); target lists classes, up to the first -1.
    """
    reduction = checked_reduction(size_average, reduce, reduction)
    require("multilabel_margin_loss", "Tensor", input=input, target=target)
    if target.shape != input.shape:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    if input.dim() == 0:
        input, target = input.reshape(1), target.reshape(1)
    x = input.to(gradus.promote_types(input.dtype, gradus.float32)).reshape(math.prod(input.shape[:-1]), input.size(-1))
    slopes, pairs = _positive_margins(x.detach(), target.reshape(x.shape))
    x = x.masked_fill(slopes == 0, 0)
    shift = x.detach().mean(-1, keepdim=True)  # the slopes of a row add up to 0, so that a shift changes nothing but the rounding
    total = pairs + (slopes * (x - shift.masked_fill(shift.isfinite().logical_not(), 0))).sum(-1)
    return reduced((total / input.size(-1)).to(input.dtype).reshape(input.shape[:-1]), reduction)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
    """max(0, margin + |anchor - positive| - |anchor - negative|), in p-norms along the last dimension.

    swap: the distance of positive and negative counts for the second one where it is smaller. ValueError: margin is not positive.
    """
    reduction = named_reduction(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return _nn.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction)


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
    """triplet_margin_loss with any function of two tensors as the distance; pairwise_distance when None."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(f"The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor "
                           f"{anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs")
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = gradus.minimum(far, distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), reduction)
