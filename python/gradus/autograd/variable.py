"""The old name of a tensor that may require a gradient."""

from gradus import _C

__all__ = ["Variable"]


class VariableMeta(type):
    def __instancecheck__(cls, other):
        return isinstance(other, _C.Tensor)


class Variable(metaclass=VariableMeta):
    """Tensors do all that variables did: Variable(t) is t, with requires_grad where that is asked for."""

    def __new__(cls, data, requires_grad=False):
        return data.requires_grad_() if requires_grad else data
