"""The cpu as a device, under the names of torch.cpu, and its memory, under those of torch.accelerator.

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
    """True."""
    return True


def is_initialized():
    """True."""
    return True


def device_count():
    """Returns 1: cores are not devices."""
    return 1


def current_device():
    """'cpu'."""
    return "cpu"


def set_device(device):
    """Nothing: there is one cpu."""


def synchronize(device=None):
    """Nothing: a call has finished when it returns."""


class Stream:
    """Exists for programs that are written for any device: calls run one after the other."""

    def __init__(self, priority=-1):
        pass

    def wait_stream(self, stream):
        """Nothing."""

    def record_event(self):
        """Nothing."""

    def wait_event(self, event):
        """Nothing."""


class Event:
    """Exists for programs that are written for any device: an event has always happened."""

    def query(self):
        """True."""
        return True

    def record(self, stream=None):
        """Nothing."""

    def synchronize(self):
        """Nothing."""

    def wait(self, stream=None):
        """Nothing."""


_current_stream = Stream()


def current_stream(device=None):
    """Returns the stream of the innermost StreamContext, or the one that was there before any."""
    return _current_stream


class StreamContext:
    """Makes `stream` the current stream for a block; None changes nothing."""

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
    """Returns a StreamContext."""
    return StreamContext(stream)


def memory_stats(device=None):
    """Statistics under PyTorch's keys: `allocated_bytes.all` (bytes in use), `reserved_bytes.all` (those, and bytes held for reuse), each
    `.current` and `.peak`, and `allocated.all.current` (blocks in use). gradus.memory_stats() also tells the limits."""
    stats = _C.memory_stats()
    return {"allocated.all.current": stats["blocks"],
            "allocated_bytes.all.current": stats["allocated"], "allocated_bytes.all.peak": stats["peak"],
            "reserved_bytes.all.current": stats["allocated"] + stats["cached"], "reserved_bytes.all.peak": stats["peak_held"]}


def memory_allocated(device=None):
    """Bytes in use."""
    return memory_stats()["allocated_bytes.all.current"]


def max_memory_allocated(device=None):
    """Returns the most bytes in use since the start, or since reset_peak_memory_stats()."""
    return memory_stats()["allocated_bytes.all.peak"]


def memory_reserved(device=None):
    """Bytes in use and held for reuse."""
    return memory_stats()["reserved_bytes.all.current"]


def max_memory_reserved(device=None):
    """Returns the most bytes in use and held for reuse since the start, or since reset_peak_memory_stats()."""
    return memory_stats()["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device=None):
    """Lets the peaks begin at what is in use now."""
    _C._memory_reset_peak()


def empty_cache():
    """Returns memory that is held for reuse to the system. Free memory of other threads' short lists stays."""
    _C._memory_trim()


def set_memory_limit(bytes):
    """Makes an allocation that would take the bytes in use above `bytes` raise MemoryError. None removes the limit."""
    _C._memory_set_limit(bytes)


def set_cache_limit(bytes):
    """Keeps at most `bytes` of freed memory for reuse. None: as the environment variable GRADUS_CACHE_LIMIT says (bytes, or a number followed
    by K, M, G or T); without it what is held stays within a quarter and 64 MiB above the most that was in use lately."""
    _C._memory_set_cache_limit(bytes)


def __getattr__(name):
    if name == "amp":
        return importlib.import_module("gradus.cpu.amp")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
