"""TorchScript: there is none. Functions and modules run as the Python they are.

``script`` and ``trace`` give back what they get, so programs that script their models still run; nothing is compiled or can be saved as
a program, and there is no ``jit.save`` or ``jit.load``.
"""

__all__ = ["export", "ignore", "is_scripting", "is_tracing", "script", "script_if_tracing", "trace", "unused"]


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """The function, class or module itself. Raises TypeError for what cannot be called.

    >>> @script
    ... def double(x):
    ...     return 2 * x
    >>> double(4)
    8
    """
    if not callable(obj):
        raise TypeError(f"script() expects a function, a class or a module, not {type(obj).__name__}")
    return obj


def script_if_tracing(fn):
    """The function itself."""
    return fn


def trace(func, example_inputs=None, *args, **kwargs):
    """The function or module itself; it is not run with the examples."""
    return script(func)


def ignore(drop=False, **kwargs):
    """The function itself, as a decorator with arguments or without."""
    return drop if callable(drop) else lambda fn: fn


def unused(fn):
    """The function itself."""
    return fn


def export(fn):
    """The function itself."""
    return fn


def is_scripting():
    """False."""
    return False


def is_tracing():
    """False."""
    return False
