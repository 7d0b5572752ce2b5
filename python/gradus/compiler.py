"""Compilation: there is none. What PyTorch would compile runs as it is written, with the same results; compile() says so once."""
import functools
import warnings

__all__ = ["allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling", "is_dynamo_compiling", "is_exporting",
           "list_backends", "reset", "set_stance", "substitute_in_graph"]

_said = False


def compile(model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, name=None, disable=False, **others):
    """Returns the model or function itself. Every other argument is accepted and has no effect. It warns once.

    Raises AssertionError for what cannot be called.

    >>> with warnings.catch_warnings(action="ignore"):
    ...     double = compile(lambda x: 2 * x)
    >>> double(4)
    8
    """
    global _said
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if not _said and not disable:
        _said = True
        warnings.warn("compile: there is no compiler; functions and modules run as they are", stacklevel=2)
    return model


def disable(fn=None, recursive=True, *, reason=None):
    """Returns the function itself, as a decorator with arguments or without."""
    return functools.partial(disable, recursive=recursive, reason=reason) if fn is None else fn


def allow_in_graph(fn):
    """Returns the function itself."""
    return fn


def assume_constant_result(fn):
    """Returns the function itself."""
    return fn


def substitute_in_graph(original_fn, **kwargs):
    """Returns a decorator that gives its function back."""
    return lambda fn: fn


class set_stance:
    """A context manager, or call, that changes nothing."""

    def __init__(self, stance="default", **kwargs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None


def list_backends(exclude_tags=()):
    """Returns an empty list."""
    return []


def cudagraph_mark_step_begin():
    """Nothing."""


def is_compiling():
    """False."""
    return False


def is_dynamo_compiling():
    """False."""
    return False


def is_exporting():
    """False."""
    return False


def reset():
    """Nothing: nothing has been compiled."""
