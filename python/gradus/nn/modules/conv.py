"""Convolutions and transposed convolutions over one to three dimensions."""
from __future__ import annotations

import math

import gradus

from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module
from .utils import _pair, _reverse_repeat_tuple, _single, _triple

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d",
           "LazyConvTranspose2d", "LazyConvTranspose3d"]

_PADDINGS, _MODES = {"same", "valid"}, {"zeros", "reflect", "replicate", "circular"}


class _ConvNd(Module):
    """Base of convolutions with a weight and an optional bias of shape (out_channels).

    The weight is (out_channels, in_channels / groups, ...), or (in_channels, out_channels / groups, ...) if transposed. Initial values are drawn
    uniformly between -1 / sqrt(fan_in) and 1 / sqrt(fan_in). Raises ValueError for channels that `groups` does not divide, and for an unknown padding
    or padding_mode.
    """

    __constants__ = ["stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels", "out_channels", "kernel_size"]

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, transposed, output_padding, groups, bias, padding_mode, device=None,
                 dtype=None):
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in _PADDINGS:
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {_PADDINGS}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _MODES:
            raise ValueError(f"padding_mode must be one of {_MODES}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._both_sides()
        sizes = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(gradus.empty((*sizes, *kernel_size), device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(gradus.empty(out_channels, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def _both_sides(self):
        """Returns the padding before and after each dimension as a flat list, from the last dimension to the first, as F.pad expects.

        For padding "same", one more element is added after a dimension than before it if the total is odd.
        """
        if self.padding == "valid":
            return [0, 0] * len(self.kernel_size)
        if self.padding != "same":
            return _reverse_repeat_tuple(self.padding, 2)
        sides = []
        for dilation, size in zip(reversed(self.dilation), reversed(self.kernel_size)):
            total = dilation * (size - 1)
            sides += [total // 2, total - total // 2]
        return sides

    def reset_parameters(self):
        """Draws new random values for weight and bias."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self):
        dims = len(self.kernel_size)
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * dims:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * dims:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * dims:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def _conv_forward(self, input, weight, bias):
        """Returns the convolution of `input` with the given weight and bias. Padding modes other than "zeros" are applied by F.pad first."""
        if self.padding_mode == "zeros":
            return self._function(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return self._function(input, weight, bias, self.stride, 0, self.dilation, self.groups)

    def forward(self, input):
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_ConvNd):
    """Convolves an input (N, C, L), or (C, L), with the weight. The output is (N, out_channels, L').

    L' = (L + 2 padding - dilation (kernel_size - 1) - 1) // stride + 1. padding: a number, "same" or "valid". padding_mode: "zeros", "reflect",
    "replicate" or "circular". Raises ValueError for invalid arguments.

    >>> tuple(nn.Conv1d(16, 33, 3, stride=2)(gradus.randn(20, 16, 50)).shape)
    (20, 33, 24)
    """

    _function = staticmethod(F.conv1d)

    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, dilation=1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", device=None, dtype=None):
        padding = padding if isinstance(padding, str) else _single(padding)
        super().__init__(in_channels, out_channels, _single(kernel_size), _single(stride), padding, _single(dilation), False, _single(0), groups, bias, padding_mode,
                         device, dtype)


class Conv2d(_ConvNd):
    """Convolves an input (N, C, H, W), or (C, H, W), with the weight. The output is (N, out_channels, H', W').

    H' = (H + 2 padding - dilation (kernel_size - 1) - 1) // stride + 1, and W' likewise. kernel_size, stride, padding and dilation are one number, or
    a pair for H and W. padding may also be "same" or "valid". Raises ValueError for invalid arguments.

    >>> tuple(nn.Conv2d(16, 33, (3, 5), stride=(2, 1), padding=(4, 2))(gradus.randn(20, 16, 50, 100)).shape)
    (20, 33, 28, 100)
    """

    _function = staticmethod(F.conv2d)

    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, dilation=1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", device=None, dtype=None):
        padding = padding if isinstance(padding, str) else _pair(padding)
        super().__init__(in_channels, out_channels, _pair(kernel_size), _pair(stride), padding, _pair(dilation), False, _pair(0), groups, bias, padding_mode,
                         device, dtype)


class Conv3d(_ConvNd):
    """Convolves an input (N, C, D, H, W), or (C, D, H, W), with the weight. The output is (N, out_channels, D', H', W').

    D' = (D + 2 padding - dilation (kernel_size - 1) - 1) // stride + 1, and H' and W' likewise. kernel_size, stride, padding and dilation are one
    number, or three for D, H and W. padding may also be "same" or "valid". Raises ValueError for invalid arguments.

    >>> tuple(nn.Conv3d(16, 33, 3, stride=2)(gradus.randn(2, 16, 10, 5, 10)).shape)
    (2, 33, 4, 2, 4)
    """

    _function = staticmethod(F.conv3d)

    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, dilation=1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", device=None, dtype=None):
        padding = padding if isinstance(padding, str) else _triple(padding)
        super().__init__(in_channels, out_channels, _triple(kernel_size), _triple(stride), padding, _triple(dilation), False, _triple(0), groups, bias, padding_mode,
                         device, dtype)


class _ConvTransposeNd(_ConvNd):
    """Base of transposed convolutions. Raises ValueError for padding modes other than "zeros"."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, transposed, output_padding, groups, bias, padding_mode, device=None,
                 dtype=None):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {self.__class__.__name__}')
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, transposed, output_padding, groups, bias, padding_mode, device, dtype)

    def _output_padding(self, input, output_size):
        """Returns the output_padding with which the result has the sizes `output_size`. Raises ValueError if no output_padding gives these sizes."""
        if output_size is None:
            return self.output_padding
        dims = len(self.kernel_size)
        outer = input.dim() - dims
        if len(output_size) == outer + dims:
            output_size = output_size[outer:]
        if len(output_size) != dims:
            raise ValueError(f"ConvTranspose{dims}D: for {input.dim()}D input, output_size must have {dims} or {outer + dims} elements (got {len(output_size)})")
        least = [(input.size(d + outer) - 1) * self.stride[d] - 2 * self.padding[d] + self.dilation[d] * (self.kernel_size[d] - 1) + 1 for d in range(dims)]
        most = [size + stride - 1 for size, stride in zip(least, self.stride)]
        if any(not low <= size <= high for low, size, high in zip(least, output_size, most)):
            raise ValueError(f"requested an output size of {output_size}, but valid sizes range from {least} to {most} (for an input of {input.size()[2:]})")
        return [size - low for size, low in zip(output_size, least)]

    def forward(self, input, output_size=None):
        return self._function(input, self.weight, self.bias, self.stride, self.padding, self._output_padding(input, output_size), self.groups, self.dilation)


class ConvTranspose1d(_ConvTransposeNd):
    """Computes the transposed convolution of (N, C, L), or (C, L), to (N, out_channels, L').

    L' = (L - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1. The optional argument output_size of forward
    selects L' among the sizes that a Conv1d with these arguments would map to L. Raises ValueError for other sizes, and for padding modes other than
    "zeros".

    >>> tuple(nn.ConvTranspose1d(16, 33, 3, stride=2)(gradus.randn(20, 16, 50)).shape)
    (20, 33, 101)
    """

    _function = staticmethod(F.conv_transpose1d)

    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, output_padding=0, groups: int = 1, bias: bool = True, dilation=1,
                 padding_mode: str = "zeros", device=None, dtype=None):
        super().__init__(in_channels, out_channels, _single(kernel_size), _single(stride), _single(padding), _single(dilation), True, _single(output_padding),
                         groups, bias, padding_mode, device, dtype)


class ConvTranspose2d(_ConvTransposeNd):
    """Computes the transposed convolution of (N, C, H, W), or (C, H, W), to (N, out_channels, H', W').

    H' = (H - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1, and W' likewise. The optional argument
    output_size of forward selects H' and W' among the sizes that a Conv2d with these arguments would map to H and W.

    >>> tuple(nn.ConvTranspose2d(16, 16, 3, stride=2, padding=1)(gradus.randn(1, 16, 6, 6), output_size=[12, 12]).shape)
    (1, 16, 12, 12)
    """

    _function = staticmethod(F.conv_transpose2d)

    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, output_padding=0, groups: int = 1, bias: bool = True, dilation=1,
                 padding_mode: str = "zeros", device=None, dtype=None):
        super().__init__(in_channels, out_channels, _pair(kernel_size), _pair(stride), _pair(padding), _pair(dilation), True, _pair(output_padding), groups, bias,
                         padding_mode, device, dtype)


class ConvTranspose3d(_ConvTransposeNd):
    """Computes the transposed convolution of (N, C, D, H, W), or (C, D, H, W), to (N, out_channels, D', H', W').

    D' = (D - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1, and H' and W' likewise. The optional argument
    output_size of forward selects D', H' and W' among the sizes that a Conv3d with these arguments would map to D, H and W.

    >>> tuple(nn.ConvTranspose3d(4, 3, (3, 5, 2), stride=(2, 1, 1), padding=(0, 4, 2))(gradus.randn(2, 4, 5, 8, 9)).shape)
    (2, 3, 11, 4, 6)
    """

    _function = staticmethod(F.conv_transpose3d)

    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, output_padding=0, groups: int = 1, bias: bool = True, dilation=1,
                 padding_mode: str = "zeros", device=None, dtype=None):
        super().__init__(in_channels, out_channels, _triple(kernel_size), _triple(stride), _triple(padding), _triple(dilation), True, _triple(output_padding),
                         groups, bias, padding_mode, device, dtype)


# ---- Lazy convolutions ----------------------------------------------------------------------------------------------------------


class _LazyConvXdMixin(LazyModuleMixin):
    """Base of lazy convolutions. in_channels becomes the number of channels of the first input."""

    def _begin_lazily(self, out_channels, bias, device, dtype):
        """Replaces weight and bias by uninitialized parameters. It is called after the base class's constructor has made a convolution with
        in_channels = 0."""
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self):
        """Draws new random values for weight and bias. Does nothing before the first forward, when their sizes are unknown."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs):
        """Creates the parameters for the number of channels of `input`. Raises ValueError if `groups` does not divide that number."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        first, second = (self.in_channels, self.out_channels) if self.transposed else (self.out_channels, self.in_channels)
        self.weight.materialize((first, second // self.groups, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input):
        """Returns the number of channels of `input`. Raises RuntimeError unless `input` is (N, C, ...) or (C, ...) with as many spatial dimensions as
        the kernel."""
        single = len(self.kernel_size) + 1
        if input.dim() not in (single, single + 1):
            raise RuntimeError(f"Expected {single}D (unbatched) or {single + 1}D (batched) input to {type(self).__name__}, but got input of size: {input.shape}")
        return input.shape[-single]


class LazyConv1d(_LazyConvXdMixin, Conv1d):
    """A Conv1d whose in_channels is taken from its first input."""

    cls_to_become = Conv1d

    def __init__(self, out_channels: int, kernel_size, stride=1, padding=0, dilation=1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device=None,
                 dtype=None):
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._begin_lazily(out_channels, bias, device, dtype)


class LazyConv2d(_LazyConvXdMixin, Conv2d):
    """A Conv2d whose in_channels is taken from its first input.

    >>> conv = nn.LazyConv2d(8, 3)
    >>> tuple(conv(gradus.randn(1, 5, 9, 9)).shape), conv
    ((1, 8, 7, 7), Conv2d(5, 8, kernel_size=(3, 3), stride=(1, 1)))
    """

    cls_to_become = Conv2d

    def __init__(self, out_channels: int, kernel_size, stride=1, padding=0, dilation=1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device=None,
                 dtype=None):
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._begin_lazily(out_channels, bias, device, dtype)


class LazyConv3d(_LazyConvXdMixin, Conv3d):
    """A Conv3d whose in_channels is taken from its first input."""

    cls_to_become = Conv3d

    def __init__(self, out_channels: int, kernel_size, stride=1, padding=0, dilation=1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device=None,
                 dtype=None):
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._begin_lazily(out_channels, bias, device, dtype)


class LazyConvTranspose1d(_LazyConvXdMixin, ConvTranspose1d):
    """A ConvTranspose1d whose in_channels is taken from its first input."""

    cls_to_become = ConvTranspose1d

    def __init__(self, out_channels: int, kernel_size, stride=1, padding=0, output_padding=0, groups: int = 1, bias: bool = True, dilation=1, padding_mode: str = "zeros",
                 device=None, dtype=None):
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype)
        self._begin_lazily(out_channels, bias, device, dtype)


class LazyConvTranspose2d(_LazyConvXdMixin, ConvTranspose2d):
    """A ConvTranspose2d whose in_channels is taken from its first input."""

    cls_to_become = ConvTranspose2d

    def __init__(self, out_channels: int, kernel_size, stride=1, padding=0, output_padding=0, groups: int = 1, bias: bool = True, dilation=1, padding_mode: str = "zeros",
                 device=None, dtype=None):
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype)
        self._begin_lazily(out_channels, bias, device, dtype)


class LazyConvTranspose3d(_LazyConvXdMixin, ConvTranspose3d):
    """A ConvTranspose3d whose in_channels is taken from its first input."""

    cls_to_become = ConvTranspose3d

    def __init__(self, out_channels: int, kernel_size, stride=1, padding=0, output_padding=0, groups: int = 1, bias: bool = True, dilation=1, padding_mode: str = "zeros",
                 device=None, dtype=None):
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype)
        self._begin_lazily(out_channels, bias, device, dtype)
