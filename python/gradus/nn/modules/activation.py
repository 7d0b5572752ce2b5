"""Activations as modules. The formulas are those of the functions of the same names in gradus.nn.functional."""
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
    """An activation whose one option is to write over its input."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


class _Alpha(Module):
    """An activation with a scale alpha."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def extra_repr(self):
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class _Lambda(Module):
    """An activation with a threshold lambd."""

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def extra_repr(self):
        return str(self.lambd)


class _AlongDim(Module):
    """An activation along a dimension."""

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def extra_repr(self):
        return f"dim={self.dim}"


class ReLU(_InPlace):
    """max(input, 0).

    >>> nn.ReLU()(gradus.tensor([-1., 2.])).tolist()
    [0.0, 2.0]
    """

    def forward(self, input):
        return F.relu(input, self.inplace)


class Sigmoid(Module):
    """1 / (1 + exp(-input))."""

    def forward(self, input):
        return input.sigmoid()


class Tanh(Module):
    """Hyperbolic tangent."""

    def forward(self, input):
        return input.tanh()


class GELU(Module):
    """input * Phi(input) with the normal distribution function Phi; approximate="tanh": by a formula with tanh.

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
    """input * sigmoid(input)."""

    def forward(self, input):
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """input * tanh(softplus(input))."""

    def forward(self, input):
        return F.mish(input, self.inplace)


class SELU(_InPlace):
    """ELU with the scales that keep mean 0 and variance 1."""

    def forward(self, input):
        return F.selu(input, self.inplace)


class Hardswish(_InPlace):
    """input * min(max(input + 3, 0), 6) / 6."""

    def forward(self, input):
        return F.hardswish(input, self.inplace)

    def extra_repr(self):
        return ""


class Hardsigmoid(_InPlace):
    """min(max(input / 6 + 1/2, 0), 1)."""

    def forward(self, input):
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self):
        return ""


class ELU(_Alpha):
    """input where positive, alpha (exp(input) - 1) elsewhere."""

    def forward(self, input):
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Alpha):
    """max(input, 0) + min(alpha (exp(input / alpha) - 1), 0)."""

    def forward(self, input):
        return F.celu(input, self.alpha, self.inplace)


class LeakyReLU(Module):
    """input where positive, negative_slope * input elsewhere."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input):
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self):
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """input where positive, weight * input elsewhere. weight is learned: one number, or num_parameters of them, for each index of dimension 1.

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
        """Sets the weight to init."""
        initialize.constant_(self.weight, self.init)

    def forward(self, input):
        return F.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """LeakyReLU with slopes drawn uniformly from [lower, upper) while training, their middle otherwise."""

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
    """input where it is above threshold, value elsewhere."""

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
    """min(max(input, min_val), max_val). AssertionError: max_val is not above min_val."""

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
    """min(max(input, 0), 6)."""

    def __init__(self, inplace: bool = False):
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


class GLU(Module):
    """a * sigmoid(b), where a and b are the halves of the input along dim: (…, 2 n, …) gives (…, n, …)."""

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return F.glu(input, self.dim)

    def extra_repr(self):
        return f"dim={self.dim}"


class Hardshrink(_Lambda):
    """input where it is outside [-lambd, lambd], 0 inside."""

    def forward(self, input):
        return F.hardshrink(input, self.lambd)


class Softshrink(_Lambda):
    """input brought nearer to 0 by lambd; 0 inside [-lambd, lambd]."""

    def forward(self, input):
        return F.softshrink(input, self.lambd)


class Tanhshrink(Module):
    """input - tanh(input)."""

    def forward(self, input):
        return F.tanhshrink(input)


class Softsign(Module):
    """input / (1 + |input|)."""

    def forward(self, input):
        return F.softsign(input)


class Softplus(Module):
    """log(1 + exp(beta * input)) / beta; input itself where beta * input is above threshold."""

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input):
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self):
        return f"beta={self.beta}, threshold={self.threshold}"


class LogSigmoid(Module):
    """log(sigmoid(input)), accurate at both ends."""

    def forward(self, input):
        return F.logsigmoid(input)


class Softmax(_AlongDim):
    """exp(input), divided by its sum along dim.

    >>> nn.Softmax(dim=1)(gradus.zeros(1, 2)).tolist()
    [[0.5, 0.5]]
    """

    def forward(self, input):
        return F.softmax(input, self.dim, _stacklevel=5)


class Softmin(_AlongDim):
    """Softmax of -input."""

    def forward(self, input):
        return F.softmin(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """The logarithm of Softmax."""

    def forward(self, input):
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels of (C, H, W) or (N, C, H, W). ValueError: another number of dimensions."""

    def forward(self, input):
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)


from .attention import MultiheadAttention  # noqa: E402  PyTorch has it here; it is a Module over layers that need this one
