"""Provides the functions of torch.cpu, and functions that measure and limit the use of memory.

>>> is_available(), device_count(), current_device()
(True, 1, 'cpu')
>>> import gradus
>>> before = memory_allocated()
>>> x = gradus.ones(1000, 1000)
>>> memory_allocated() - before >= 4_000_000
True
"""
import importlib
from typing import TYPE_CHECKING

from gradus import _C

if TYPE_CHECKING:
    from gradus.cpu import amp

__all__ = ["Event", "Stream", "StreamContext", "amp", "current_device", "current_stream", "device_count", "empty_cache", "is_available", "is_initialized",
           "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats", "reset_peak_memory_stats",
           "set_cache_limit", "set_device", "set_memory_limit", "stream", "synchronize"]


def is_available():
    """Returns True, because every computer has a CPU."""
    return True


def is_initialized():
    """Returns True, because the CPU needs no initialization."""
    return True


def device_count():
    """Returns 1, because cores do not count as devices."""
    return 1


def current_device():
    """Returns 'cpu'."""
    return "cpu"


def set_device(device):
    """Does nothing, because there is only one CPU device."""


def synchronize(device=None):
    """Does nothing, because every operator has finished when it returns."""


class Stream:
    """A stream without effect, for programs that are written for any device. Operators run one after another."""

    def __init__(self, priority=-1):
        pass

    def wait_stream(self, stream):
        """Does nothing, because every operator has finished when it returns."""

    def record_event(self):
        """Does nothing, because every operator has finished when it returns."""

    def wait_event(self, event):
        """Does nothing, because every operator has finished when it returns."""


class Event:
    """An event without effect, for programs that are written for any device. query() always returns True."""

    def query(self):
        """Returns True, because every operator has finished when it returns."""
        return True

    def record(self, stream=None):
        """Does nothing, because there is no pending work to record."""

    def synchronize(self):
        """Does nothing, because every operator has finished when it returns."""

    def wait(self, stream=None):
        """Does nothing, because every operator has finished when it returns."""


_current_stream = Stream()


def current_stream(device=None):
    """Returns the stream of the innermost StreamContext, or the default stream outside of any."""
    return _current_stream


class StreamContext:
    """Context manager that makes `stream` the current stream. If `stream` is None it has no effect."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        global _current_stream
        self._previous = _current_stream
        if self.stream is not None:
            _current_stream = self.stream

    def __exit__(self, *exception):
        global _current_stream
        _current_stream = self._previous


def stream(stream):
    """Returns StreamContext(stream)."""
    return StreamContext(stream)


def memory_stats(device=None):
    """Returns a dict of memory statistics with PyTorch's keys. `allocated.all.current` is the number of blocks in use. `allocated_bytes.all` counts
    the bytes in use, and `reserved_bytes.all` the bytes in use or kept for reuse. Both have the suffixes `.current` and `.peak`.
    gradus.memory_stats() also returns the limits."""
    stats = _C.memory_stats()
    return {"allocated.all.current": stats["blocks"],
            "allocated_bytes.all.current": stats["allocated"], "allocated_bytes.all.peak": stats["peak"],
            "reserved_bytes.all.current": stats["allocated"] + stats["cached"], "reserved_bytes.all.peak": stats["peak_held"]}


def memory_allocated(device=None):
    """Returns the number of bytes in use."""
    return memory_stats()["allocated_bytes.all.current"]


def max_memory_allocated(device=None):
    """Returns the maximum of memory_allocated() since the start, or since reset_peak_memory_stats()."""
    return memory_stats()["allocated_bytes.all.peak"]


def memory_reserved(device=None):
    """Returns the number of bytes in use plus the bytes of freed memory that are kept for reuse."""
    return memory_stats()["reserved_bytes.all.current"]


def max_memory_reserved(device=None):
    """Returns the maximum of memory_reserved() since the start, or since reset_peak_memory_stats()."""
    return memory_stats()["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device=None):
    """Restarts the maxima of max_memory_allocated() and max_memory_reserved() at the current numbers of bytes."""
    _C._memory_reset_peak()


def empty_cache():
    """Releases freed memory, which is kept for reuse, to the operating system. Blocks in the caches of other threads are not released."""
    _C._memory_trim()


def set_memory_limit(bytes):
    """Sets a limit on the bytes in use. An allocation that would exceed `bytes` raises MemoryError. None removes the limit."""
    _C._memory_set_limit(bytes)


def set_cache_limit(bytes):
    """Sets the maximum number of bytes of freed memory that are kept for reuse. None restores the default, which is the value of the environment
    variable GRADUS_CACHE_LIMIT (bytes, or a number followed by K, M, G or T). Without that variable, memory_reserved() stays below 64 MiB plus 1.25
    times the recent maximum of memory_allocated()."""
    _C._memory_set_cache_limit(bytes)


def __getattr__(name):
    if name == "amp":
        return importlib.import_module("gradus.cpu.amp")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
