"""Checks that the resident memory grows and shrinks with the memory in use, whatever sizes are allocated. Also tests memory limits and statistics.

Resident memory is read from /proc in a process that the test starts. No time is measured."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gradus as torch

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="resident memory is read from /proc, which this system lacks")
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "") or "libtsan" in os.environ.get("LD_PRELOAD", "")

PRELUDE = """
import random, threading
import gradus as torch
r = random.Random(1)
def megabytes(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field)) / 1024
before = megabytes("VmRSS")
"""
MEASURE = """
print(megabytes("VmHWM") - before, megabytes("VmRSS") - before)
"""
# Name -> (program, limit at any time, limit at the end). The limits are megabytes of resident memory beyond the memory in use after importing the
# package.
LOOPS = {
    "growing": ("for n in range(1, 120):\n    x = torch.ones(n * 500_000); del x", 320, 320),
    "shrinking": ("for n in range(119, 0, -1):\n    x = torch.ones(n * 500_000); del x", 370, 370),
    "random sizes": ("for _ in range(100):\n    x = torch.ones(r.randrange(1, 60_000_000)); del x", 370, 370),
    "small, then one large": ("xs = [torch.ones(250_000) for _ in range(500)]; del xs\ny = torch.ones(120_000_000)", 750, 750),
    "one large, then small": ("y = torch.ones(120_000_000); del y\nxs = [torch.ones(250_000) for _ in range(500)]", 750, 750),
    "with holes": ("xs = [torch.ones(250_000) for _ in range(400)]; xs = xs[::8]\ny = torch.ones(85_000_000)", 650, 650),
    "just above a class": ("xs = [torch.ones(262_145 + 8 * i) for i in range(300)]; del xs\ny = torch.ones(75_000_000)", 500, 500),
    "medium blocks": ("xs = [torch.ones(2_500) for _ in range(30_000)]; del xs\ny = torch.ones(75_000_000)", 500, 500),
    "small blocks": ("xs = [torch.ones(200) for _ in range(300_000)]; del xs\ny = torch.ones(60_000_000)", 500, 500),
    "lists of growing sizes": ("for n in range(1, 120):\n    xs = [torch.ones(n * 5000) for _ in range(40)]; del xs", 250, 250),
    "a peak, then little": ("x = torch.ones(120_000_000); del x\nfor _ in range(30_000):\n    x = torch.empty(300_000); del x", 500, 120),
    "eight threads": ('''
def work(seed):
    r = random.Random(seed)
    for _ in range(30):
        x = torch.ones(r.randrange(1, 8_000_000)); del x
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]''', 450, 450),
}


def run(program, **environment):
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ | environment)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.skipif(SANITIZED, reason="a sanitizer keeps freed memory for itself")
@pytest.mark.parametrize("name", LOOPS)
def test_resident_memory_follows_use(name):
    program, most, most_at_end = LOOPS[name]
    peak, end = map(float, run(PRELUDE + program + MEASURE).split())
    assert peak <= most and end <= most_at_end, f"{name}: {peak:.0f} MB at most, {end:.0f} MB at the end"


@pytest.mark.skipif(SANITIZED, reason="a sanitizer keeps freed memory for itself")
def test_empty_cache_returns_memory():
    program = PRELUDE + "x = torch.ones(50_000_000); del x\nheld = megabytes('VmRSS') - before\ntorch.cpu.empty_cache()\n" \
        "print(held, megabytes('VmRSS') - before)"
    held, left = map(float, run(program).split())
    assert held > 180 and left < 20


@pytest.mark.parametrize("text, expected", [("0", 0), ("1000", 1000), ("64K", 64 << 10), ("3M", 3 << 20), ("2G", 2 << 30), ("1T", 1 << 40),
                                            ("", -1), ("64X", -1), ("64MB", -1), ("-1", -1), (" 1", -1), ("99999999999T", -1), ("M", -1)])
def test_cache_limit_from_the_environment(text, expected):
    assert int(run("import gradus; print(gradus.memory_stats()['cache_limit'])", GRADUS_CACHE_LIMIT=text)) == expected


@pytest.mark.skipif(SANITIZED, reason="a sanitizer keeps freed memory for itself")
def test_cache_limits_bound_the_cached_memory():
    program = "import gradus as torch\nx = torch.ones(50_000_000); del x\nprint(torch.memory_stats()['cached'])\n"
    assert int(run(program, GRADUS_CACHE_LIMIT="8M")) <= 12 << 20
    assert int(run("import gradus\ngradus.cpu.set_cache_limit(8 << 20)\n" + program)) <= 12 << 20
    assert int(run("import gradus\ngradus.cpu.set_cache_limit(8 << 20)\ngradus.cpu.set_cache_limit(None)\n" + program)) >= 190_000_000


def test_memory_limit(no_collector):
    try:
        torch.cpu.set_memory_limit(torch.cpu.memory_allocated() + 10_000_000)
        x = torch.ones(1_000_000)
        with pytest.raises(MemoryError, match="the limit is"):
            torch.ones(5_000_000)
        del x
    finally:
        torch.cpu.set_memory_limit(None)
    assert torch.memory_stats()["limit"] == 0
    torch.ones(5_000_000)


@pytest.mark.parametrize("function", ["set_memory_limit", "set_cache_limit"])
def test_memory_and_cache_limits_refuse_invalid_values(function):
    with pytest.raises(TypeError, match=rf"{function}\(\): argument 'bytes' must be int or None, not str"):
        getattr(torch.cpu, function)("1G")
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        getattr(torch.cpu, function)(-1)


def test_memory_statistics(no_collector):
    # The first call of a thread allocates a block that the thread keeps, which would change the counts below.
    torch.ones(1)
    torch.cpu.reset_peak_memory_stats()
    before, blocks = torch.cpu.memory_allocated(), torch.memory_stats()["blocks"]
    x = torch.ones(1_000_000)
    assert torch.cpu.memory_allocated() - before >= 4_000_000
    assert torch.memory_stats()["blocks"] > blocks
    del x
    assert torch.cpu.memory_allocated() == before and torch.memory_stats()["blocks"] == blocks
    assert torch.cpu.max_memory_allocated() - before >= 4_000_000
    torch.cpu.reset_peak_memory_stats()
    assert torch.cpu.max_memory_allocated() == torch.cpu.memory_allocated() == before
    stats = torch.cpu.memory_stats()
    assert all(type(value) is int and value >= 0 for value in stats.values())
    assert stats["reserved_bytes.all.current"] == torch.cpu.memory_reserved() >= stats["allocated_bytes.all.current"]
    assert torch.cpu.max_memory_reserved() >= torch.cpu.max_memory_allocated()


def peak_of(call):
    """Returns the peak of the memory in use during a call, in megabytes beyond the memory in use before the call."""
    torch.cpu.reset_peak_memory_stats()
    before = torch.cpu.memory_allocated()
    call()
    return (torch.cpu.max_memory_allocated() - before) / 1e6


# Operands and results have 0.5 to 1 megabyte. A kernel that computed all pairs of rows at once would use hundreds of megabytes.
PAIRS = {
    "cdist, p = 0": lambda x, t: torch.cdist(x, x, 0.0),
    "cdist, p = 1": lambda x, t: torch.cdist(x, x, 1.0),
    "cdist, p = 2": lambda x, t: torch.cdist(x, x, 2.0, compute_mode="donot_use_mm_for_euclid_dist"),
    "cdist, p = 3": lambda x, t: torch.cdist(x, x, 3.0),
    "cdist, p = inf": lambda x, t: torch.cdist(x, x, float("inf")),
    "cdist by a product": lambda x, t: torch.cdist(x, x, 2.0),
    "multilabel_margin_loss": lambda x, t: torch.nn.functional.multilabel_margin_loss(x, t),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairwise_losses_and_distances_do_not_store_all_pairs(name, no_collector):
    x, t = torch.randn(500, 300, requires_grad=True), torch.randint(0, 300, (500, 300))
    assert peak_of(lambda: PAIRS[name](x, t).sum().backward()) < 25
