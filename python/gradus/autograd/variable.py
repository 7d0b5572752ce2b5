"""Defines Variable, the old name of a tensor that may require a gradient."""
import warnings

from gradus import _C

__all__ = ["Variable"]


class VariableMeta(type):
    def __instancecheck__(cls, other):
        return isinstance(other, _C.Tensor)


class Variable(metaclass=VariableMeta):
    """Variable(t) returns a new tensor that shares the memory of `t` but not its autograd history. Only old programs need the class, because today
    every tensor can require a gradient.

    >>> import gradus
    >>> Variable(gradus.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data=None, requires_grad=False, volatile=False):
        if volatile:
            warnings.warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.", stacklevel=2)
        if data is None:
            data = _C.Tensor()
        if not isinstance(data, _C.Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(bool(requires_grad))
