"""Parametrizations: modules that compute a tensor of another module, e.g. its weight, from tensors that are trained instead (the originals).

The tensor is computed whenever it is read: register_parametrization() gives the module a new class, in which the tensor is a property. The originals
are in the ModuleDict `parametrizations` of the module, so state_dict() has keys such as parametrizations.weight.original.
"""
from __future__ import annotations

import collections.abc
import contextlib
import copy
import copyreg

import gradus
from gradus._C import Tensor

from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = ["ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations", "transfer_parametrizations_and_params",
           "type_before_parametrizations"]

_cache_enabled = 0  # the number of active cached() contexts
_cache: dict[tuple[int, str], Tensor] = {}  # maps (id of a module, name of a tensor) to the computed tensor


@contextlib.contextmanager
def cached():
    """Returns a context manager in which each parametrized tensor is computed only once, when it is first read.

    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    >>> with nn.utils.parametrize.cached():
    ...     layer.weight is layer.weight
    True
    >>> layer.weight is layer.weight
    False
    """
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _register(module, name, tensor):
    """Registers a tensor with the module, as a parameter if it is a Parameter and as a buffer otherwise."""
    register = module.register_parameter if isinstance(tensor, Parameter) else module.register_buffer
    register(name, tensor)


def _expect(what, wanted, found, text, first, second):
    """Raises ValueError if the attribute named `what`, e.g. "dtype", differs between the tensors `wanted` and `found`.

    The error text is `text` and the two values, labelled `first` and `second`.
    """
    wanted, found = getattr(wanted, what), getattr(found, what)
    if wanted != found:
        raise ValueError(f"{text}\n{first}: {wanted}\n{second}: {found}")


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in the order of their application. register_parametrization creates this list.

    The attribute `original` is the trained tensor, which is the input of the first parametrization. If right_inverse of the first parametrization
    returns several tensors, the trained tensors are `original0`, `original1`, ...
    """

    original: Tensor
    unsafe: bool

    def __init__(self, modules, original, unsafe=False):
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new = self._inverted(original)
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            self._keep_one(original, new)
        else:
            self._keep_several(original, new)
        if not unsafe:
            self._check_result(shape, dtype)

    def _inverted(self, original):
        """Returns the tensor or tensors that the parametrizations need as input so that `original` is their result. Calls the right_inverse
        methods, the last one first."""
        new = original
        with gradus.no_grad():
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, (Tensor, collections.abc.Sequence)):
            raise ValueError(f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(new).__name__}")
        return new

    def _keep_one(self, original, new):
        """Registers the tensor `original`, with the data of right_inverse's result `new`. Raises ValueError if dtypes or devices differ."""
        for what in ("dtype", "device"):
            _expect(what, original, new, f"When `right_inverse` outputs one tensor, it may not change the {what}.", f"original.{what}",
                    f"right_inverse(original).{what}")
        original.data = new.data  # The tensor object is not replaced, because an optimizer may refer to it.
        _register(self, "original", original)

    def _keep_several(self, original, new):
        """Registers the tensors in `new`, which right_inverse returned, under the names original0, original1, ...

        original: the tensor before it was parametrized. Raises ValueError if an element of `new` is not a tensor.
        """
        for i, tensor in enumerate(new):
            if not isinstance(tensor, Tensor):
                raise ValueError(f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element {i} of the sequence with type "
                                 f"{type(tensor).__name__}.")
            if isinstance(original, Parameter):
                tensor = Parameter(tensor, original.requires_grad)
            _register(self, f"original{i}", tensor.requires_grad_(original.requires_grad))

    def _check_result(self, shape, dtype):
        """Raises ValueError if the parametrized tensor is not a tensor of the given shape and dtype."""
        result = self()
        if not isinstance(result, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
        text = "Registering a parametrization may not change the {} of the tensor, unless `unsafe` flag is enabled.\nunparametrized {}: {}\nparametrized {}: {}"
        if result.dtype != dtype:
            raise ValueError(text.format("dtype", "dtype", dtype, "dtype", result.dtype))
        if result.shape != shape:
            raise ValueError(text.format("shape", "shape", shape, "shape", result.shape))

    def right_inverse(self, value):
        """Assigns to the originals the values from which the parametrizations compute `value`.

        Raises RuntimeError if a parametrization has no right_inverse, ValueError if the type or dtype of its result is not that of the originals.
        """
        with gradus.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                self._assign_one(value)
            else:
                self._assign_several(value)

    def _assign_one(self, value):
        """Copies `value`, the result of right_inverse, into the tensor `original`. Raises ValueError if `value` is not a tensor or has another
        dtype."""
        if not isinstance(value, Tensor):
            raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
        if value.dtype != self.original.dtype:
            raise ValueError(f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has dtype {self.original.dtype}")
        self.original.data = value.data

    def _assign_several(self, values):
        """Copies `values`, the results of right_inverse, into the tensors original0, original1, ... Raises ValueError if the numbers of
        values and tensors differ."""
        if not isinstance(values, collections.abc.Sequence):
            raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(values).__name__}.")
        if len(values) != self.ntensors:
            raise ValueError(f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of length {len(values)}.")
        for i, value in enumerate(values):
            original = getattr(self, f"original{i}")
            if not isinstance(value, Tensor):
                raise ValueError(f"'right_inverse' must return a sequence of tensors or reference-type opaques. Got element {i} of type {type(value).__name__}.")
            if original.dtype != value.dtype:
                raise ValueError(f"Tensor {i} returned by `right_inverse` has dtype {value.dtype} while `original{i}` has dtype {original.dtype}")
            original.data = value.data

    def forward(self):
        """Returns the parametrized tensor: the first parametrization is called with the originals, each later one with the previous result."""
        first, *others = self
        result = first(self.original) if self.is_tensor else first(*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in others:
            result = module(result)
        return result


# ---- The class of a parametrized module ---------------------------------------------------------------------------------------


def _copied(self, memo):
    """The __deepcopy__ of parametrized modules. The default one would call __getstate__, which raises RuntimeError."""
    replica = type(self).__new__(type(self))
    memo[id(self)] = replica
    replica.__dict__ = copy.deepcopy(self.__dict__, memo)
    for slot in copyreg._slotnames(type(self)):
        if hasattr(self, slot):
            setattr(replica, slot, copy.deepcopy(getattr(self, slot), memo))
    return replica


def _refuse_pickling(self):
    """Raises RuntimeError when a parametrized module is pickled, because its class exists only in this process."""
    raise RuntimeError("Serialization of parametrized modules is only supported through state_dict(). See:\n"
                       "https://pytorch.org/tutorials/beginner/saving_loading_models.html#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training")


def _inject_new_class(module):
    """Replaces the module's class by a new subclass for this module alone, so that properties can be added to that subclass."""
    kind = type(module)
    members = {"__getstate__": _refuse_pickling} | ({} if hasattr(kind, "__deepcopy__") else {"__deepcopy__": _copied})
    module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), members)


def _inject_property(module, tensor_name):
    """Adds a property to the module's class that computes the tensor from its parametrizations. Assigning to the property calls right_inverse."""

    def read(self):
        parametrization = self.parametrizations[tensor_name]
        if not _cache_enabled:
            return parametrization()
        key = id(module), tensor_name
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def write(self, value):
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(read, write))


