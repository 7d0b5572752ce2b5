"""Queries about the processor."""
from gradus import _C

_CAPABILITIES = {"x86-64-v4": "AVX512", "x86-64-v3": "AVX2"}


def get_cpu_capability():
    """Returns the instruction set of the kernels in use, by PyTorch's names: "AVX512", "AVX2" or "DEFAULT".

    >>> get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
    True
    """
    return next((name for level, name in _CAPABILITIES.items() if level in _C.__config__.show()), "DEFAULT")
