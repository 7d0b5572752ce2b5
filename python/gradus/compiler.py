"""Compilation: there is none. What PyTorch would compile runs as it is written, with the same results."""
import functools

__all__ = ["compile", "disable", "is_compiling", "reset"]


def compile(model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, disable=False):
    """The model or function itself. Every other argument is accepted and has no effect.

    Raises AssertionError for what cannot be called.

    >>> @compile
    ... def double(x):
    ...     return 2 * x
    >>> double(4)
    8
    """
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options,
                                 disable=disable)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    return model


def disable(fn=None, recursive=True, *, reason=None):
    """The function itself, as a decorator with arguments or without."""
    return functools.partial(disable, recursive=recursive, reason=reason) if fn is None else fn


def is_compiling():
    """False."""
    return False


def reset():
    """Nothing: nothing has been compiled."""
