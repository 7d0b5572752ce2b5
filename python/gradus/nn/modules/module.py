"""Module, the base class of neural networks: its parameters, buffers and submodules, and iteration over them.

Hooks are in hooks.py, saving and loading in state_dict.py, conversions of dtype and device in conversion.py. Global hooks can also be imported from
here, as in PyTorch.
"""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import gradus
from gradus._C import Tensor, _accelerate_module

from ..parameter import Buffer, Parameter
from .conversion import Conversion
from .hooks import *
from .hooks import (HookRegistry, _global_backward_hooks, _global_backward_pre_hooks, _global_buffer_registration_hooks, _global_forward_hooks,
                    _global_forward_hooks_always_called, _global_forward_hooks_with_kwargs, _global_forward_pre_hooks,
                    _global_module_registration_hooks, _global_parameter_registration_hooks, call_with_hooks, registered)
from .state_dict import StateDict, _IncompatibleKeys

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Module"]

_set = object.__setattr__


def _typename(value):
    """Returns the type of a value as PyTorch prints it in error texts."""
    if isinstance(value, Tensor):
        return value.type()
    kind = value if isinstance(value, type) else type(value)
    return kind.__qualname__ if kind.__module__ in ("builtins", "") else f"{kind.__module__}.{kind.__qualname__}"


def _is_tensor_or_none(value):
    return value is None or isinstance(value, Tensor) or hasattr(value, "__torch_function__")


def _addindent(text, spaces):
    """Returns the text with `spaces` spaces before every line except the first."""
    return text.replace("\n", "\n" + " " * spaces)


