"""Additions to scaled_dot_product_attention: selection of backends, causal biases, and flex_attention in a submodule.

Gradus has one implementation, which serves every backend. A selection of backends is stored and can be read in gradus.backends.cuda, but does not
change results.
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
    """Names of PyTorch's implementations of scaled_dot_product_attention."""

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
    """Returns the list of the SDPBackends that are enabled for scaled_dot_product_attention."""
    return [backend for backend, (enabled, _) in _SWITCHES.items() if enabled()]


def _enable(chosen):
    """Enables the SDPBackends in `chosen` for scaled_dot_product_attention and disables all others."""
    for backend, (_, enable) in _SWITCHES.items():
        enable(backend in chosen)


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Returns a context manager, also usable as a decorator, that enables only the given backends.

    backends: an SDPBackend or a list of SDPBackends; other types raise AssertionError. set_priority has no effect.

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
