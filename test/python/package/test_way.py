"""The number of stack frames, files and crossings between a call and its kernel's loop, which tools/way.py counts."""
import sys

import pytest

from conftest import BUILD, ROOT, needs

sys.path.insert(0, str(ROOT / "tools"))
import way  # noqa: E402

LIMITS = {"frames": 18, "files": 9, "crossings": 5}


def test_a_call_is_near_its_loop():
    needs("gdb", "as root, apt-get install gdb")
    if "-g" not in (BUILD / "CMakeCache.txt").read_text().partition("CMAKE_C_FLAGS_DEBUG:")[2].partition("\n")[0] or BUILD.name == "release":
        pytest.skip("the build has no debug information, which shows inlined calls: make test-package-asan SELECT=way")
    counts = way.counted(way.stack(BUILD))
    assert counts.keys() == LIMITS.keys() and all(counts[name] <= limit for name, limit in LIMITS.items()), counts
