"""TorchScript: there is none. Functions and modules run as the Python they are.

``script`` and ``trace`` give back what they get and say so once, so programs that script their models still run. Nothing is compiled or can be saved as
a program: ``save`` and ``load`` raise NotImplementedError.
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
    """Never raised."""


class ScriptWarning(Warning):
    """Never given: a category for filters."""


class TracerWarning(Warning):
    """Never given: a category for filters."""

    @staticmethod
    def ignore_lib_warnings():
        """Nothing."""


class TracingCheckError(Exception):
    """Never raised."""


class ScriptModule(nn.Module):
    """A Module: to inherit from as PyTorch's programs do."""


RecursiveScriptModule = TopLevelTracedModule = ScriptModule


class ScriptFunction:
    """No function is one."""


class CompilationUnit:
    """NotImplementedError: no source is compiled."""

    def __init__(self, lang=None, _frames_up=0):
        raise NotImplementedError("jit.CompilationUnit: there is no TorchScript")


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """Returns the function, class or module itself; it warns once. Raises TypeError for what cannot be called.

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
    """Returns the function itself."""
    return fn


def script_method(fn):
    """Returns the method itself."""
    return fn


def trace(func, example_inputs=None, *args, **kwargs):
    """Returns the function or module itself; it is not run with the examples. It warns once."""
    if not callable(func):
        raise TypeError(f"trace() expects a function or a module, not {type(func).__name__}")
    _say_once("trace")
    return func


def trace_module(mod, inputs, *args, **kwargs):
    """Returns the module itself; it warns once."""
    return trace(mod)


def freeze(mod, preserved_attrs=None, optimize_numerics=True, preserve_parameters=False):
    """Returns the module itself, which must be in evaluation mode."""
    if mod.training:
        raise RuntimeError("Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing.")
    return mod


def optimize_for_inference(mod, other_methods=None):
    """Returns the module itself, in evaluation mode."""
    return mod.eval()


def save(m, f, _extra_files=None):
    """NotImplementedError: programs are not saved."""
    raise NotImplementedError("jit.save: there is no TorchScript; save m.state_dict() with gradus.save")


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """NotImplementedError: programs are not loaded."""
    raise NotImplementedError("jit.load: there is no TorchScript; load a state_dict with gradus.load")


def ignore(drop=False, **kwargs):
    """Returns the function itself, as a decorator with arguments or without."""
    return drop if callable(drop) else lambda fn: fn


def unused(fn):
    """Returns the function itself."""
    return fn


def export(fn):
    """Returns the function itself."""
    return fn


def _overload(fn):
    """Returns the function itself. Libraries decorate with it the declarations of further signatures, which the definition after them replaces."""
    return fn


_overload_method = _overload


def interface(obj):
    """Returns the class itself."""
    return obj


def annotate(the_type, the_value):
    """Returns the value.

    >>> annotate(int, 3)
    3
    """
    return the_value


class Attribute:
    """A value with a type: in a module both stay as they are."""

    def __init__(self, value, type):
        self.value, self.type = value, type


def isinstance(obj, target_type):
    """Returns the built-in isinstance, for classes and tuples of classes."""
    return builtins.isinstance(obj, target_type)


def fork(func, *args, **kwargs):
    """Returns a Future with the result of func(*args, **kwargs), which has been called.

    >>> wait(fork(lambda x: x + 1, 2))
    3
    """
    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future):
    """Returns the result of a Future."""
    return future.wait()


class _Nothing:
    """A context manager that changes nothing."""

    def __init__(self, *args):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None


optimized_execution = strict_fusion = _Nothing


@contextlib.contextmanager
def fuser(name):
    """A context manager that changes nothing. ValueError: PyTorch has no fuser of that name."""
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3"):
        raise ValueError(f"unrecognized fuser option (name: {name})")
    yield


def set_module(obj, mod):
    """Says that an object belongs to a module, by its name."""
    utils.set_module(obj, mod)


def set_fusion_strategy(strategy):
    """Returns an empty list: nothing is fused."""
    return []


def enable_onednn_fusion(enabled):
    """Nothing."""


def onednn_fusion_enabled():
    """False."""
    return False


def is_scripting():
    """False."""
    return False


def is_tracing():
    """False."""
    return False


__getattr__ = _stand_ins.of_module(__name__)
