"""Normalization of channels, with PyTorch's checks of sizes and eps. layer_norm and rms_norm are generated from the schema."""
from gradus._C import nn as _nn

__all__ = ["batch_norm", "group_norm", "instance_norm"]


def _check_count(size, count, what):
    """Raises ValueError if `count`, the number of values over which mean and variance are computed, is 1. The variance of one value is 0."""
    if count == 1:
        raise ValueError(f"Expected more than 1 {what} when training, got input size {size}")


def _check_eps(name, eps, training):
    """Raises ValueError if `eps` is negative, or 0 in training."""
    if training and eps <= 0.0:
        raise ValueError(f"{name} eps must be positive during training, but got {eps}")
    if eps < 0.0:
        raise ValueError(f"{name} eps must be non-negative, but got {eps}")


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Returns (input - mean) / sqrt(variance + eps) * weight + bias for each channel (dimension 1).

    If `training` is true, mean and variance are computed from the input, and running_mean and running_var are updated in place. Otherwise
    running_mean and running_var are used as mean and variance. Raises ValueError for training with one value per channel, and for an eps that is
    negative, or 0 in training.
    """
    if training and input.dim() > 1:
        _check_count(input.size(), input.numel() // max(input.size(1), 1), "value per channel")
    _check_eps("batch_norm", eps, training)
    return _nn.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5):
    """Returns batch_norm of each sample separately: statistics are computed for each sample and channel.

    Raises ValueError for samples with one element per channel.
    """
    if use_input_stats:
        _check_count(input.size(), input.numel() // max(input.size(0) * input.size(1), 1), "spatial element")
    return _nn.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Returns the input normalized within num_groups groups of adjacent channels (dimension 1) of each sample, times weight plus bias per channel.

    Raises ValueError for groups of one element, RuntimeError for less than two dimensions.
    """
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    if num_groups > 0:
        _check_count(input.size(), input.numel() // num_groups, "value per channel")
    return _nn.group_norm(input, num_groups, weight, bias, eps)
