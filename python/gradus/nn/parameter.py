"""Parameter and Buffer, the tensors that a Module registers when they are assigned to it, and their uninitialized forms for lazy modules."""
from __future__ import annotations

from collections import OrderedDict

import gradus
from gradus._C import Tensor, _disabled_torch_function_impl

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin", "is_lazy"]


class _ParameterType(type(Tensor)):
    """Makes isinstance(t, Parameter) true for tensors of custom subclasses that Parameter() has marked with `_is_param`."""

    def __instancecheck__(self, instance):
        if type.__instancecheck__(self, instance):
            return True
        return self is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterType):
    """A tensor that a module registers as a parameter when it is assigned to an attribute, so that parameters() and state_dict() contain it.

    data: the values, which are shared with the parameter; None makes an empty parameter. requires_grad: True if autograd records operations on the
    parameter, even if the parameter is created under no_grad. If `data` is of a subclass of Tensor, the result has that class and is marked as a
    parameter.

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


# Rebuilds a pickled parameter. PyTorch's pickle format has the argument `backward_hooks`; it is empty, because hooks are not pickled.
def _rebuild_parameter(data, requires_grad, backward_hooks):
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    """Rebuilds a pickled parameter. state: a dictionary of the attributes that were set on the parameter."""
    parameter = Parameter(data, requires_grad)
    parameter.__dict__.update(state)
    return parameter


class _BufferType(type(Tensor)):
    """Makes isinstance(t, Buffer) true for tensors that Buffer() has marked with `_is_buffer`."""

    def __instancecheck__(self, instance):
        if type.__instancecheck__(self, instance):
            return True
        return self is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferType):
    """A tensor that a module registers as a buffer when it is assigned to an attribute. A buffer is state that is not trained.

    persistent: True if the buffer is in state_dict(). The result has the type of `data` and is marked as a buffer.

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


# ---- Uninitialized parameters and buffers -------------------------------------------------------------------------------------


class UninitializedTensorMixin:
    """Base of parameters and buffers that have a dtype and a device but no shape. Most uses raise ValueError until materialize() is called."""

    cls_to_become: type
    _allowed_methods = frozenset({Tensor.__hash__, Tensor.size, Tensor.copy_, Tensor.is_complex, Tensor.is_floating_point, Tensor.half, Tensor.float, Tensor.double,
                                  Tensor.char, Tensor.short, Tensor.int, Tensor.long, Tensor.cuda, Tensor.cpu, Tensor.to, Tensor.get_device})

    def materialize(self, shape, device=None, dtype=None):
        """Turns this object into an ordinary parameter or tensor of shape `shape`, with uninitialized memory."""
        self.data = gradus.empty(shape, device=self.data.device if device is None else device, dtype=self.data.dtype if dtype is None else dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        """Raises RuntimeError, because the tensor has no shape yet."""
        raise RuntimeError("Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` when trying to load an "
                           "uninitialized parameter into an initialized one. Call `forward` to initialize the parameters before accessing their attributes.")

    def share_memory_(self):
        """Raises RuntimeError, because the tensor has no memory yet."""
        raise RuntimeError("Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters before calling "
                           "`module.share_memory()`.")

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol):
        return type(self), (self.requires_grad,)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in cls._allowed_methods or type(func).__name__ == "method-wrapper":  # a method-wrapper is the getter of a property
            return super().__torch_function__(func, types, args, kwargs or {})
        raise ValueError(f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a `LazyModule` or explicitly manipulating "
                         f"`{gradus.__name__}.nn.parameter.{cls.__name__}` objects. When using LazyModules Call `forward` with a dummy batch to initialize the "
                         "parameters before calling torch functions")


def is_lazy(param):
    """Returns True if `param` is an UninitializedParameter or UninitializedBuffer."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter without a shape. Lazy modules have such parameters until their first forward call.

    >>> weight = nn.UninitializedParameter()
    >>> weight
    <UninitializedParameter>
    >>> weight.materialize((2, 3))
    >>> type(weight) is nn.Parameter, weight.shape
    (True, torch.Size([2, 3]))
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return Tensor._make_subclass(cls, gradus.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer without a shape. Lazy modules have such buffers until their first forward call."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        buffer = Tensor._make_subclass(cls, gradus.empty(0, device=device, dtype=dtype), requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer
