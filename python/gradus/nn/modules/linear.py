"""Modules whose output is linear in their inputs: Linear, LazyLinear, Bilinear and Identity."""
from __future__ import annotations

import math

import gradus

from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """Returns its input. The constructor accepts any arguments, so that Identity can replace any module.

    >>> nn.Identity(54, unused=True)(3)
    3
    """

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        return input


class Linear(Module):
    """Computes input @ weight^T + bias. Input (..., in_features) gives (..., out_features).

    weight has the shape (out_features, in_features), bias the shape (out_features,). If the argument `bias` is false, there is no bias.
    Initial values are drawn uniformly between -1 / sqrt(in_features) and 1 / sqrt(in_features).

    >>> layer = nn.Linear(20, 30)
    >>> tuple(layer(gradus.randn(128, 20)).shape)
    (128, 30)
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device=None, dtype=None):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(gradus.empty((out_features, in_features), device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(gradus.empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draws new random values for weight and bias."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))  # kaiming_uniform_ with a = sqrt(5) has the bound 1 / sqrt(in_features)
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input):
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class LazyLinear(LazyModuleMixin, Linear):
    """A Linear whose in_features is taken from the last size of its first input.

    >>> layer = nn.LazyLinear(3)
    >>> tuple(layer(gradus.randn(4, 5)).shape), layer
    ((4, 3), Linear(in_features=5, out_features=3, bias=True))
    """

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device=None, dtype=None):
        super().__init__(0, 0, False, device, dtype)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        self.bias = UninitializedParameter(device=device, dtype=dtype) if bias else None

    def reset_parameters(self):
        """Draws new random values if the sizes of the parameters are known already."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        """Gives the parameters their shapes, with the last size of `input` as in_features, and draws their values."""
        if self.has_uninitialized_params():
            with gradus.no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:
            if input.shape[-1] != self.weight.shape[-1]:
                raise AssertionError(f"The in_features inferred from input: {input.shape[-1]} is not equal to in_features from self.weight: {self.weight.shape[-1]}")
            self.in_features = input.shape[-1]


class Bilinear(Module):
    """Computes input1^T weight[k] input2 + bias[k] for each k. (..., in1_features) and (..., in2_features) give (..., out_features).

    weight has the shape (out_features, in1_features, in2_features), bias the shape (out_features,). If the argument `bias` is false, there is no
    bias. Initial values are drawn uniformly between -1 / sqrt(in1_features) and 1 / sqrt(in1_features). Raises ValueError if in1_features is not
    positive.

    >>> tuple(nn.Bilinear(3, 4, 5)(gradus.randn(8, 3), gradus.randn(8, 4)).shape)
    (8, 5)
    """

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device=None, dtype=None):
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(gradus.empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(gradus.empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draws new random values for weight and bias."""
        if self.in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={self.in1_features})")
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1, input2):
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self):
        return (f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}")


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear with another class name. As in PyTorch, MultiheadAttention uses this class for its output projection."""
