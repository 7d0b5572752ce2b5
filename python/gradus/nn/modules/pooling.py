"""Pooling modules. Each stores the arguments of a pooling function in gradus.nn.functional."""
from __future__ import annotations

from .. import functional as F
from .module import Module
from .utils import _pair, _single, _triple

__all__ = [f"{kind}{n}d" for kind in ("MaxPool", "AvgPool", "LPPool", "AdaptiveMaxPool", "AdaptiveAvgPool") for n in (1, 2, 3)]
__all__ += ["FractionalMaxPool2d", "FractionalMaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"]


# ---- Max pooling --------------------------------------------------------------------------------------------------------------------------

class _MaxPoolNd(Module):
    """Base of max pooling modules: stores the options of the pooling windows."""

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def _pooled(self, pool, input):
        """Returns the result of `pool`, a function of gradus.nn.functional, for the input and the module's options."""
        return pool(input, self.kernel_size, self.stride, self.padding, self.dilation, ceil_mode=self.ceil_mode, return_indices=self.return_indices)

    def extra_repr(self):
        return (f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
                f"ceil_mode={self.ceil_mode}")


class MaxPool1d(_MaxPoolNd):
    """Returns the largest element of each window of (N, C, L) or (C, L).

    kernel_size: the number of elements in a window. dilation: the distance between adjacent elements of a window. stride: the distance between the
    starts of adjacent windows; kernel_size when None.
    return_indices: also returns the index of each element, for MaxUnpool1d.

    >>> nn.MaxPool1d(2)(gradus.tensor([[1.0, 3.0, 2.0, 0.0]])).tolist()
    [[3.0, 2.0]]
    """

    def forward(self, input):
        return self._pooled(F.max_pool1d, input)


class MaxPool2d(_MaxPoolNd):
    """Returns the largest element of each window of (N, C, H, W) or (C, H, W).

    kernel_size: the (height, width) of a window, or one number for both. stride: the distance between the starts of adjacent windows; kernel_size
    when None. return_indices: also returns the index of each element in the flattened dimensions (H, W), for MaxUnpool2d.

    >>> nn.MaxPool2d(2)(gradus.arange(16.0).reshape(1, 4, 4)).tolist()
    [[[5.0, 7.0], [13.0, 15.0]]]
    """

    def forward(self, input):
        return self._pooled(F.max_pool2d, input)


class MaxPool3d(_MaxPoolNd):
    """Returns the largest element of each window of (N, C, D, H, W) or (C, D, H, W).

    kernel_size: the (depth, height, width) of a window, or one number for all. stride: the distance between the starts of adjacent windows;
    kernel_size when None. return_indices: also returns the index of each element in the flattened dimensions (D, H, W), for MaxUnpool3d.
    """

    def forward(self, input):
        return self._pooled(F.max_pool3d, input)


# ---- Average pooling ------------------------------------------------------------------------------------------------------------------------

