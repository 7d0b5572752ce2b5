"""Initialization of parameters. Each function fills a tensor in place, without recording it for autograd, and returns the tensor.

With the same seed these functions draw the same numbers as PyTorch.
"""
from __future__ import annotations

import math
import warnings

import gradus
from gradus import _C


def calculate_gain(nonlinearity, param=None):
    """Returns the gain of an activation. If the standard deviation of the weights is multiplied by the gain, the activation preserves the variance.

    param: the negative slope of leaky_relu, 0.01 when None; ignored for other activations. Raises ValueError for an unknown activation.

    >>> nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    if param is None:
        param = 0.01
    if isinstance(param, bool) or not isinstance(param, (int, float)):
        raise ValueError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + param ** 2))


_GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4, "sigmoid": 1, "linear": 1, "conv1d": 1, "conv2d": 1, "conv3d": 1,
          "conv_transpose1d": 1, "conv_transpose2d": 1, "conv_transpose3d": 1}


# ---- Constant values --------------------------------------------------------------------------------------------------------


def constant_(tensor, val):
    """Sets every element to `val`."""
    with gradus.no_grad():
        return tensor.fill_(val)


def ones_(tensor):
    """Sets every element to 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor):
    """Sets every element to 0."""
    with gradus.no_grad():
        return tensor.zero_()


def eye_(tensor):
    """Fills a matrix with the identity matrix. Raises ValueError if the tensor does not have two dimensions.

    >>> nn.init.eye_(gradus.empty(2, 2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with gradus.no_grad():
        tensor.zero_().diagonal().fill_(1)
    return tensor


def dirac_(tensor, groups=1):
    """Fills the weight of a convolution with the Dirac delta, so that the convolution copies input channel i to output channel i of each group.

    Element [i, i] of a group is 1 in the middle of the kernel; all other elements are 0. Raises ValueError if the tensor does not have three to five
    dimensions, or if its first size is not divisible by `groups`.
    """
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    channels = tensor.size(0) // groups
    with gradus.no_grad():
        tensor.zero_()
        middle = tensor
        for size in tensor.shape[2:]:
            middle = middle.select(2, size // 2)
        for group in range(groups):
            middle.narrow(0, group * channels, channels).diagonal().fill_(1)
    return tensor


# ---- Random values ----------------------------------------------------------------------------------------------------------


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Fills the tensor with numbers drawn uniformly from [a, b)."""
    with gradus.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Fills the tensor with numbers drawn from the normal distribution with the given mean and standard deviation."""
    with gradus.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Fills the tensor with numbers drawn from the normal distribution with the given mean and standard deviation, restricted to [a, b]."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn("mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.",
                      stacklevel=2)
    inside = math.erf((b - mean) / std / math.sqrt(2)) / 2 - math.erf((a - mean) / std / math.sqrt(2)) / 2
    # `inside` is the probability that a normal number falls into [a, b]. If it is above 0.3, normal numbers outside [a, b] are drawn again.
    # Otherwise too few normal numbers fall there. Uniform numbers in [a, b] are drawn instead, and accepted in proportion to the normal density.
    with gradus.no_grad():
        return tensor.copy_(_C._truncated_normal(tensor, mean, std, a, b, inside > 0.3, generator=generator))


def _calculate_fan_in_and_fan_out(tensor):
    """Returns (fan_in, fan_out): the number of inputs of each output, and the number of outputs that each input contributes to."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def _calculate_correct_fan(tensor, mode):
    """Returns fan_in or fan_out of the tensor, whichever `mode` names. Raises ValueError for another mode."""
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Fills the tensor with numbers drawn uniformly from [-b, b), where b = gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Fills the tensor with normal numbers of standard deviation gain * sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    return normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


def _xavier_std(tensor, gain):
    """Returns gain * sqrt(2 / (fan_in + fan_out)), the standard deviation of Glorot and Bengio's initialization."""
    return gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Fills the tensor with numbers drawn uniformly from [-b, b), where b = gain * sqrt(3 / fan) and fan is fan_in or fan_out, as `mode` says (He et
    al., 2015).

    a: the negative slope of leaky_relu. mode: "fan_in" or "fan_out". nonlinearity: the activation that determines the gain, see calculate_gain.
    """
    if tensor.numel() == 0:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Fills the tensor with normal numbers of standard deviation gain / sqrt(fan), where fan is fan_in or fan_out, as `mode` says (He et al., 2015).

    a: the negative slope of leaky_relu. mode: "fan_in" or "fan_out". nonlinearity: the activation that determines the gain, see calculate_gain.
    """
    if tensor.numel() == 0:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    return normal_(tensor, 0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    """Returns gain / sqrt(fan), the standard deviation of He's initialization. `mode` selects fan_in or fan_out, `nonlinearity` and `a` the gain."""
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def orthogonal_(tensor, gain=1, generator=None):
    """Fills the tensor with a random (semi-)orthogonal matrix times `gain` (Saxe et al., 2013). The matrix has
    tensor.size(0) rows. Its columns are the other dimensions of the tensor, flattened.

    Raises ValueError if the tensor has less than two dimensions.
    """
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    flat = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
    q = _C._orthogonal_columns(flat.t() if rows < columns else flat)
    with gradus.no_grad():
        tensor.view(rows, columns).copy_(q.t() if rows < columns else q)
        return tensor.mul_(gain)


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Fills a matrix with normal numbers of standard deviation `std`, and sets the fraction `sparsity` of each column to 0 (Martens, 2010).

    Raises ValueError if the tensor does not have two dimensions.
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with gradus.no_grad():
        tensor.normal_(0, std, generator=generator)
        return tensor.copy_(_C._sparse_columns(tensor, math.ceil(sparsity * tensor.size(0))))


def _make_deprecate(meth):
    """Returns a function that warns and calls `meth`. The function has the deprecated name: that of `meth` without the final underscore."""
    old = meth.__name__[:-1]

    def deprecated_init(*args, **kwargs):
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{meth.__name__}`.", FutureWarning, stacklevel=2)
        return meth(*args, **kwargs)

    deprecated_init.__name__, deprecated_init.__doc__ = old, f"The old name of {meth.__name__}."
    return deprecated_init


uniform = _make_deprecate(uniform_)
normal = _make_deprecate(normal_)
constant = _make_deprecate(constant_)
eye = _make_deprecate(eye_)
dirac = _make_deprecate(dirac_)
xavier_uniform = _make_deprecate(xavier_uniform_)
xavier_normal = _make_deprecate(xavier_normal_)
kaiming_uniform = _make_deprecate(kaiming_uniform_)
kaiming_normal = _make_deprecate(kaiming_normal_)
orthogonal = _make_deprecate(orthogonal_)
sparse = _make_deprecate(sparse_)
