"""Overrides the library's functions. A TorchFunctionMode overrides all calls of a thread. The method __torch_function__ of a class overrides
those calls in which an argument is an object of the class.

    >>> from gradus.overrides import TorchFunctionMode
    >>> class Log(TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    >>> with Log():
    ...     x = gradus.ones(2) + 1
    ones
    add
"""
import contextlib
import functools
import inspect
import sys
import types
import warnings

import gradus
from gradus import _C, _stand_ins

__all__ = ["BaseTorchFunctionMode", "TorchFunctionMode", "get_default_nowrap_functions", "get_ignored_functions", "get_overridable_functions", "get_testing_overrides",
           "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like", "is_tensor_method_or_property",
           "resolve_name", "wrap_torch_function"]

# ---- Modes --------------------------------------------------------------------------------------------------------------------


class TorchFunctionMode:
    """A context manager: inside it, every call of an overridable function in this thread goes to the method __torch_function__.

    While __torch_function__ runs, the mode is inactive: calls inside it go to the next outer mode or, if there is none, are executed.
    """

    def __init__(self):
        pass

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _C._push_on_torch_function_stack(self)
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        _C._pop_torch_function_stack()

    @classmethod
    def push(cls, *args, **kwargs):
        """Returns cls(*args, **kwargs), and warns that `with cls(*args, **kwargs)` does the same."""
        warnings.warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2)
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A TorchFunctionMode that executes every call unchanged."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_current_function_mode():
    stack = _C._torch_function_stack()
    return stack[-1] if stack else None


def _get_current_function_mode_stack():
    return _C._torch_function_stack()


_push_mode = _C._push_on_torch_function_stack
_pop_mode = _C._pop_torch_function_stack


@contextlib.contextmanager
def _pop_mode_temporarily():
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


# ---- Overridable functions -------------------------------------------------------------------------------------------------------


def has_torch_function(relevant_args):
    """True if a TorchFunctionMode is active, or if the class of one of the arguments has a __torch_function__ that is not disabled.

    >>> has_torch_function((gradus.ones(2), 3))
    False
    """
    return _C._has_torch_function(tuple(relevant_args))


def has_torch_function_unary(tensor):
    """Returns has_torch_function((tensor,))."""
    return has_torch_function((tensor,))


