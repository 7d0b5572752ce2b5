"""Functions for the memory of CUDA devices. There are no CUDA devices."""
from gradus.cuda._absent import refuse as _refuse

__all__ = ["empty_cache", "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved"]


def empty_cache():
    """Does nothing, because there is no CUDA device."""


def memory_allocated(device=None):
    """Returns 0, because there is no CUDA device."""
    return 0


def memory_reserved(device=None):
    """Returns 0, because there is no CUDA device."""
    return 0


def max_memory_allocated(device=None):
    """Returns 0, because there is no CUDA device."""
    return 0


def max_memory_reserved(device=None):
    """Returns 0, because there is no CUDA device."""
    return 0


def mem_get_info(device=None):
    """Raises AssertionError, because there is no CUDA device."""
    _refuse()
