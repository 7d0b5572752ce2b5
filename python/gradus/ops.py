"""Gives access to operators by namespace and name: the operators that plug-ins define and, in the namespace `aten`, PyTorch's operators.

    >>> import gradus as torch
    >>> torch.ops.load_library("libmylib.so")   # doctest: +SKIP
    >>> torch.ops.mylib.cube(torch.ones(2))     # doctest: +SKIP
    tensor([1., 1.])
    >>> torch.ops.aten.slice.Tensor(torch.arange(5), 0, 1, 4)
    tensor([1, 2, 3])
"""
from gradus import _C
from gradus._C import load_library, providers  # noqa: F401


class _Namespace:
    """The operators whose names begin with `name::`, looked up on first access."""

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


class _Packet:
    """An operator of PyTorch, e.g. aten.add. An overload such as aten.add.Tensor is the same object, because the operator selects the overload by its
    arguments."""

    def __init__(self, name, function):
        self.__name__, self._function = name, function

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def __getattr__(self, overload):
        if overload.startswith("_"):
            raise AttributeError(f"The underlying op of 'aten.{self.__name__}' has no overload name '{overload}'")
        return self

    def __repr__(self):
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


class _Aten(_Namespace):
    """The operators of PyTorch. A name is looked up among the functions of the C extension, which accept all overloads, then among the
    Tensor methods, and then among operators with a single signature."""

    def __getattr__(self, name):
        found = None if name.startswith("__") else getattr(_C, name, None) or getattr(_C.Tensor, name, None) or _C._find_op(name)
        if not callable(found) or isinstance(found, type):
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        return self.__dict__.setdefault(name, _Packet(name, found))


aten = _Aten("aten")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module 'gradus.ops' has no attribute '{name}'")
    return globals().setdefault(name, _Namespace(name))
