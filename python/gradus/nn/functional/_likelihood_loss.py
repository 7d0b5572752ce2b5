"""Negative logarithms of likelihoods: of counts under a Poisson distribution and of numbers under a normal one."""
from __future__ import annotations

import math

import gradus

from ._reduction import legacy_reduction, reduced


def _check(reduction, text):
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + text)


def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
    """exp(input) - target input, or input - target log(input + eps) where log_input is false, reduced.

    full: with Stirling's approximation of log(target!) for targets above 1.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    _check(reduction, " is not a valid value for reduction")
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduced(loss, reduction)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """(log(var) + (input - target)^2 / var) / 2, reduced; var counts as eps at least and gets no gradient from that.

    var: a number, or a tensor of input's shape, of that shape without the last dimension, or with one dimension of size 1. full: with the
    constant log(2 pi) / 2. ValueError: var is negative or of another shape.
    """
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * gradus.ones_like(input)
    elif (var < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif input.dim() != var.dim() or sum(have for want, have in zip(input.shape, var.shape) if want != have) != 1:
            raise ValueError("var is of incorrect size")
    _check(reduction, " is not valid")
    var = var.clone()
    with gradus.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)
