"""Functions of neural networks that torch has beside torch.nn.functional: arguments come in another order, reductions as numbers.

The default of a reduction is 0, none, as in PyTorch, whose signatures say 1.
"""
from gradus._C import nn as _nn
from gradus.nn import functional as F
from gradus.nn.functional import bilinear
from gradus.nn.functional._activation import _rrelu

__all__ = ["alpha_dropout", "alpha_dropout_", "batch_norm", "bilinear", "binary_cross_entropy_with_logits", "cosine_embedding_loss",
           "dropout", "dropout_", "embedding", "feature_alpha_dropout", "feature_alpha_dropout_", "hinge_embedding_loss", "instance_norm", "kl_div",
           "margin_ranking_loss", "poisson_nll_loss", "rrelu", "rrelu_", "triplet_margin_loss"]

_REDUCTIONS = ("none", "mean", "sum")


def _reduction(number):
    if number not in (0, 1, 2):
        raise ValueError(f"{number} is not a valid value for reduction")
    return _REDUCTIONS[number]


def dropout(input, p, train):
    """nn.functional.dropout."""
    return F.dropout(input, p, train)


def dropout_(input, p, train):
    """nn.functional.dropout, in place."""
    return F.dropout(input, p, train, inplace=True)


def alpha_dropout(input, p, train):
    """nn.functional.alpha_dropout."""
    return F.alpha_dropout(input, p, train)


def alpha_dropout_(input, p, train):
    """nn.functional.alpha_dropout, in place."""
    return F.alpha_dropout(input, p, train, inplace=True)


def feature_alpha_dropout(input, p, train):
    """nn.functional.feature_alpha_dropout."""
    return F.feature_alpha_dropout(input, p, train)


def feature_alpha_dropout_(input, p, train):
    """nn.functional.feature_alpha_dropout, in place."""
    return F.feature_alpha_dropout(input, p, train, inplace=True)


def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """nn.functional.batch_norm. cudnn_enabled has no effect."""
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    """nn.functional.instance_norm. cudnn_enabled has no effect."""
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """nn.functional.embedding. padding_idx -1: no row is padding."""
    return F.embedding(indices, weight, None if padding_idx == -1 else padding_idx, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction=0):
    """nn.functional.binary_cross_entropy_with_logits. reduction: 0 none, 1 mean, 2 sum."""
    return F.binary_cross_entropy_with_logits(input, target, weight, pos_weight=pos_weight, reduction=_reduction(reduction))


def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=0):
    """nn.functional.cosine_embedding_loss. reduction: 0 none, 1 mean, 2 sum."""
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_reduction(reduction))


def hinge_embedding_loss(input, target, margin=1.0, reduction=0):
    """nn.functional.hinge_embedding_loss. reduction: 0 none, 1 mean, 2 sum."""
    return F.hinge_embedding_loss(input, target, margin, reduction=_reduction(reduction))


def kl_div(input, target, reduction=0, *, log_target=False):
    """nn.functional.kl_div. reduction: 0 none, 1 mean, 2 sum."""
    return _nn.kl_div(input, target, reduction=_reduction(reduction), log_target=log_target)


def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=0):
    """nn.functional.margin_ranking_loss. reduction: 0 none, 1 mean, 2 sum."""
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_reduction(reduction))


def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    """nn.functional.poisson_nll_loss. reduction: 0 none, 1 mean, 2 sum."""
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_reduction(reduction))


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=0):
    """nn.functional.triplet_margin_loss. reduction: 0 none, 1 mean, 2 sum."""
    return F.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=_reduction(reduction))


def rrelu(input, lower=1 / 8, upper=1 / 3, training=False, generator=None):
    """nn.functional.rrelu, with numbers of the generator."""
    return _rrelu(input, lower, upper, training, False, generator)


def rrelu_(input, lower=1 / 8, upper=1 / 3, training=False, generator=None):
    """rrelu, in place."""
    return _rrelu(input, lower, upper, training, True, generator)
