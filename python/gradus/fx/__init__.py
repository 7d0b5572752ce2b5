"""Symbolic tracing, of which there is none: `wrap`, which libraries call when they are imported, marks nothing; the rest says so when it is called."""
from gradus import _stand_ins

__all__ = ["wrap"]


def wrap(fn_or_name):
    """Returns the function, or its name, as it is: no tracer would look into it."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    return fn_or_name


__getattr__ = _stand_ins.of_module(__name__)
