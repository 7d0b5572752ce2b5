"""Companions of scaled_dot_product_attention: choice of the implementation, biases with a special shape, and attention with functions of the scores.

Gradus has one kernel, which serves every backend: a choice is kept, can be asked for in gradus.backends.cuda, and changes no number.
"""
from __future__ import annotations

import contextlib
import enum

from gradus import _stand_ins
from gradus.backends import cuda

from . import bias as bias
from . import flex_attention as flex_attention

__all__ = ["SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.IntEnum):
    """PyTorch's implementations of scaled_dot_product_attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    __str__ = enum.Enum.__str__


_SWITCHES = {SDPBackend.MATH: (cuda.math_sdp_enabled, cuda.enable_math_sdp), SDPBackend.FLASH_ATTENTION: (cuda.flash_sdp_enabled, cuda.enable_flash_sdp),
             SDPBackend.EFFICIENT_ATTENTION: (cuda.mem_efficient_sdp_enabled, cuda.enable_mem_efficient_sdp),
             SDPBackend.CUDNN_ATTENTION: (cuda.cudnn_sdp_enabled, cuda.enable_cudnn_sdp)}


def _cur_sdpa_kernel_backends(with_priority=False):
    return [backend for backend, (enabled, _) in _SWITCHES.items() if enabled()]


def _enable(chosen):
    for backend, (_, enable) in _SWITCHES.items():
        enable(backend in chosen)


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """The backends that scaled_dot_product_attention may take inside a ``with`` block or a decorated function.

    AssertionError: neither a SDPBackend nor a list of them.

    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     gradus.backends.cuda.flash_sdp_enabled()
    False
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {type(backends).__name__}")
    before = _cur_sdpa_kernel_backends()
    _enable([backends] if isinstance(backends, SDPBackend) else backends)
    try:
        yield {}
    finally:
        _enable(before)

__getattr__ = _stand_ins.of_module(__name__)
