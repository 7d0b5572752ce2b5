"""The functions of torch.compiler. Nothing is compiled, so programs run as they are written, with the same results. compile() warns once."""
import functools
import warnings

__all__ = ["allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling", "is_dynamo_compiling", "is_exporting",
           "list_backends", "reset", "set_stance", "substitute_in_graph"]

_said = False


def compile(model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, name=None, disable=False, **others):
    """Returns the model or function unchanged. All other arguments are accepted and have no effect. The first call warns that nothing is compiled.

    Raises AssertionError if `model` is not callable.

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
    """Returns the function unchanged. Can be used as a decorator with or without arguments."""
    return functools.partial(disable, recursive=recursive, reason=reason) if fn is None else fn


def allow_in_graph(fn):
    """Returns the function unchanged."""
    return fn


def assume_constant_result(fn):
    """Returns the function unchanged."""
    return fn


def substitute_in_graph(original_fn, **kwargs):
    """Returns a decorator that returns its function unchanged."""
    return lambda fn: fn


class set_stance:
    """Has no effect, because nothing is compiled. It can be called as a function or used as a context manager."""

    def __init__(self, stance="default", **kwargs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None


def list_backends(exclude_tags=()):
    """Returns an empty list, because there are no compiler backends."""
    return []


def cudagraph_mark_step_begin():
    """Does nothing, because there are no CUDA graphs."""


def is_compiling():
    """Returns False, because nothing is compiled."""
    return False


def is_dynamo_compiling():
    """Returns False, because nothing is compiled."""
    return False


def is_exporting():
    """Returns False, because nothing is compiled."""
    return False


def reset():
    """Does nothing, because nothing has been compiled."""
