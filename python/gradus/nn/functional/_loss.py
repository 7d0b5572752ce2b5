"""Loss functions whose computation is one operator: regression losses and classification losses.

reduction: "mean", "sum" or "none"; others raise ValueError. size_average and reduce are its deprecated form.
"""
from __future__ import annotations

import warnings

from gradus import _C

from ._reduction import checked_reduction, named_reduction

__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "huber_loss", "kl_div", "l1_loss", "linear_cross_entropy", "mse_loss",
           "nll_loss", "smooth_l1_loss"]

_nn = _C.nn


def _warn_of_broadcast(input, target):
    """Warns if target and input have different shapes, because the loss then broadcasts them."""
    if target.shape != input.shape:
        warnings.warn(f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will likely lead to "
                      "incorrect results due to broadcasting. Please ensure they have the same size.", stacklevel=3)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Returns (input - target)^2, reduced by `reduction`.

    weight: factors of the same shape as input. If weight is given, reduction "mean" is the weighted mean.

    >>> F.mse_loss(gradus.tensor([1., 2.]), gradus.tensor([1., 4.])).item()
    2.0
    """
    _warn_of_broadcast(input, target)
    reduction = named_reduction(size_average, reduce, reduction)
    if weight is None:
        return _nn.mse_loss(input, target, reduction)
    return _C._weighted_loss(input, target, weight, "mse", reduction, 0.0)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Returns |input - target|, reduced by `reduction`.

    weight: factors of the same shape as input. If weight is given, reduction "mean" is the weighted mean.
    """
    _warn_of_broadcast(input, target)
    reduction = named_reduction(size_average, reduce, reduction)
    if weight is None:
        return _nn.l1_loss(input, target, reduction)
    return _C._weighted_loss(input, target, weight, "l1", reduction, 0.0)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """Returns the smooth L1 loss, reduced by `reduction`. The loss is d^2 / (2 beta) where d < beta, and d - beta / 2 elsewhere, with
    d = |input - target|.

    Raises RuntimeError if beta is negative.
    """
    _warn_of_broadcast(input, target)
    return _nn.smooth_l1_loss(input, target, named_reduction(size_average, reduce, reduction), beta)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Returns the Huber loss, reduced by `reduction`. The loss is d^2 / 2 where d <= delta, and delta * (d - delta / 2) elsewhere, with
    d = |input - target|.

    weight: factors of the same shape as input. Raises RuntimeError if delta is not positive.
    """
    _warn_of_broadcast(input, target)
    if weight is None:
        return _nn.huber_loss(input, target, named_reduction(None, None, reduction), delta)
    return _C._weighted_loss(input, target, weight, "huber", reduction, delta)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """Returns the Kullback-Leibler divergence target * (log(target) - input), reduced by `reduction`. `input` holds log-probabilities.

    log_target: True if target holds log-probabilities too. reduction "batchmean", the sum divided by the first size, matches the mathematical
    definition; "mean" divides by the number of elements.
    """
    if size_average is None and reduce is None and reduction == "mean":
        warnings.warn("reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only by the "
                      "batch size, and aligns with the KL div math definition.'mean' will be changed to behave the same as 'batchmean' in "
                      "the next major release.", stacklevel=2)
    return _nn.kl_div(input, target, named_reduction(size_average, reduce, reduction), log_target=log_target)


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Returns -(target * log(input) + (1 - target) * log(1 - input)) * weight, reduced by `reduction`. Both logarithms are clamped to at least -100.

    Raises ValueError if the shapes differ, RuntimeError if input is not in [0, 1].
    """
    reduction = checked_reduction(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is deprecated. "
                         "Please ensure they have the same size.")
    return _nn.binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
    """Returns binary_cross_entropy(sigmoid(input), target), computed accurately for large inputs.

    pos_weight: factors of the term target * log(sigmoid(input)). Raises ValueError if the shapes differ.
    """
    reduction = checked_reduction(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return _nn.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Returns the negative log likelihood -weight[t] * input[t] for each class t in target, reduced by `reduction`.

    input: log-probabilities (C), (N, C) or (N, C, d1, ...). target: class indices in the shape of input without C. Targets equal to ignore_index are
    skipped. The mean divides by the sum of the weights.
    """
    return _nn.nll_loss(input, target, weight, named_reduction(size_average, reduce, reduction), ignore_index)


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    """Returns nll_loss(log_softmax(input), target) over the classes. input: scores (C), (N, C) or (N, C, d1, ...).

    target: class indices in the shape of input without C, or class probabilities in the shape of input. label_smoothing: the fraction of each target
    that is spread evenly over all classes.

    >>> F.cross_entropy(gradus.zeros(2, 4), gradus.tensor([0, 3])).item() == gradus.tensor(4.).log().item()
    True
    """
    reduction = named_reduction(size_average, reduce, reduction)
    return _nn.cross_entropy(input, target, weight, reduction, ignore_index, label_smoothing)


def linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None, reduction="mean", ignore_index=None, label_smoothing=0.0,
                         options=None):
    """Returns cross_entropy(linear(input, linear_weight, linear_bias), target).

    linear_weight: (C, in), or (C, d1, ..., in) for scores (N, C, d1, ...). ignore_index: -100 when None. options: accepted without effect; in PyTorch
    it divides the work into blocks. Raises RuntimeError for sizes that do not match, or for an ignore_index together with class probabilities.
    """
    if ignore_index is not None and target.shape == (*input.shape[:-1], *linear_weight.shape[:-1]):
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    return _nn.linear_cross_entropy(input, linear_weight, target, linear_bias=linear_bias, weight=weight, reduction=reduction,
                                    ignore_index=-100 if ignore_index is None else ignore_index, label_smoothing=label_smoothing)
