"""The functions of torch.cuda. Gradus has no CUDA devices, and is_available() is False, so programs that check it use the CPU.

Queries return the values that PyTorch returns without CUDA. Functions that need a device raise AssertionError.

>>> is_available(), device_count()
(False, 0)
>>> synchronize()
Traceback (most recent call last):
AssertionError: Gradus not compiled with CUDA enabled
"""
from gradus import _stand_ins
from gradus.cuda import amp, memory, random
from gradus.cuda._absent import refuse as _refuse
from gradus.cuda._tensor_types import (BFloat16Tensor, BoolTensor, ByteTensor, CharTensor, DoubleTensor, FloatTensor, HalfTensor, IntTensor,
                                       LongTensor, ShortTensor)
from gradus.cuda.memory import empty_cache, max_memory_allocated, max_memory_reserved, mem_get_info, memory_allocated, memory_reserved
from gradus.cuda.random import get_rng_state, get_rng_state_all, manual_seed, manual_seed_all, seed, seed_all

__all__ = ["AcceleratorError", "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor",
           "LongTensor", "OutOfMemoryError", "ShortTensor", "amp", "current_device", "current_stream", "device_count", "empty_cache", "get_arch_list",
           "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state", "get_rng_state_all", "init",
           "is_available", "is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all", "max_memory_allocated",
           "max_memory_reserved", "mem_get_info", "memory", "memory_allocated", "memory_reserved", "random", "seed", "seed_all",
           "set_device", "synchronize"]


class OutOfMemoryError(RuntimeError):
    """Never raised, because there is no CUDA device whose memory could be exhausted."""


class AcceleratorError(RuntimeError):
    """Never raised, because there is no CUDA device."""


def is_available():
    """Returns False, because there is no CUDA device."""
    return False


def is_initialized():
    """Returns False, because there is no CUDA device."""
    return False


def is_bf16_supported(including_emulation=True):
    """Returns False, because there is no CUDA device."""
    return False


def device_count():
    """Returns 0, because there is no CUDA device."""
    return 0


def get_arch_list():
    """Returns an empty list, because there is no CUDA device."""
    return []


def init():
    """Raises AssertionError, because there is no CUDA device."""
    _refuse()


def current_device():
    """Raises AssertionError, because there is no CUDA device."""
    _refuse()


def set_device(device):
    """Raises AssertionError, because there is no CUDA device."""
    _refuse()


def synchronize(device=None):
    """Raises AssertionError, because there is no CUDA device."""
    _refuse()


def current_stream(device=None):
    """Raises AssertionError, because there is no CUDA device."""
    _refuse()


def get_device_name(device=None):
    """Raises AssertionError, because there is no CUDA device."""
    _refuse()


def get_device_capability(device=None):
    """Raises AssertionError, because there is no CUDA device."""
    _refuse()


def get_device_properties(device=None):
    """Raises AssertionError, because there is no CUDA device."""
    _refuse()


__getattr__ = _stand_ins.of_module(__name__)
