"""Operators that plug-ins define, by namespace and name.

    >>> import gradus as torch
    >>> torch.ops.load_library("libmylib.so")   # doctest: +SKIP
    >>> torch.ops.mylib.cube(torch.ones(2))     # doctest: +SKIP
    tensor([1., 1.])
"""
from gradus import _C
from gradus._C import load_library, providers  # noqa: F401


class _Namespace:
    """The operators whose names begin with `name::`, found when they are first named."""

    def __init__(self, name):
        self.__name__ = name

    def __getattr__(self, name):
        found = None if name.startswith("__") else _C._find_op(f"{self.__name__}::{name}")
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self.__name__}' object has no attribute '{name}'")
        setattr(self, name, found)
        return found

    def __repr__(self):
        return f"<operators of {self.__name__}>"


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module 'gradus.ops' has no attribute '{name}'")
    return globals().setdefault(name, _Namespace(name))
