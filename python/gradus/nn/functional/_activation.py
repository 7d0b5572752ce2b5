"""Activations. Each is elementwise unless it says otherwise; inplace writes the result over the input."""
from __future__ import annotations

import warnings

import gradus
from gradus import _C

from ._arguments import require

__all__ = ["celu", "celu_", "elu", "elu_", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_",
           "leaky_relu", "leaky_relu_", "log_softmax", "logsigmoid", "mish", "prelu", "relu", "relu6", "relu_", "rrelu", "rrelu_", "selu", "selu_",
           "sigmoid", "silu", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "threshold_"]

_nn = _C.nn


def relu(input, inplace=False):
    """max(input, 0)."""
    return _C.relu_(input) if inplace else _C.relu(input)


def relu_(input):
    """relu in place."""
    return _C.relu_(input)


def relu6(input, inplace=False):
    """min(max(input, 0), 6)."""
    return _nn.relu6_(input) if inplace else _nn.relu6(input)


def threshold(input, threshold, value, inplace=False):
    """input where it is above threshold, value elsewhere."""
    return _nn.threshold_(input, threshold, value) if inplace else _nn.threshold(input, threshold, value)


def threshold_(input, threshold, value):
    """threshold in place."""
    return _nn.threshold_(input, threshold, value)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """min(max(input, min_val), max_val). ValueError: min_val is above max_val."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _nn.hardtanh_(input, min_val, max_val) if inplace else _nn.hardtanh(input, min_val, max_val)


def elu(input, alpha=1.0, inplace=False):
    """input where positive, alpha (exp(input) - 1) elsewhere."""
    return _nn.elu_(input, alpha) if inplace else _nn.elu(input, alpha)


def elu_(input, alpha=1.0):
    """elu in place."""
    return _nn.elu_(input, alpha)


def selu(input, inplace=False):
    """scale (max(input, 0) + min(alpha (exp(input) - 1), 0)) with the constants that keep mean 0 and variance 1 (Klambauer et al., 2017)."""
    return _nn.selu_(input) if inplace else _nn.selu(input)


def selu_(input):
    """selu in place."""
    return _nn.selu_(input)


def celu(input, alpha=1.0, inplace=False):
    """max(input, 0) + min(alpha (exp(input / alpha) - 1), 0)."""
    return _nn.celu_(input, alpha) if inplace else _nn.celu(input, alpha)


def celu_(input, alpha=1.0):
    """celu in place."""
    return _nn.celu_(input, alpha)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """input where positive, negative_slope * input elsewhere."""
    return _nn.leaky_relu_(input, negative_slope) if inplace else _nn.leaky_relu(input, negative_slope)


def leaky_relu_(input, negative_slope=0.01):
    """leaky_relu in place."""
    return _nn.leaky_relu_(input, negative_slope)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """leaky_relu with slopes drawn uniformly from [lower, upper) for each element that is not positive; with their middle if not training."""
    return _rrelu(input, lower, upper, training, inplace, None)


def _rrelu(input, lower, upper, training, inplace, generator):
    name = "rrelu_" if inplace else "rrelu"
    require(name, "Tensor", input=input)
    require(name, "Number", lower=lower, upper=upper)
    require(name, "bool", training=training)
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    negative = input <= 0
    drawn = gradus.empty(int(negative.sum()), dtype=gradus.float64, device=input.device).uniform_(lower, upper, generator=generator)
    slope = gradus.ones_like(input.detach())
    slope[negative] = drawn.to(input.dtype)
    return input.mul_(slope) if inplace else input * slope


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    """rrelu in place."""
    return rrelu(input, lower, upper, training, inplace=True)


def glu(input, dim=-1):
    """a * sigmoid(b), where a and b are the halves of input along dim. RuntimeError: that dimension is odd."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return _nn.glu(input, dim)


gelu = _nn.gelu
hardtanh_ = _nn.hardtanh_
hardshrink = _nn.hardshrink
logsigmoid = _nn.logsigmoid
prelu = _nn.prelu
softplus = _nn.softplus
softshrink = _nn.softshrink
softsign = _nn.softsign
tanhshrink = _nn.tanhshrink


def silu(input, inplace=False):
    """input * sigmoid(input)."""
    return _nn.silu_(input) if inplace else _nn.silu(input)


def mish(input, inplace=False):
    """input * tanh(softplus(input))."""
    return _nn.mish_(input) if inplace else _nn.mish(input)


def hardsigmoid(input, inplace=False):
    """min(max(input / 6 + 1/2, 0), 1)."""
    return _nn.hardsigmoid_(input) if inplace else _nn.hardsigmoid(input)


def hardswish(input, inplace=False):
    """input * min(max(input + 3, 0), 6) / 6."""
    return _nn.hardswish_(input) if inplace else _nn.hardswish(input)


def tanh(input):
    """Hyperbolic tangent."""
    return input.tanh()


def sigmoid(input):
    """1 / (1 + exp(-input))."""
    return input.sigmoid()


def _implicit_dim(name, ndim, stacklevel):
    warnings.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
                  stacklevel=stacklevel)
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(input), divided by its sum along dim. dtype: converted to before.

    >>> F.softmax(gradus.zeros(4), dim=0).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if dim is None:
        dim = _implicit_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax of -input."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim(), _stacklevel)
    return softmax(-input, dim, dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """The logarithm of softmax, accurate where softmax is near 0. dtype: converted to before."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """softmax((logits + Gumbel noise) / tau) along dim: a sample that can be differentiated.

    hard: the result is the one-hot vector of the largest, with the gradient of the soft sample. eps is not used.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -gradus.empty_like(logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    largest = soft.max(dim, keepdim=True)[1]
    return gradus.zeros_like(logits).scatter_(dim, largest, 1.0) - soft.detach() + soft
