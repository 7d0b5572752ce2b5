"""Parameter and Buffer: tensors that a Module registers when they are assigned to it."""
from __future__ import annotations

from collections import OrderedDict

import gradus
from gradus._C import Tensor, _disabled_torch_function_impl

__all__ = ["Parameter", "Buffer"]


class _ParameterType(type(Tensor)):
    """Tensors of other subclasses count as parameters when Parameter() has marked them."""

    def __instancecheck__(self, instance):
        if type.__instancecheck__(self, instance):
            return True
        return self is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterType):
    """A tensor that is a parameter of the module it is assigned to: it appears in Module.parameters() and in state_dict().

    data: the values, shared and not copied; None makes an empty one. requires_grad: whether operations on it are recorded, also when it is
    made inside no_grad. An instance of another Tensor subclass keeps its type and is marked as a parameter.

    >>> weight = nn.Parameter(gradus.ones(2))
    >>> weight.requires_grad, weight.is_leaf
    (True, True)
    """

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = gradus.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        parameter = data.detach().requires_grad_(requires_grad)
        if type(parameter) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an instance of the same "
                f"type, but return type {type(parameter).__name__} was found instead.")
        parameter._is_param = True
        return parameter

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(memory_format=gradus.preserve_format), self.requires_grad)
        return memo[id(self)]

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol):
        attributes = self.__dict__
        if attributes:
            return _rebuild_parameter_with_state, (self.data, self.requires_grad, OrderedDict(), attributes)
        return _rebuild_parameter, (self.data, self.requires_grad, OrderedDict())

    __torch_function__ = _disabled_torch_function_impl


# What a pickled parameter is made with. Its hooks are not kept; their place in the arguments is PyTorch's.
def _rebuild_parameter(data, requires_grad, backward_hooks):
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    parameter = Parameter(data, requires_grad)
    parameter.__dict__.update(state)
    return parameter


class _BufferType(type(Tensor)):
    def __instancecheck__(self, instance):
        if type.__instancecheck__(self, instance):
            return True
        return self is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferType):
    """A tensor that is a buffer of the module it is assigned to: state that is not trained.

    persistent: whether it is part of state_dict(). What is returned has the type of data and is marked as a buffer.

    >>> module = nn.Module()
    >>> module.mean = nn.Buffer(gradus.zeros(3))
    >>> list(module.state_dict())
    ['mean']
    """

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = gradus.empty(0)
        buffer = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer

    __torch_function__ = _disabled_torch_function_impl
