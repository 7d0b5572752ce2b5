"""Gradus: strided tensors with automatic differentiation. `import gradus as torch` runs an ordinary PyTorch program.

    >>> import gradus as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 2.])

Tensors and operators come from the C extension `gradus._C`; parts that a program may not need are imported when they are first named.
"""
import importlib
from math import e, inf, nan, pi  # noqa: F401

from gradus import _C
from gradus._C import *  # noqa: F403
from gradus import _tensor_copy  # noqa: F401
from gradus._statistics import *  # noqa: F403
from gradus.functional import *  # noqa: F403

del nn  # noqa: F821  the package of that name is imported when it is asked for

__version__ = _C.__version__
__config__ = _C.__config__
newaxis = None

_SUBMODULES = frozenset({"accelerator", "amp", "autograd", "backends", "compiler", "cuda", "distributed", "jit", "linalg", "mps", "multiprocessing", "nn", "ops",
                         "optim", "random", "serialization", "utils", "version", "xpu"})
_LAZY = {"save": "serialization", "load": "serialization", "compile": "compiler", "autocast": "amp", "GradScaler": "amp",
         "is_autocast_enabled": "amp"}
_LAZY.update(dict.fromkeys(("BoolTensor", "ByteTensor", "CharTensor", "ShortTensor", "IntTensor", "LongTensor", "HalfTensor", "BFloat16Tensor",
                            "FloatTensor", "DoubleTensor"), "_tensor_types"))


def __getattr__(name):
    if name in _SUBMODULES:
        return importlib.import_module(f"gradus.{name}")
    if name in _LAZY:
        value = getattr(importlib.import_module(f"gradus.{_LAZY[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'gradus' has no attribute '{name}'")


def __dir__():
    return sorted({*globals(), *_SUBMODULES, *_LAZY})
