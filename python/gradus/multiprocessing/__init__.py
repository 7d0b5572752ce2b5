"""Python's ``multiprocessing``, with tensors in shared memory.

A tensor that is sent through a Queue, a Pipe or a Pool, or passed to a spawned Process, is moved to shared memory, and the receiver gets a tensor
over the same memory. If the memory is also used by something other than tensors (a graph that saved it, a NumPy array), a copy is sent.

There are two sharing strategies. With ``file_descriptor``, the default, the memory has no name and its file descriptor is sent. The operating system
frees the memory when no process uses it any more, even if processes were killed. With ``file_system`` the memory has a name below /dev/shm and no
descriptor stays open. Memory that killed processes leave behind is removed when the main process ends.

>>> import multiprocessing
>>> get_context("spawn") is multiprocessing.get_context("spawn")
True
>>> queue = SimpleQueue()
>>> import gradus as torch
>>> x = torch.zeros(2)
>>> queue.put(x)
>>> queue.get()[0] = 5
>>> x
tensor([5., 0.])
"""
import glob
import hashlib
import multiprocessing
import multiprocessing.util
import os
import secrets
from multiprocessing import *  # noqa: F403
from multiprocessing import __all__ as _names

from gradus.multiprocessing.reductions import init_reductions
from gradus.multiprocessing.spawn import ProcessContext, ProcessExitedException, ProcessRaisedException, SpawnContext, spawn, start_processes

__all__ = ["set_sharing_strategy", "get_sharing_strategy", "get_all_sharing_strategies", "spawn", "SpawnContext", "ProcessContext", "ProcessExitedException",
           "ProcessRaisedException", "start_processes", *_names]

_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"
_swept = None  # id of the main process, which unlinks leftover names of shared memory when it exits; None until a name is made


def get_all_sharing_strategies():
    """Returns the set of names of the sharing strategies."""
    return _STRATEGIES


def get_sharing_strategy():
    """Returns the current sharing strategy, 'file_descriptor' or 'file_system'."""
    return _strategy


def set_sharing_strategy(new_strategy):
    """Sets the sharing strategy for memory that is shared from now on. AssertionError: unknown strategy."""
    global _strategy
    assert new_strategy in _STRATEGIES, f"invalid sharing strategy {new_strategy!r}, expected one of {_STRATEGIES}"
    _strategy = new_strategy


def new_name():
    """Returns a new, random name for shared memory, or None if the strategy uses no names."""
    return _prefix() + secrets.token_hex(8) if _strategy == "file_system" else None


def _prefix():
    """Returns the prefix of the names below /dev/shm that a main process and its children use. The main process unlinks leftover names with this
    prefix when it exits."""
    global _swept
    prefix = "/gradus_" + hashlib.sha256(multiprocessing.current_process().authkey).hexdigest()[:16] + "_"
    if _swept != os.getpid() and multiprocessing.parent_process() is None:
        _swept = os.getpid()
        multiprocessing.util.Finalize(None, _sweep, (prefix,), exitpriority=-100)
    return prefix


def _sweep(prefix):
    for path in glob.glob(f"/dev/shm{prefix}*"):
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass  # another process has unlinked it since glob() listed it


init_reductions()
