"""Checks that calls leak nothing, whether they succeed or fail. The numbers of references, of the interpreter's memory blocks and of the library's
memory blocks do not grow.

GRADUS_REFERENCE_CALLS sets how often each call is repeated (1e5 for a thorough run)."""
import ctypes
import gc
import os
import sys
import warnings

import pytest
from surface import Arguments, functions, levels

import gradus as torch

CALLS = int(os.environ.get("GRADUS_REFERENCE_CALLS", "300"))
TRIED, KEPT = 80, 3


class MemoryStats(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("allocated", "cached", "peak", "blocks", "limit", "cache_limit", "peak_held")]


library = ctypes.CDLL(torch._C.__file__)
library.grd_memory_get_stats.restype = MemoryStats


def attempt(function, positional, keywords):
    try:
        function(*positional, **keywords)
        return True
    except Exception:
        return False


def calls_of(name, function, number):
    """Returns up to KEPT random calls of `function` that succeed, followed by up to KEPT that fail. A call is (positional, keyword) arguments."""
    arguments, good, bad = Arguments(number), [], []
    for _ in range(TRIED):
        call = arguments.call()
        if any(type(a) is int and a >= 2**31 for a in [*call[0], *call[1].values()]):
            continue  # such a number may be used as a size, which makes tensors of gigabytes
        kind = good if attempt(function, *call) else bad
        if len(kind) < KEPT:
            kind.append(call)
    return good + bad


def repeat(call_of, times):
    function, (positional, keywords) = call_of
    for _ in range(times):
        attempt(function, positional, keywords)


def grown(function, call):
    """Repeats the call CALLS times. Returns the largest increase among these numbers: memory blocks of the interpreter, memory blocks of the library,
    references to each argument."""
    repeat((function, call), 20)
    objects = [*call[0], *call[1].values(), torch.float32, torch.Tensor]
    blocks, kept = sys.getallocatedblocks(), library.grd_memory_get_stats().blocks
    references = [sys.getrefcount(o) for o in objects]
    repeat((function, call), CALLS)
    if sys.getallocatedblocks() - blocks > CALLS // 4:
        gc.collect()  # cycles that the collector frees are no leaks
    return max(sys.getallocatedblocks() - blocks, library.grd_memory_get_stats().blocks - kept,
               *(sys.getrefcount(o) - r for o, r in zip(objects, references)))


# Functions whose purpose is to keep an object: they store hooks on a tensor, or the autograd history of a tensor that is written in place.
KEEPS = {"register_hook", "register_post_accumulate_grad_hook", "retain_grad"}


@pytest.mark.parametrize("part", range(8))
def test_calls_with_dual_and_batch_tensors_leak_nothing(part):
    with levels():
        test_calls_leak_nothing(part)


@pytest.mark.parametrize("part", range(8))
def test_calls_leak_nothing(part):
    warnings.simplefilter("ignore")
    gc.disable()
    leaks = []
    try:
        for number, (name, function) in enumerate(functions()):
            if number % 8 != part or name.split(".")[-1] in KEEPS:
                continue
            for call in calls_of(name, function, number):
                recorded = any(isinstance(a, torch.Tensor) and a.requires_grad for a in [*call[0], *call[1].values()])
                if not recorded and grown(function, call) > CALLS // 4:
                    leaks.append((name, call))
    finally:
        gc.enable()
    assert not leaks