class Module(HookRegistry, StateDict, Conversion):
    """Base class of neural networks.

    A subclass first calls super().__init__(), then assigns parameters (nn.Parameter) and submodules as attributes, and defines forward. Calling a
    module runs forward and its hooks.

    >>> class Net(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden = nn.Linear(4, 8)
    ...         self.scores = nn.Linear(8, 3)
    ...
    ...     def forward(self, x):
    ...         return self.scores(F.relu(self.hidden(x)))
    >>> net = Net()
    >>> tuple(net(gradus.randn(5, 4)).shape)
    (5, 3)
    >>> [name for name, _ in net.named_parameters()]
    ['hidden.weight', 'hidden.bias', 'scores.weight', 'scores.bias']
    >>> net
    Net(
      (hidden): Linear(in_features=4, out_features=8, bias=True)
      (scores): Linear(in_features=8, out_features=3, bias=True)
    )
    """

    call_super_init = False
    training: bool

    def __init__(self, *args, **kwargs):
        """Passes the arguments to the next base class if the class attribute call_super_init is true. Otherwise any argument raises TypeError."""
        if not self.call_super_init:
            if kwargs:
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
            if args:
                raise TypeError(f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given")
        _set(self, "training", True)
        _set(self, "_parameters", {})
        _set(self, "_buffers", {})
        _set(self, "_non_persistent_buffers_set", set())
        _set(self, "_modules", {})
        _set(self, "_is_full_backward_hook", None)
        for name in _HOOK_DICTIONARIES:
            _set(self, name, OrderedDict())
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    if TYPE_CHECKING:  # declarations for type checkers, which allow subclasses to define forward with any parameters
        forward: Callable[..., Any]
        __call__: Callable[..., Any]
    else:
        def forward(self, *input):
            """Computes the result of a call of the module. Every subclass overrides it."""
            raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

        def __call__(self, *args, **kwargs):
            if self._hooked:  # True if hooks may be registered; otherwise forward is called directly, see Note [Hooked modules]
                return call_with_hooks(self, args, kwargs)
            return self.forward(*args, **kwargs)

    def compile(self, *args, **kwargs):
        """Does nothing, because there is no compiler. All arguments are ignored."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        _accelerate_module(cls, Module)

    # ---- Attributes -------------------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for members in ("_parameters", "_buffers", "_modules"):
            members = own.get(members)
            if members is not None and name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        own = self.__dict__
        parameters = own.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, own, self._buffers, self._modules)
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(f"cannot assign '{_typename(value)}' as parameter '{name}' ({gradus.__name__}.nn.Parameter or None expected)")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if own.get("_modules") is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, own, parameters, self._buffers)
            self._modules[name] = registered(_global_module_registration_hooks, self, name, value)
        elif parameters is not None and name in self._modules:
            if value is not None:
                raise TypeError(f"cannot assign '{_typename(value)}' as child module '{name}' ({gradus.__name__}.nn.Module or None expected)")
            self._modules[name] = registered(_global_module_registration_hooks, self, name, value)
        elif isinstance(value, Buffer) or (parameters is not None and name in self._buffers):
            if not _is_tensor_or_none(value):
                raise TypeError(f"cannot assign '{_typename(value)}' as buffer '{name}' "
                                f"({gradus.__name__}.nn.Buffer, {gradus.__name__}.Tensor or None expected)")
            if value.persistent if isinstance(value, Buffer) else name not in self._non_persistent_buffers_set:
                self.register_buffer(name, value)
            else:
                self.register_buffer(name, value, persistent=False)
        else:
            _set(self, name, value)

    def _forget(self, name, *members):
        """Removes `name` from the dictionaries `members` and from the set of names of non-persistent buffers."""
        for each in members:
            each.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name):
        for members in (self._parameters, self._buffers, self._modules):
            if name in members:
                del members[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self):
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted(name for name in names if not name[0].isdigit())

    def __setstate__(self, state):
        self.__dict__.update(state)
        for name in _HOOK_DICTIONARIES:
            self.__dict__.setdefault(name, OrderedDict())

    def _check_new_name(self, kind, name, members):
        """Raises TypeError or KeyError if `name` is not a valid name for a new parameter, buffer or module."""
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in members and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name, param):
        """Registers `param`, a Parameter or None, as the attribute `name`. A parameter that is None is skipped in iterations over parameters.

        Raises KeyError if the name is empty, contains a dot, or is an attribute already; TypeError if param is not a Parameter; ValueError if it is
        not a leaf tensor.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_new_name("parameter", name, self._parameters)
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(f"cannot assign '{_typename(param)}' object to parameter '{name}' "
                            f"({gradus.__name__}.nn.Parameter or None required)")
        if param.grad_fn is not None:
            raise ValueError(f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To express "
                             f"'{name}' as a function of another Tensor, compute the value in the forward() method.")
        self._parameters[name] = registered(_global_parameter_registration_hooks, self, name, param)

    def register_buffer(self, name, tensor, persistent=True):
        """Registers a buffer: a tensor that is part of the module's state but not trained. persistent: True if it is in state_dict().

        Raises KeyError if the name is empty, contains a dot, or is an attribute already; TypeError if `tensor` is neither a tensor nor None.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_new_name("buffer", name, self._buffers)
        if not _is_tensor_or_none(tensor):
            raise TypeError(f"cannot assign '{_typename(tensor)}' object to buffer '{name}' ({gradus.__name__} Tensor or None required)")
        self._buffers[name] = registered(_global_buffer_registration_hooks, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name, module):
        """Registers `module`, a Module or None, as the attribute `name`, which need not be an identifier, e.g. "0".

        Raises TypeError if `module` is neither a Module nor None; KeyError if the name is empty, contains a dot, or is an attribute already.
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        self._check_new_name("module", name, self._modules)
        self._modules[name] = registered(_global_module_registration_hooks, self, name, module)

    def register_module(self, name, module):
        """Calls add_module(name, module)."""
        self.add_module(name, module)

    # ---- Lookup by path -----------------------------------------------------------------------------------------------------

    def _attribute(self, name):
        """Returns the attribute `name`. Raises AttributeError, with PyTorch's text, if there is none."""
        if not hasattr(self, name):
            raise AttributeError(f"{self._get_name()} has no attribute `{name}`")
        return getattr(self, name)

    def get_submodule(self, target):
        """Returns the submodule at `target`, a path of names joined by dots. The path "" leads to self. Raises AttributeError if there is no
        such submodule.

        >>> nn.Sequential(nn.Sequential(nn.ReLU())).get_submodule("0.0")
        ReLU()
        """
        module = self
        for name in target.split(".") if target else ():
            module = module._attribute(name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Sets the submodule at `target`, a path of names joined by dots. strict: requires that a submodule exists there.

        Raises ValueError if target is empty or `module` is not a Module; AttributeError if the path leads to something that is not a module.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if (strict or hasattr(parent, name)) and not isinstance(parent._attribute(name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target):
        """Returns the parameter at `target`, a path of names joined by dots. Raises AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        parameter = self.get_submodule(path)._attribute(name)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return parameter

    def get_buffer(self, target):
        """Returns the buffer at `target`, a path of names joined by dots. Raises AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        buffer = module._attribute(name)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    # ---- Iteration ------------------------------------------------------------------------------------------------------------

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """Yields (path, module) for this module and all its descendants, depth first.

        prefix: prepended to every path. remove_duplicate: a module with several paths is yielded once, with its first path. memo: modules to skip.

        >>> [name for name, _ in nn.Sequential(nn.Sequential(nn.ReLU()), nn.Tanh()).named_modules()]
        ['', '0', '0.0', '1']
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate=True):
        """Yields this module and all its descendants. remove_duplicate: a module with several paths is yielded once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self):
        """Yields (name, module) for the direct submodules, each module once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """Yields the direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        """Yields (path, member) for the members of this module and, with `recurse`, of its descendants. get_members_fn(module) returns a module's
        members as pairs (name, member)."""
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        seen = set()
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield f"{path}.{name}" if path else name, member

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """Yields (path, parameter) for this module and, with `recurse`, its descendants.

        remove_duplicate: a parameter shared by several modules is yielded once, with its first path.
        """
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yields the parameters of this module and, with `recurse`, its descendants, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Yields (path, buffer) for this module and, with `recurse`, its descendants.

        remove_duplicate: a buffer shared by several modules is yielded once, with its first path.
        """
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """Yields the buffers of this module and, with `recurse`, its descendants, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    # ---- Changes of the module and all its descendants --------------------------------------------------------------------------

    def apply(self, fn) -> Self:
        """Calls fn(module) for every descendant and then for this module. Returns self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode=True) -> Self:
        """Sets the attribute `training` of this module and all its descendants. Dropout, BatchNorm and others depend on it. Returns self."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Sets evaluation mode by train(False). Returns self."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True) -> Self:
        """Sets requires_grad of all parameters to the argument; with False they are not trained. Returns self."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Sets the gradient of every parameter to None, or to zeros if set_to_none is false."""
        for parameter in self.parameters():
            grad = parameter.grad
            if grad is None:
                continue
            if set_to_none:
                parameter.grad = None
                continue
            if grad.grad_fn is not None:
                grad.detach_()
            else:
                grad.requires_grad_(False)
            grad.zero_()

    # ---- Representation as text -----------------------------------------------------------------------------------------------

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """Returns the text that repr() shows inside the parentheses, before the submodules. Subclasses override it."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        lines += [f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()]
        if extra and len(lines) == 1:
            return f"{self._get_name()}({lines[0]})"
        return f"{self._get_name()}(" + "".join("\n  " + line for line in lines) + ("\n)" if lines else ")")


_HOOK_DICTIONARIES = (
    "_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
    "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks")

_accelerate_module(Module, Module)
