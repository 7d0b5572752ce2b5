"""Fusion of a batch norm into the weight and bias of the layer before it. In evaluation mode a batch norm only scales and shifts each channel."""
from __future__ import annotations

import copy

import gradus

from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _fused(layer, bn, fuse_weights, *args):
    """Returns a copy of `layer` whose weight and bias are computed by fuse_weights from `layer`, the batch norm `bn` and args.

    Raises AssertionError if `bn` has no running statistics.
    """
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    result = copy.deepcopy(layer)
    result.weight, result.bias = fuse_weights(result.weight, result.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, *args)
    return result


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """Returns a copy of the convolution `conv` that computes bn(conv(x)), for modules in evaluation mode.

    transpose: True for a transposed convolution. Raises AssertionError if a module is in training mode.
    """
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    return _fused(conv, bn, fuse_conv_bn_weights, transpose)


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """Returns (weight, bias) of one convolution that replaces the convolution (conv_w, conv_b) and the batch norm after it.

    bn_rm, bn_rv: the running mean and variance. conv_b and bn_b are 0 when None; bn_w is 1 when None. transpose: True for a transposed convolution.
    """
    bias_dtype = conv_w.dtype if conv_b is None else conv_b.dtype
    conv_b = gradus.zeros_like(bn_rm) if conv_b is None else conv_b
    bn_w = gradus.ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = gradus.zeros_like(bn_rm) if bn_b is None else bn_b
    rstd = gradus.rsqrt(bn_rv + bn_eps)
    sizes = [1] * conv_w.dim()
    sizes[1 if transpose else 0] = -1
    weight = (conv_w * (bn_w * rstd).reshape(sizes)).to(dtype=conv_w.dtype)
    bias = ((conv_b - bn_rm) * rstd * bn_w + bn_b).to(dtype=bias_dtype)
    return Parameter(weight, conv_w.requires_grad), Parameter(bias, conv_b.requires_grad)


def fuse_linear_bn_eval(linear, bn):
    """Returns a copy of `linear` that computes bn(linear(x)), for modules in evaluation mode.

    Raises AssertionError if a module is in training mode or the numbers of features do not match.

    >>> linear, bn = nn.Linear(2, 3).eval(), nn.BatchNorm1d(3).eval()
    >>> x = gradus.randn(4, 2)
    >>> gradus.allclose(nn.utils.fuse_linear_bn_eval(linear, bn)(x), bn(linear(x)), atol=1e-6)
    True
    """
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
                             f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}")
    return _fused(linear, bn, fuse_linear_bn_weights)


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """Returns (weight, bias) of one linear layer that replaces the linear layer (linear_w, linear_b) and the batch norm after it."""
    bias_dtype = linear_w.dtype if linear_b is None else linear_b.dtype
    linear_b = gradus.zeros_like(bn_rm) if linear_b is None else linear_b
    scale = bn_w * gradus.rsqrt(bn_rv + bn_eps)
    weight = linear_w * scale.unsqueeze(-1).to(dtype=linear_w.dtype)
    bias = ((linear_b - bn_rm) * scale + bn_b).to(dtype=bias_dtype)
    return Parameter(weight, linear_w.requires_grad), Parameter(bias, linear_b.requires_grad)
