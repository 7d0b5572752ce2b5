"""Activation functions as modules. Each computes the function of the same name in gradus.nn.functional."""
from __future__ import annotations

import warnings

import gradus

from .. import functional as F
from .. import init as initialize
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear as NonDynamicallyQuantizableLinear
from .module import Module

__all__ = ["MultiheadAttention", "Threshold", "ReLU", "RReLU", "Hardtanh", "ReLU6", "Sigmoid", "Hardsigmoid", "Tanh", "SiLU", "Mish", "Hardswish", "ELU", "CELU",
           "SELU", "GLU", "GELU", "Hardshrink", "LeakyReLU", "LogSigmoid", "Softplus", "Softshrink", "PReLU", "Softsign", "Tanhshrink",
           "Softmin", "Softmax", "Softmax2d", "LogSoftmax"]


class _InPlace(Module):
    """Base of activations with the option `inplace`. If it is true, forward overwrites the input with the result."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


class _Alpha(Module):
    """Base of activations with the parameter alpha."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def extra_repr(self):
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class _Lambda(Module):
    """Base of activations with the threshold lambd."""

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def extra_repr(self):
        return str(self.lambd)


class _AlongDim(Module):
    """Base of activations along dimension `dim`."""

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def extra_repr(self):
        return f"dim={self.dim}"


class ReLU(_InPlace):
    """Computes max(input, 0).

    >>> nn.ReLU()(gradus.tensor([-1., 2.])).tolist()
    [0.0, 2.0]
    """

    def forward(self, input):
        return F.relu(input, self.inplace)


class Sigmoid(Module):
    """Computes 1 / (1 + exp(-input))."""

    def forward(self, input):
        return input.sigmoid()


class Tanh(Module):
    """Computes the hyperbolic tangent."""

    def forward(self, input):
        return input.tanh()


class GELU(Module):
    """Computes input * Phi(input), where Phi is the distribution function of the standard normal distribution (Hendrycks and Gimpel, 2016).

    approximate: "none", or "tanh" for the approximation of Phi by tanh.

    >>> nn.GELU("tanh")
    GELU(approximate='tanh')
    """

    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input):
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self):
        return f"approximate={self.approximate!r}"


class SiLU(_InPlace):
    """Computes input * sigmoid(input)."""

    def forward(self, input):
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """Computes input * tanh(softplus(input))."""

    def forward(self, input):
        return F.mish(input, self.inplace)


class SELU(_InPlace):
    """Computes scale * ELU(input) with the constants that preserve mean 0 and variance 1 (Klambauer et al., 2017)."""

    def forward(self, input):
        return F.selu(input, self.inplace)


class Hardswish(_InPlace):
    """Computes input * min(max(input + 3, 0), 6) / 6."""

    def forward(self, input):
        return F.hardswish(input, self.inplace)

    def extra_repr(self):
        return ""


class Hardsigmoid(_InPlace):
    """Computes min(max(input / 6 + 1/2, 0), 1)."""

    def forward(self, input):
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self):
        return ""


class ELU(_Alpha):
    """Computes input where it is positive, alpha * (exp(input) - 1) elsewhere."""

    def forward(self, input):
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Alpha):
    """Computes max(input, 0) + min(alpha * (exp(input / alpha) - 1), 0)."""

    def forward(self, input):
        return F.celu(input, self.alpha, self.inplace)


class LeakyReLU(Module):
    """Computes input where it is positive, negative_slope * input elsewhere."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input):
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self):
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """Computes input where it is positive, weight * input elsewhere. The weight is trained.

    num_parameters: 1 for a single weight, or the number of channels (the size of dimension 1) for one weight per channel. init: the initial weight.

    >>> nn.PReLU(init=0.5)(gradus.tensor([-1., 2.])).tolist()
    [-0.5, 2.0]
    """

    def __init__(self, num_parameters: int = 1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(gradus.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self):
        """Sets the weight to `init`."""
        initialize.constant_(self.weight, self.init)

    def forward(self, input):
        return F.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """Computes LeakyReLU with slopes drawn uniformly from [lower, upper) in training mode, and with slope (lower + upper) / 2 otherwise."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False):
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input):
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self):
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Threshold(Module):
    """Computes input where it is greater than `threshold`, `value` elsewhere."""

    def __init__(self, threshold, value, inplace: bool = False):
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input):
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self):
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class Hardtanh(Module):
    """Computes min(max(input, min_val), max_val). Raises AssertionError unless max_val > min_val."""

    def __init__(self, min_val=-1.0, max_val=1.0, inplace: bool = False, min_value=None, max_value=None):
        super().__init__()
        if min_value is not None:
            warnings.warn("keyword argument `min_value` is deprecated and renamed to `min_val`", FutureWarning, stacklevel=2)
            min_val = min_value
        if max_value is not None:
            warnings.warn("keyword argument `max_value` is deprecated and renamed to `max_val`", FutureWarning, stacklevel=2)
            max_val = max_value
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input):
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """Computes min(max(input, 0), 6)."""

    def __init__(self, inplace: bool = False):
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


class GLU(Module):
    """Computes a * sigmoid(b), where a and b are the two halves of the input along `dim`. (..., 2 n, ...) becomes (..., n, ...)."""

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return F.glu(input, self.dim)

    def extra_repr(self):
        return f"dim={self.dim}"


class Hardshrink(_Lambda):
    """Computes input where it is outside [-lambd, lambd], 0 elsewhere."""

    def forward(self, input):
        return F.hardshrink(input, self.lambd)


class Softshrink(_Lambda):
    """Computes sign(input) * max(|input| - lambd, 0)."""

    def forward(self, input):
        return F.softshrink(input, self.lambd)


class Tanhshrink(Module):
    """Computes input - tanh(input)."""

    def forward(self, input):
        return F.tanhshrink(input)


class Softsign(Module):
    """Computes input / (1 + |input|)."""

    def forward(self, input):
        return F.softsign(input)


class Softplus(Module):
    """Computes log(1 + exp(beta * input)) / beta. Returns input where beta * input > threshold, to avoid overflow."""

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input):
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self):
        return f"beta={self.beta}, threshold={self.threshold}"


class LogSigmoid(Module):
    """Computes log(sigmoid(input)) without overflow or underflow."""

    def forward(self, input):
        return F.logsigmoid(input)


class Softmax(_AlongDim):
    """Computes exp(input) divided by its sum along `dim`.

    >>> nn.Softmax(dim=1)(gradus.zeros(1, 2)).tolist()
    [[0.5, 0.5]]
    """

    def forward(self, input):
        return F.softmax(input, self.dim, _stacklevel=5)


class Softmin(_AlongDim):
    """Computes softmax(-input) along `dim`."""

    def forward(self, input):
        return F.softmin(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """Computes log(softmax(input)) along `dim`."""

    def forward(self, input):
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Computes softmax over the channels of (C, H, W) or (N, C, H, W). Raises ValueError for another number of dimensions."""

    def forward(self, input):
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)


from .attention import MultiheadAttention  # noqa: E402  exported from this module too, because PyTorch defines it here
