"""Borders around the last one, two or three dimensions."""
from __future__ import annotations

from .. import functional as F
from .module import Module
from .utils import _ntuple

__all__ = [f"{kind}Pad{n}d" for kind in ("Constant", "Zero", "Reflection", "Replication", "Circular") for n in (1, 2, 3)]


class _Pad(Module):
    _ndim: int  # the dimensions that get a border
    _mode: str

    def __init__(self, padding):
        super().__init__()
        self.padding = _ntuple(2 * self._ndim)(padding)

    def forward(self, input):
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    _mode = "constant"

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, self._mode, self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """`value` around the last dimension: padding is (before, after), or one number for both.

    >>> nn.ConstantPad1d((1, 2), 9)(gradus.tensor([[1, 2]])).tolist()
    [[9, 1, 2, 9, 9]]
    """

    _ndim = 1


class ConstantPad2d(_ConstantPadNd):
    """ConstantPad1d for the last two dimensions: (left, right, top, bottom)."""

    _ndim = 2


class ConstantPad3d(_ConstantPadNd):
    """ConstantPad1d for the last three dimensions: (left, right, top, bottom, front, back)."""

    _ndim = 3


class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad):
    """Zeros around the last dimension: padding is (before, after), or one number for both."""

    _ndim = 1


class ZeroPad2d(_ZeroPad):
    """ZeroPad1d for the last two dimensions: (left, right, top, bottom)."""

    _ndim = 2


class ZeroPad3d(_ZeroPad):
    """ZeroPad1d for the last three dimensions: (left, right, top, bottom, front, back)."""

    _ndim = 3


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """The last dimension goes on as its mirror image, without the element at the border. RuntimeError: a border as long as the dimension.

    >>> nn.ReflectionPad1d(2)(gradus.tensor([[1., 2., 3.]])).tolist()
    [[3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0]]
    """

    _ndim = 1


class ReflectionPad2d(_ReflectionPadNd):
    """ReflectionPad1d for the last two dimensions: (left, right, top, bottom)."""

    _ndim = 2


class ReflectionPad3d(_ReflectionPadNd):
    """ReflectionPad1d for the last three dimensions: (left, right, top, bottom, front, back)."""

    _ndim = 3


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """The elements at both ends of the last dimension, repeated.

    >>> nn.ReplicationPad1d((1, 2))(gradus.tensor([[1., 2.]])).tolist()
    [[1.0, 1.0, 2.0, 2.0, 2.0]]
    """

    _ndim = 1


class ReplicationPad2d(_ReplicationPadNd):
    """ReplicationPad1d for the last two dimensions: (left, right, top, bottom)."""

    _ndim = 2


class ReplicationPad3d(_ReplicationPadNd):
    """ReplicationPad1d for the last three dimensions: (left, right, top, bottom, front, back)."""

    _ndim = 3


class _CircularPadNd(_Pad):
    _mode = "circular"


class CircularPad1d(_CircularPadNd):
    """The last dimension goes on at its other end.

    >>> nn.CircularPad1d(1)(gradus.tensor([[1., 2., 3.]])).tolist()
    [[3.0, 1.0, 2.0, 3.0, 1.0]]
    """

    _ndim = 1


class CircularPad2d(_CircularPadNd):
    """CircularPad1d for the last two dimensions: (left, right, top, bottom)."""

    _ndim = 2


class CircularPad3d(_CircularPadNd):
    """CircularPad1d for the last three dimensions: (left, right, top, bottom, front, back)."""

    _ndim = 3
