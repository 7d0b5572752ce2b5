"""The functions of torch.jit. There is no TorchScript, so functions and modules run as ordinary Python.

``script`` and ``trace`` return their argument unchanged and warn once, so programs that script their models still run. A compiled program cannot be
saved or loaded: ``save`` and ``load`` raise NotImplementedError.
"""
import builtins
import contextlib
import warnings
from typing import Final as Final

from gradus import _stand_ins, nn, utils
from gradus.futures import Future as Future

__all__ = ["Attribute", "CompilationUnit", "Error", "Final", "Future", "ScriptFunction", "ScriptModule", "annotate", "enable_onednn_fusion", "export", "fork", "freeze",
           "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "load", "onednn_fusion_enabled", "optimize_for_inference", "optimized_execution", "save",
           "script", "script_if_tracing", "script_method", "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused", "wait"]

_said = False


def _say_once(name):
    global _said
    if not _said:
        _said = True
        warnings.warn(f"jit.{name}: there is no TorchScript; functions and modules run as the Python they are", stacklevel=3)


class Error(RuntimeError):
    """Never raised, because there is no TorchScript."""


class ScriptWarning(Warning):
    """A warning category for filters. It is never issued."""


class TracerWarning(Warning):
    """A warning category for filters. It is never issued."""

    @staticmethod
    def ignore_lib_warnings():
        """Does nothing."""


class TracingCheckError(Exception):
    """Never raised, because there is no TorchScript."""


class ScriptModule(nn.Module):
    """An ordinary Module. Programs may derive classes from it."""


RecursiveScriptModule = TopLevelTracedModule = ScriptModule


class ScriptFunction:
    """The class of scripted functions in PyTorch. Nothing is an instance of it."""


class CompilationUnit:
    """The compiler of TorchScript source code in PyTorch. Here the constructor raises NotImplementedError."""

    def __init__(self, lang=None, _frames_up=0):
        raise NotImplementedError("jit.CompilationUnit: there is no TorchScript")


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """Returns the function, class or module unchanged, and warns once. Raises TypeError if `obj` is not callable.

    >>> with warnings.catch_warnings(action="ignore"):
    ...     double = script(lambda x: 2 * x)
    >>> double(4)
    8
    """
    if not callable(obj):
        raise TypeError(f"script() expects a function, a class or a module, not {type(obj).__name__}")
    _say_once("script")
    return obj


def script_if_tracing(fn):
    """Returns the function unchanged."""
    return fn


def script_method(fn):
    """Returns the method unchanged."""
    return fn


def trace(func, example_inputs=None, *args, **kwargs):
    """Returns the function or module unchanged, and warns once. The example inputs are not used. TypeError: `func` is not callable."""
    if not callable(func):
        raise TypeError(f"trace() expects a function or a module, not {type(func).__name__}")
    _say_once("trace")
    return func


def trace_module(mod, inputs, *args, **kwargs):
    """Returns the module unchanged, and warns once."""
    return trace(mod)


def freeze(mod, preserved_attrs=None, optimize_numerics=True, preserve_parameters=False):
    """Returns the module unchanged. Raises RuntimeError if the module is in training mode."""
    if mod.training:
        raise RuntimeError("Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing.")
    return mod


def optimize_for_inference(mod, other_methods=None):
    """Sets the module to evaluation mode and returns it."""
    return mod.eval()


def save(m, f, _extra_files=None):
    """Raises NotImplementedError, because there are no compiled programs to save."""
    raise NotImplementedError("jit.save: there is no TorchScript; save m.state_dict() with gradus.save")


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """Raises NotImplementedError, because compiled programs cannot be loaded."""
    raise NotImplementedError("jit.load: there is no TorchScript; load a state_dict with gradus.load")


def ignore(drop=False, **kwargs):
    """Returns the function unchanged. Can be used as a decorator with or without arguments."""
    return drop if callable(drop) else lambda fn: fn


def unused(fn):
    """Returns the function unchanged."""
    return fn


def export(fn):
    """Returns the function unchanged."""
    return fn


def _overload(fn):
    """Returns the function unchanged. Libraries decorate the alternative signatures of a function with it. They then define the function itself,
    without the decorator."""
    return fn


_overload_method = _overload


def interface(obj):
    """Returns the class unchanged."""
    return obj


def annotate(the_type, the_value):
    """Returns `the_value` unchanged and ignores `the_type`.

    >>> annotate(int, 3)
    3
    """
    return the_value


class Attribute:
    """Holds a value and its type, and has no effect on the program."""

    def __init__(self, value, type):
        self.value, self.type = value, type


def isinstance(obj, target_type):
    """Returns the result of the built-in isinstance. `target_type` is a class or a tuple of classes."""
    return builtins.isinstance(obj, target_type)


def fork(func, *args, **kwargs):
    """Calls func(*args, **kwargs) at once, and returns a Future with the result.

    >>> wait(fork(lambda x: x + 1, 2))
    3
    """
    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future):
    """Waits for a Future and returns its result."""
    return future.wait()


class _Nothing:
    """Context manager without effect."""

    def __init__(self, *args):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None


optimized_execution = strict_fusion = _Nothing


@contextlib.contextmanager
def fuser(name):
    """Context manager without effect. ValueError: PyTorch has no fuser of that name."""
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3"):
        raise ValueError(f"unrecognized fuser option (name: {name})")
    yield


def set_module(obj, mod):
    """Sets obj.__module__ to the name `mod`."""
    utils.set_module(obj, mod)


def set_fusion_strategy(strategy):
    """Returns an empty list, because operators are not fused."""
    return []


def enable_onednn_fusion(enabled):
    """Does nothing, because there is no TorchScript."""


def onednn_fusion_enabled():
    """Returns False, because there is no TorchScript."""
    return False


def is_scripting():
    """Returns False, because there is no TorchScript."""
    return False


def is_tracing():
    """Returns False, because there is no TorchScript."""
    return False


__getattr__ = _stand_ins.of_module(__name__)
