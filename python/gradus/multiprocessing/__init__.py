"""Python's ``multiprocessing``, with tensors in memory that processes share.

A tensor that is sent through a Queue, a Pipe or a Pool, or given to a Process that is spawned, is moved to shared memory, and the receiver has a tensor over the same bytes. A
tensor that something else than tensors uses (a graph that saved it, a NumPy array over it) is sent as a copy.

Two strategies: ``file_descriptor``, the default, gives the memory no name and sends its descriptor; it goes when its last user goes, however that
ends. ``file_system`` gives it a name below /dev/shm and keeps no descriptor open; what killed processes leave goes with the main process.

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
_swept = None  # The id of the process that removes the remaining names of shared memory when it ends.


def get_all_sharing_strategies():
    """Returns the names of the ways in which memory is shared."""
    return _STRATEGIES


def get_sharing_strategy():
    """Returns the way in which memory that is shared from now on is found: 'file_descriptor' or 'file_system'."""
    return _strategy


def set_sharing_strategy(new_strategy):
    """Chooses how memory that is shared from now on is found; AssertionError for other words."""
    global _strategy
    assert new_strategy in _STRATEGIES, f"invalid sharing strategy {new_strategy!r}, expected one of {_STRATEGIES}"
    _strategy = new_strategy


def new_name():
    """Returns the name of new shared memory; None with the strategy that needs none."""
    return _prefix() + secrets.token_hex(8) if _strategy == "file_system" else None


def _prefix():
    """Returns the prefix of the names that a main process and its children use. The main process removes the remaining names when it ends."""
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
            pass  # the last process that used it has removed it meanwhile


init_reductions()
