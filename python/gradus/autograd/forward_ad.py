"""Forward mode: dual tensors, which carry a tangent through what is computed of them.

    >>> from gradus.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     dual = forward_ad.make_dual(gradus.tensor(3.0), gradus.tensor(1.0))
    ...     forward_ad.unpack_dual(dual * dual).tangent
    tensor(6.)
"""
from contextlib import ContextDecorator
from typing import NamedTuple, Optional

from gradus import _C
from gradus._C import Tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


def enter_dual_level():
    """Begins a level, in which tensors may have tangents, and returns its number. A thread has one at a time: RuntimeError for a second."""
    _C._enter_dual_level()
    return 0


def exit_dual_level(*, level=None):
    """Ends the level. The tangents of it are gone."""
    if level:
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not supported.")
    _C._exit_dual_level()


def make_dual(tensor, tangent, *, level=None):
    """Returns a view of a tensor with a tangent: its derivative in one direction, of its sizes and dtype.

    RuntimeError: no level, other sizes or another dtype. ValueError: no floating point or complex numbers.
    """
    return _C._make_dual(tensor, tangent)


class UnpackedDualTensor(NamedTuple):
    """A tensor without its tangent, and the tangent, None where it has none."""

    primal: Tensor
    tangent: Optional[Tensor]


def unpack_dual(tensor, *, level=None):
    """Returns the two parts of a dual tensor."""
    return UnpackedDualTensor(*_C._unpack_dual(tensor))


class dual_level(ContextDecorator):
    """A context manager, and decorator, that enters a level and exits it."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *_):
        exit_dual_level()
