"""Negative log likelihoods: of counts under a Poisson distribution, and of numbers under a normal distribution."""
from __future__ import annotations

import gradus
from gradus import _C

from ._reduction import named_reduction

__all__ = ["gaussian_nll_loss", "poisson_nll_loss"]

_nn = _C.nn


def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
    """Returns exp(input) - target * input, reduced by `reduction`. If log_input is false, the loss is input - target * log(input + eps).

    full: adds Stirling's approximation of log(target!) where target > 1.
    """
    return _nn.poisson_nll_loss(input, target, log_input, full, eps, named_reduction(size_average, reduce, reduction))


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """Returns (log(var) + (input - target)^2 / var) / 2, reduced by `reduction`. `var` is clamped to at least `eps`.

    var: a number, or a tensor of input's shape; its last dimension may be missing or have size 1. full: adds the constant log(2 pi) / 2. Raises
    ValueError if `var` is negative or of another shape.
    """
    if isinstance(var, float):
        var = gradus.full_like(input.detach(), var)
    return _nn.gaussian_nll_loss(input, target, var, full, eps, reduction)