def has_torch_function_variadic(*args):
    """Returns has_torch_function(args)."""
    return has_torch_function(args)


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Returns the result of __torch_function__ for the call public_api(*args, **kwargs).

    Calls the __torch_function__ of the innermost TorchFunctionMode, then those of the classes of relevant_args. The first result other than
    NotImplemented is returned. Raises TypeError if all results are NotImplemented.
    """
    return _C._call_override(public_api, tuple(_C._overloaded_among(tuple(relevant_args))), args, kwargs)


def _grad_of_overloaded(outputs, inputs, **options):
    """Returns the result of __torch_function__ for autograd.grad(outputs, inputs, **options). Called if the class of an output or input has a
    __torch_function__."""
    relevant = [t for given in (outputs, inputs) for t in (given if isinstance(given, (tuple, list)) else (given,))]
    return handle_torch_function(gradus.autograd.grad, relevant, outputs, inputs, **options)


def wrap_torch_function(dispatcher):
    """Returns a decorator that makes a function overridable. dispatcher(*args, **kwargs) returns the arguments that are searched for a
    __torch_function__. If one of them has this method, it is called instead of the function.

    >>> @wrap_torch_function(lambda x: (x,))
    ... def double(x):
    ...     return x * 2
    >>> double(gradus.ones(1))
    tensor([2.])
    """

    def decorate(function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            return handle_torch_function(wrapped, relevant, *args, **kwargs) if has_torch_function(relevant) else function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp):
    """True if `inp` is a Tensor, or an object whose class has a __torch_function__.

    >>> is_tensor_like(gradus.ones(1)), is_tensor_like([1.0])
    (True, False)
    """
    return type(inp) is gradus.Tensor or hasattr(inp, "__torch_function__")


# ---- Lists of functions ----------------------------------------------------------------------------------------------------------


@functools.cache
def _functions():
    """Returns ({namespace: list of overridable functions}, {function: its full name})."""
    found, names = {}, {}
    spaces = {"torch": gradus, "torch.nn.functional": gradus.nn.functional, "torch.nn.init": gradus.nn.init, "torch.Tensor": gradus.Tensor,
              "torch.linalg": gradus.linalg, "torch.fft": gradus.fft, "torch.special": gradus.special}
    for space_name, space in spaces.items():
        for name in dir(space):
            function = inspect.getattr_static(space, name, None) if space is gradus.Tensor else getattr(space, name)
            if _is_overridable(space, name, function):
                is_property = not callable(function)
                key = function.__get__ if is_property else function
                names.setdefault(key, f"{space_name}.{name}.__get__" if is_property else f"{space_name}.{name}")
                found.setdefault(function if is_property else space, []).append(key)
    return found, names


def _is_overridable(space, name, function):
    if isinstance(function, (types.ModuleType, type)) or (callable(function) and function in _ignored()):
        return False
    if space is gradus.Tensor:
        return getattr(object, name, None) != function and (callable(function) or inspect.isgetsetdescriptor(function))
    return callable(function) and name[0].islower() and not name.endswith("_")


def get_overridable_functions():
    """Returns {namespace: list of overridable functions}. Each property p of Tensor is a key too, with the value [p.__get__]."""
    return _functions()[0]


def resolve_name(f):
    """Returns the full name of a function, as users call it, or None if it is not overridable.

    >>> resolve_name(gradus.add), resolve_name(gradus.Tensor.add), resolve_name(print)
    ('torch.add', 'torch.Tensor.add', None)
    """
    return _functions()[1].get(f)


def _counterpart(func):
    """Returns the function of Gradus that has the same name as `func`. Raises TypeError if Gradus has no such function.

    func: a function of PyTorch that was called with tensors of Gradus.
    """
    theirs = sys.modules.get("torch.overrides")
    name = None if theirs is None else theirs.resolve_name(func)
    found = functools.reduce(lambda space, part: getattr(space, part, None), name.split(".")[1:], gradus) if name else None
    if found is None:
        raise TypeError(f"no implementation found for {getattr(func, '__name__', func)!r} on tensors of gradus")
    return found


def is_tensor_method_or_property(func):
    """True if `func` is a method of Tensor or the __get__ of a property of Tensor.

    >>> is_tensor_method_or_property(gradus.Tensor.add), is_tensor_method_or_property(gradus.add)
    (True, False)
    """
    return func in get_overridable_functions()[gradus.Tensor] or func.__name__ == "__get__"


# Names of functions that never call __torch_function__. Most of them get or set the library's state, read or write files, or create tensors from
# other objects.
_IGNORED = ("are_deterministic_algorithms_enabled", "compile", "from_dlpack", "from_numpy", "get_default_device", "get_default_dtype", "get_num_interop_threads",
            "get_num_threads", "get_printoptions", "get_rng_state", "is_anomaly_enabled", "is_autocast_enabled", "is_deterministic_algorithms_warn_only_enabled",
            "is_grad_enabled", "is_inference_mode_enabled", "is_storage", "is_tensor", "load", "manual_seed", "promote_types", "result_type", "save", "seed",
            "set_default_device", "set_default_dtype", "set_default_tensor_type", "set_grad_enabled", "set_num_interop_threads", "set_num_threads", "set_printoptions",
            "set_rng_state", "typename", "use_deterministic_algorithms", "vmap")


@functools.cache
def _ignored():
    return frozenset(getattr(gradus, name) for name in _IGNORED if hasattr(gradus, name))


def get_ignored_functions():
    """Returns the set of functions that are not overridable."""
    return set(_ignored())


def get_default_nowrap_functions():
    """Returns the set of property getters that return a Tensor even for an object of a subclass. Other functions return objects of the subclass."""
    return {getattr(gradus.Tensor, name).__get__ for name in ("_base", "grad", "_grad") if hasattr(gradus.Tensor, name)}


def get_testing_overrides():
    """Returns {function: a dummy function that accepts all arguments and returns -1} for all overridable functions."""
    return {function: lambda *args, **kwargs: -1 for functions in get_overridable_functions().values() for function in functions}


__getattr__ = _stand_ins.of_module(__name__)