class _AvgPoolNd(Module):
    """Base of average pooling modules: stores the options of the pooling windows."""

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def _pooled(self, pool, input):
        """Returns the result of `pool`, a function of gradus.nn.functional, for the input and the module's options."""
        return pool(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """Returns the average of each window of (N, C, L) or (C, L). count_include_pad: zeros of the padding count as elements of the window.

    >>> nn.AvgPool1d(2)(gradus.tensor([[1.0, 3.0, 2.0, 0.0]])).tolist()
    [[2.0, 1.0]]
    """

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__(_single(kernel_size), _single(stride if stride is not None else kernel_size), _single(padding), ceil_mode, count_include_pad)
        del self.divisor_override

    def forward(self, input):
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPool2d(_AvgPoolNd):
    """Returns the average of each window of (N, C, H, W) or (C, H, W).

    divisor_override: if given, the sum of a window is divided by this number, not by the number of elements.
    """

    def forward(self, input):
        return self._pooled(F.avg_pool2d, input)


class AvgPool3d(_AvgPoolNd):
    """Returns the average of each window of (N, C, D, H, W) or (C, D, H, W).

    divisor_override: if given, the sum of a window is divided by this number, not by the number of elements.
    """

    def forward(self, input):
        return self._pooled(F.avg_pool3d, input)


# ---- Power-average pooling ------------------------------------------------------------------------------------------------------------------

class _LPPoolNd(Module):
    """Base of power-average pooling modules, which compute (sum of x^norm_type)^(1 / norm_type) of each window."""

    def __init__(self, norm_type: float, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def _pooled(self, pool, input):
        """Returns the result of `pool`, a function of gradus.nn.functional, for the input and the module's options."""
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self):
        return f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"


class LPPool1d(_LPPoolNd):
    """Returns (sum of x^norm_type)^(1 / norm_type) of each window of (N, C, L) or (C, L)."""

    def forward(self, input):
        return self._pooled(F.lp_pool1d, input)


class LPPool2d(_LPPoolNd):
    """Returns (sum of x^norm_type)^(1 / norm_type) of each window of (N, C, H, W) or (C, H, W)."""

    def forward(self, input):
        return self._pooled(F.lp_pool2d, input)


class LPPool3d(_LPPoolNd):
    """Returns (sum of x^norm_type)^(1 / norm_type) of each window of (N, C, D, H, W) or (C, D, H, W)."""

    def forward(self, input):
        return self._pooled(F.lp_pool3d, input)


# ---- Adaptive pooling ------------------------------------------------------------------------------------------------------------------------

class _AdaptiveAvgPoolNd(Module):
    """Base of adaptive pooling modules. output_size: the number of windows, which together cover the input."""

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def extra_repr(self):
        return f"output_size={self.output_size}"


class _AdaptiveMaxPoolNd(_AdaptiveAvgPoolNd):
    """Base of adaptive max pooling modules. return_indices: also returns the index of each largest element."""

    def __init__(self, output_size, return_indices=False):
        super().__init__(output_size)
        self.return_indices = return_indices


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Divides the length of the input (N, C, L) or (C, L) into windows, one for each element of the output, and returns their largest elements.

    output_size: number of windows. return_indices: also returns the indices of the largest elements.
    """

    def forward(self, input):
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Divides the input (N, C, H, W) or (C, H, W) into windows, one for each element of the output, and returns their largest elements.

    output_size: (H, W) of the output, or one number for both; None stands for the size of the input in that dimension. return_indices: also returns
    the indices of the largest elements.
    """

    def forward(self, input):
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Divides the input (N, C, D, H, W) or (C, D, H, W) into windows, one for each element of the output, and returns their largest elements.

    output_size: (D, H, W) of the output, or one number for all; None stands for the size of the input in that dimension. return_indices: also
    returns the indices of the largest elements.
    """

    def forward(self, input):
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Divides the length of the input (N, C, L) or (C, L) into output_size windows and returns the average of each."""

    def forward(self, input):
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Divides the input (N, C, H, W) or (C, H, W) into windows, one for each element of the output, and returns their averages.

    output_size: (H, W) of the output, or one number for both. None stands for the size of the input in that dimension.

    >>> nn.AdaptiveAvgPool2d(1)(gradus.ones(2, 3, 4, 5)).shape
    torch.Size([2, 3, 1, 1])
    """

    def forward(self, input):
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Divides the input (N, C, D, H, W) or (C, D, H, W) into windows, one for each element of the output, and returns their averages.

    output_size: (D, H, W) of the output, or one number for all. None stands for the size of the input in that dimension.
    """

    def forward(self, input):
        return F.adaptive_avg_pool3d(input, self.output_size)


# ---- Fractional max pooling, and max unpooling ------------------------------------------------------------------------------------------------

class _FractionalMaxPoolNd(Module):
    """Base of fractional max pooling modules. Raises ValueError if both or neither of output_size and output_ratio are given, or if
    output_ratio is not in (0, 1)."""

    _tuple = staticmethod(_pair)

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        super().__init__()
        kind = type(self).__name__
        self.kernel_size = self._tuple(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = self._tuple(output_size) if output_size is not None else None
        self.output_ratio = self._tuple(output_ratio) if output_ratio is not None else None
        if output_size is None and output_ratio is None:
            raise ValueError(f"{kind} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def _pooled(self, pool, input):
        """Returns the result of `pool`, a function of gradus.nn.functional, for the input and the module's options."""
        return pool(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, _random_samples=self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Returns the largest element of each window of (N, C, H, W) or (C, H, W). Window positions are random (Graham, 2014).

    The number of windows is output_size, or output_ratio times the size of the input.
    """

    def forward(self, input):
        return self._pooled(F.fractional_max_pool2d, input)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Returns the largest element of each window of (N, C, D, H, W) or (C, D, H, W). Window positions are random (Graham, 2014).

    The number of windows is output_size, or output_ratio times the size of the input.
    """

    _tuple = staticmethod(_triple)

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        if any(isinstance(size, int) and size <= 0 for size in _triple(kernel_size)):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        super().__init__(kernel_size, output_size, output_ratio, return_indices, _random_samples)

    def forward(self, input):
        return self._pooled(F.fractional_max_pool3d, input)


class _MaxUnpoolNd(Module):
    """Base of max unpooling modules. kernel_size, stride and padding: the arguments of the max pooling to invert."""

    _tuple = staticmethod(_single)

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size = self._tuple(kernel_size)
        self.stride = self._tuple(stride if stride is not None else kernel_size)
        self.padding = self._tuple(padding)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Inverts MaxPool1d for (N, C, L) or (C, L): places the elements of `input` at `indices`, which MaxPool1d returned. All other elements are 0."""

    def forward(self, input, indices, output_size=None):
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpoolNd):
    """Inverts MaxPool2d for (N, C, H, W) or (C, H, W): places the elements of `input` at `indices`, which MaxPool2d returned. All other elements are
    0."""

    _tuple = staticmethod(_pair)

    def forward(self, input, indices, output_size=None):
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpoolNd):
    """Inverts MaxPool3d for (N, C, D, H, W) or (C, D, H, W): places the elements of `input` at `indices`, which MaxPool3d returned. All other
    elements are 0."""

    _tuple = staticmethod(_triple)

    def forward(self, input, indices, output_size=None):
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)
