"""Normalization over the last dimensions (LayerNorm, RMSNorm), groups of channels (GroupNorm) or adjacent channels (LocalResponseNorm)."""
from __future__ import annotations

from collections.abc import Sequence

import gradus

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


def _sizes(normalized_shape):
    """Returns normalized_shape as a tuple."""
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class Scaled(Module):
    """Base of normalizations that multiply the result by the parameter `weight` and add the parameter `bias`. Either may be None."""

    def _add_parameters(self, sizes, weight, bias, device, dtype):
        """Registers the parameters weight and bias with the shape `sizes`. If `weight` is false both are None; if `bias` is false the bias is
        None."""
        for name, wanted in (("weight", weight), ("bias", weight and bias)):
            self.register_parameter(name, Parameter(gradus.empty(sizes, device=device, dtype=dtype)) if wanted else None)

    def reset_parameters(self):
        """Sets the weight to 1 and the bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LocalResponseNorm(Module):
    """Computes input / (k + alpha * m)^beta, where m is the mean of squares over a window of `size` adjacent channels (Krizhevsky et al., 2012).

    Channels before the first and after the last count as 0.

    >>> tuple(nn.LocalResponseNorm(2)(gradus.randn(3, 5, 4)).shape)
    (3, 5, 4)
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """LocalResponseNorm with a window of 2 * ((size + 1) // 2) - 1 channels. The sum of squares is divided by `size`, not by the window's
    number of channels.

    Raises ValueError unless the input has four dimensions.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1):
        super().__init__(size, alpha, beta, k)

    def forward(self, input):
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        # `width`: the number of channels in the window. It is odd, so that the window is symmetric.
        width = 2 * ((self.size + 1) // 2) - 1
        return F.local_response_norm(input, width, self.alpha * width / self.size, self.beta, self.k)


class LayerNorm(Scaled):
    """Computes (input - mean) / sqrt(var + eps) * weight + bias over the last dimensions, whose sizes are normalized_shape (Ba et al., 2016).

    The weight is initially 1 and the bias 0. Without elementwise_affine both are None; without `bias` the bias is None.

    >>> norm = nn.LayerNorm(2)
    >>> norm(gradus.tensor([1., 3.])).tolist() == norm(gradus.tensor([2., 4.])).tolist()
    True
    """

    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True, device=None,
                 dtype=None):
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._add_parameters(self.normalized_shape, elementwise_affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
                f"bias={self.bias is not None}")


class RMSNorm(Module):
    """Computes input / sqrt(mean(input^2) + eps) * weight over the last dimensions, whose sizes are normalized_shape (Zhang and Sennrich, 2019).

    eps: if None, the machine epsilon of the dtype in which it is computed (float32 for half dtypes). The weight is initially 1; without
    elementwise_affine it is None.

    >>> tuple(nn.RMSNorm([2, 3])(gradus.randn(5, 2, 3)).shape)
    (5, 2, 3)
    """

    def __init__(self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        values = Parameter(gradus.empty(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", values)
        self.reset_parameters()

    def reset_parameters(self):
        """Sets the weight to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x):
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Scaled):
    """Normalizes groups of adjacent channels of each sample, then scales by weight and adds bias (Wu and He, 2018).

    Channels are dimension 1. num_groups: the number of groups. weight and bias have the shape (num_channels,). Raises ValueError if num_channels is
    not a multiple of num_groups.

    >>> nn.GroupNorm(1, 2)(gradus.tensor([[1., 3.]])).round(decimals=3).tolist()
    [[-1.0, 1.0]]
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device=None, dtype=None, *, bias: bool = True):
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._add_parameters(num_channels, affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"