# ---- Registration and removal -------------------------------------------------------------------------------------------------


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Makes reading the parameter or buffer `tensor_name` of `module` return parametrization(original). Returns `module`.

    `original` is a new parameter or buffer with the tensor's value, or with right_inverse(value) if `parametrization` has that method.
    parametrization: a module. If the tensor is parametrized already, `parametrization` is applied last. unsafe: allows another shape and dtype.
    Raises ValueError if shape or dtype change without `unsafe`, or if `module` has no such tensor.

    >>> class Symmetric(nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).mT
    >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(2, 2), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.mT).all())
    True
    >>> list(layer.state_dict())
    ['bias', 'parametrizations.weight.original']
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_addition(module, tensor_name, parametrization)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        parametrizations = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'")
    return module


def _check_addition(module, tensor_name, parametrization):
    """Raises ValueError if the parametrization or its right_inverse would change dtype or shape of the parametrized tensor."""
    before, place = getattr(module, tensor_name), f"module.{tensor_name}"
    after = parametrization(before)
    if not isinstance(after, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    for what in ("dtype", "shape"):
        _expect(what, before, after, f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag is enabled.",
                f"{place}.{what}", f"parametrization({place}).{what}")
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        inverse = parametrization.right_inverse(after)
    except NotImplementedError:
        return
    if not isinstance(inverse, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}")
    for what in ("dtype", "shape"):
        _expect(what, before, inverse, f"The tensor returned by parametrization.right_inverse must have the same {what} as {place}, unless the `unsafe` flag is "
                "enabled.", f"{place}.{what}", f"returned {what}")


def is_parametrized(module, tensor_name=None):
    """Returns True if the tensor `tensor_name` of the module is parametrized. If tensor_name is None, returns True if any tensor of the module is."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Makes the tensor an ordinary parameter or buffer again. Returns the module.

    leave_parametrized: if true, the tensor keeps the value that the parametrizations compute. If false, it gets the value of `original`, from
    which they compute that value. Raises ValueError if the tensor is not parametrized. Also raises ValueError if leave_parametrized is false and
    there are several originals.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with gradus.no_grad():
                original.data = getattr(module, tensor_name).data
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of tensors.")
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module):
    """Returns the class that the module had before register_parametrization replaced it by a subclass. Returns type(module) if no tensor is
    parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Registers the parametrizations of `from_module` with `to_module`. Returns `to_module`. Afterwards both modules share the trained tensors.

    tensor_name: the tensor whose parametrizations are transferred; all tensors when None. A tensor that `to_module` lacks is created there.
    """
    if not is_parametrized(from_module):
        return to_module
    parametrizations = from_module.parametrizations
    for name in list(parametrizations) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in parametrizations[name]:
            register_parametrization(to_module, name, parametrization)
        for i in range(parametrizations[name].ntensors):
            original = "original" if parametrizations[name].is_tensor else f"original{i}"
            if hasattr(to_module.parametrizations[name], original):
                setattr(to_module.parametrizations[name], original, getattr(parametrizations[name], original))
    return to_module
