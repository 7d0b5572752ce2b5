"""Padding of the last one, two or three dimensions."""
from __future__ import annotations

from .. import functional as F
from .module import Module
from .utils import _ntuple

__all__ = [f"{kind}Pad{n}d" for kind in ("Constant", "Zero", "Reflection", "Replication", "Circular") for n in (1, 2, 3)]


class _Pad(Module):
    """Base of padding modules. padding: one number for all sides, or a flat tuple (before, after, before, after, ...) that starts with the last
    dimension."""

    _ndim: int  # the number of padded dimensions
    _mode: str

    def __init__(self, padding):
        super().__init__()
        self.padding = _ntuple(2 * self._ndim)(padding)

    def forward(self, input):
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    """Base of padding with a constant value."""

    _mode = "constant"

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, self._mode, self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with `value`. padding: (before, after), or one number for both.

    >>> nn.ConstantPad1d((1, 2), 9)(gradus.tensor([[1, 2]])).tolist()
    [[9, 1, 2, 9, 9]]
    """

    _ndim = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with `value`. padding: (left, right, top, bottom), or one number for all."""

    _ndim = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with `value`. padding: (left, right, top, bottom, front, back), or one number for all."""

    _ndim = 3


class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad):
    """Pads the last dimension with zeros. padding: (before, after), or one number for both."""

    _ndim = 1


class ZeroPad2d(_ZeroPad):
    """Pads the last two dimensions with zeros. padding: (left, right, top, bottom), or one number for all."""

    _ndim = 2


class ZeroPad3d(_ZeroPad):
    """Pads the last three dimensions with zeros. padding: (left, right, top, bottom, front, back), or one number for all."""

    _ndim = 3


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Pads the last dimension by reflection, without repeating the border element. padding: (before, after), or one number for both.

    Raises RuntimeError if the padding is not smaller than the dimension.

    >>> nn.ReflectionPad1d(2)(gradus.tensor([[1., 2., 3.]])).tolist()
    [[3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0]]
    """

    _ndim = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pads the last two dimensions by reflection. padding: (left, right, top, bottom), or one number for all."""

    _ndim = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pads the last three dimensions by reflection. padding: (left, right, top, bottom, front, back), or one number for all."""

    _ndim = 3


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Pads the last dimension by repeating its border elements. padding: (before, after), or one number for both.

    >>> nn.ReplicationPad1d((1, 2))(gradus.tensor([[1., 2.]])).tolist()
    [[1.0, 1.0, 2.0, 2.0, 2.0]]
    """

    _ndim = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pads the last two dimensions by repeating border elements. padding: (left, right, top, bottom), or one number for all."""

    _ndim = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pads the last three dimensions by repeating border elements. padding: (left, right, top, bottom, front, back), or one number for all."""

    _ndim = 3


class _CircularPadNd(_Pad):
    _mode = "circular"


class CircularPad1d(_CircularPadNd):
    """Pads the last dimension periodically, with elements from its other end. padding: (before, after), or one number for both.

    >>> nn.CircularPad1d(1)(gradus.tensor([[1., 2., 3.]])).tolist()
    [[3.0, 1.0, 2.0, 3.0, 1.0]]
    """

    _ndim = 1


class CircularPad2d(_CircularPadNd):
    """Pads the last two dimensions periodically. padding: (left, right, top, bottom), or one number for all."""

    _ndim = 2


class CircularPad3d(_CircularPadNd):
    """Pads the last three dimensions periodically. padding: (left, right, top, bottom, front, back), or one number for all."""

    _ndim = 3
