"""Negative logarithms of likelihoods: of counts under a Poisson distribution and of numbers under a normal one."""
from __future__ import annotations

import gradus
from gradus import _C

from ._reduction import named_reduction

__all__ = ["gaussian_nll_loss", "poisson_nll_loss"]

_nn = _C.nn


def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
    """Returns exp(input) - target input, or input - target log(input + eps) where log_input is false, reduced.

    full: with Stirling's approximation of log(target!) for targets above 1.
    """
    return _nn.poisson_nll_loss(input, target, log_input, full, eps, named_reduction(size_average, reduce, reduction))


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """Returns (log(var) + (input - target)^2 / var) / 2, reduced; var counts as eps at least and gets no gradient from that.

    var: a number, or a tensor of input's shape, of that shape without the last dimension, or with one of size 1. full: with the constant
    log(2 pi) / 2. ValueError: var is negative or of another shape.
    """
    if isinstance(var, float):
        var = gradus.full_like(input.detach(), var)
    return _nn.gaussian_nll_loss(input, target, var, full, eps, reduction)
