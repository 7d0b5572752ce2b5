"""Forward-mode differentiation. A dual tensor carries a tangent, and operators compute the tangents of their results.

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
    """Begins a dual level, inside of which tensors may have tangents. Returns the number of the level, 0. RuntimeError: this thread already has a
    dual level, because dual levels cannot be nested."""
    _C._enter_dual_level()
    return 0


def exit_dual_level(*, level=None):
    """Ends the dual level. All tensors lose their tangents. RuntimeError: `level` is neither None nor 0."""
    if level:
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not supported.")
    _C._exit_dual_level()


def make_dual(tensor, tangent, *, level=None):
    """Returns a dual tensor, a view of `tensor` with the tangent `tangent`. The tangent is the derivative in one direction; it has the sizes and
    dtype of the tensor.

    RuntimeError: not inside dual_level(), or the sizes or dtypes of `tensor` and `tangent` differ. ValueError: the dtype is neither floating-point
    nor complex.
    """
    return _C._make_dual(tensor, tangent)


class UnpackedDualTensor(NamedTuple):
    """The two parts of a dual tensor: the tensor without the tangent (`primal`), and the tangent (`tangent`). For any other tensor the tangent is
    None."""

    primal: Tensor
    tangent: Optional[Tensor]


def unpack_dual(tensor, *, level=None):
    """Returns the primal and the tangent of a dual tensor as UnpackedDualTensor."""
    return UnpackedDualTensor(*_C._unpack_dual(tensor))


class dual_level(ContextDecorator):
    """Context manager and decorator. Inside, make_dual can give tensors a tangent. At the end all tensors lose their tangents."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *_):
        exit_dual_level()
