"""Gradus: strided tensors with automatic differentiation. `import gradus as torch` runs an ordinary PyTorch program.

    >>> import gradus as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 2.])

Tensors and operators come from the C extension `gradus._C`. Modules that a program may not need are imported on first use.
"""
import importlib
import sys
from math import e, inf, nan, pi  # noqa: F401
from typing import TYPE_CHECKING

from gradus import _C

if TYPE_CHECKING:  # for type checkers: mypy takes the first definition of a name, so these imports come before those of _C
    from gradus._removed import *  # noqa: F403
    from gradus._statistics import *  # noqa: F403
    from gradus._symbolic import *  # noqa: F403
    from gradus.functional import *  # noqa: F403
from gradus._C import *  # noqa: F403
from gradus._C import _chunk_cat, _conj, _dirichlet_grad, _lu_with_info, _neg_view, _sample_dirichlet, _standard_gamma, _standard_gamma_grad  # noqa: F401
from gradus import _absent, _tensor_array, _tensor_copy, _tensor_layout, _tensor_storage
from gradus._removed import *  # noqa: F403
from gradus._statistics import *  # noqa: F403
from gradus.functional import *  # noqa: F403

# Removes five modules that `from gradus._C import *` has imported. They would hide the packages of the same names, e.g. gradus.nn, which are imported
# on first use.
globals().pop("nn")
globals().pop("linalg")
globals().pop("special")
globals().pop("fft")
globals().pop("windows")
if TYPE_CHECKING:
    from gradus import accelerator as accelerator
    from gradus import amp as amp
    from gradus import array_api as array_api
    from gradus import autograd as autograd
    from gradus import backends as backends
    from gradus import compiler as compiler
    from gradus import cuda as cuda
    from gradus import distributed as distributed
    from gradus import distributions as distributions
    from gradus import fft as fft
    from gradus import func as func
    from gradus import futures as futures
    from gradus import fx as fx
    from gradus import hub as hub
    from gradus import jit as jit
    from gradus import linalg as linalg
    from gradus import masked as masked
    from gradus import mps as mps
    from gradus import multiprocessing as multiprocessing
    from gradus import nested as nested
    from gradus import nn as nn
    from gradus import onnx as onnx
    from gradus import ops as ops
    from gradus import optim as optim
    from gradus import overrides as overrides
    from gradus import profiler as profiler
    from gradus import quasirandom as quasirandom
    from gradus import random as random
    from gradus import return_types as return_types
    from gradus import serialization as serialization
    from gradus import signal as signal
    from gradus import special as special
    from gradus import storage as storage
    from gradus import testing as testing
    from gradus import torch_version as torch_version
    from gradus import types as types
    from gradus import utils as utils
    from gradus import version as version
    from gradus import viz as viz
    from gradus import xpu as xpu
    from gradus._switches import *  # noqa: F403
    from gradus._switches import _assert as _assert
    from gradus._tensor_types import *  # noqa: F403
    from gradus.amp import GradScaler as GradScaler
    from gradus.amp import autocast as autocast
    from gradus.amp import is_autocast_enabled as is_autocast_enabled
    from gradus.amp.autocast_mode import get_autocast_dtype as get_autocast_dtype
    from gradus.amp.autocast_mode import is_autocast_available as is_autocast_available
    from gradus.amp.autocast_mode import set_autocast_dtype as set_autocast_dtype
    from gradus.amp.autocast_mode import set_autocast_enabled as set_autocast_enabled
    from gradus.compiler import compile as compile
    from gradus.cuda import AcceleratorError as AcceleratorError
    from gradus.cuda import OutOfMemoryError as OutOfMemoryError
    from gradus.nested._size import SymInt as SymInt
    from gradus.serialization import load as load
    from gradus.serialization import save as save
    from gradus.func import vmap as vmap
    from gradus.storage import *  # noqa: F403
    from gradus.storage import from_file as from_file
    from gradus.storage import is_storage as is_storage
    from gradus.torch_version import __version__ as __version__
__config__, _weight_norm = _C.__config__, _C._weight_norm
_pack_padded_sequence, _pad_packed_sequence = _C._pack_padded_sequence, _C._pad_packed_sequence
newaxis = None
torch = sys.modules[__name__]  # so that "from torch import torch" works
sys.meta_path.append(_absent.Finder)

_SUBMODULES = frozenset({"accelerator", "amp", "array_api", "autograd", "backends", "compiler", "cpu", "cuda", "distributed", "distributions", "fft", "func", "futures", "fx", "hub", "jit", "linalg", "masked", "mps", "multiprocessing", "nested", "nn", "onnx", "ops",
                         "optim", "overrides", "profiler", "quasirandom", "random", "return_types", "safetensors", "serialization", "signal", "special", "storage", "testing", "torch_version", "types", "utils", "version", "viz", "xpu"})
_LAZY = {"save": "serialization", "load": "serialization", "compile": "compiler", "autocast": "amp", "GradScaler": "amp", "OutOfMemoryError": "cuda", "AcceleratorError": "cuda",
         "is_autocast_enabled": "amp", "get_autocast_dtype": "amp.autocast_mode", "is_autocast_available": "amp",
         "set_autocast_dtype": "amp.autocast_mode", "set_autocast_enabled": "amp.autocast_mode", "__version__": "torch_version", "vmap": "func", "SymInt": "nested._size"}
_LAZY.update(dict.fromkeys(("BoolTensor", "ByteTensor", "CharTensor", "ShortTensor", "IntTensor", "LongTensor", "HalfTensor", "BFloat16Tensor",
                            "FloatTensor", "DoubleTensor", "set_default_tensor_type"), "_tensor_types"))

_LAZY.update(dict.fromkeys((
    "_assert", "are_deterministic_algorithms_enabled", "compiled_with_cxx11_abi", "get_deterministic_debug_mode", "get_device_module", "get_float32_matmul_precision",
    "init_num_threads", "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled", "set_deterministic_debug_mode",
    "set_float32_matmul_precision", "set_flush_denormal", "set_warn_always", "typename", "use_deterministic_algorithms"), "_switches"))
_LAZY.update(dict.fromkeys(("sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum"), "_symbolic"))
_LAZY.update(dict.fromkeys((
    "Storage", "TypedStorage", "DoubleStorage", "FloatStorage", "HalfStorage", "BFloat16Storage", "LongStorage", "IntStorage", "ShortStorage", "CharStorage",
    "ByteStorage", "BoolStorage", "ComplexDoubleStorage", "ComplexFloatStorage", "QInt8Storage", "QUInt8Storage", "QInt32Storage", "is_storage",
    "from_file"), "storage"))


if not TYPE_CHECKING:  # hides __getattr__ from type checkers, because with it they would accept every name in the module

    def __getattr__(name):
        if name in _SUBMODULES:
            return importlib.import_module(f"gradus.{name}")
        if name.startswith(("_foreach_", "_amp_", "_fft_", "_scaled_mm", "_sobol_")):  # operators with private names
            return getattr(_C, name)
        if name in _LAZY:
            value = getattr(importlib.import_module(f"gradus.{_LAZY[name]}"), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module 'gradus' has no attribute '{name}'")


if "multiprocessing.reduction" in sys.modules:  # registers how multiprocessing sends tensors, if the program already uses multiprocessing
    from gradus import multiprocessing as multiprocessing


def __dir__():
    return sorted({*globals(), *_SUBMODULES, *_LAZY})
