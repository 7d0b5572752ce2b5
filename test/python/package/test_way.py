"""Checks that the call stack from a call in Python down to its kernel's loop is short. The limits are numbers of stack frames, of files, and of calls
between generated and hand-written code. tools/way.py counts them."""
import sys

import pytest

from conftest import BUILD, ROOT, needs

sys.path.insert(0, str(ROOT / "tools"))
import way  # noqa: E402

LIMITS = {"frames": 18, "files": 9, "crossings": 5}


def test_the_call_path_to_a_kernel_is_at_most_18_frames():
    needs("gdb", "as root, apt-get install gdb")
    if "-g" not in (BUILD / "CMakeCache.txt").read_text().partition("CMAKE_C_FLAGS_DEBUG:")[2].partition("\n")[0] or BUILD.name == "release":
        pytest.skip("the build has no debug information, which shows inlined calls: make test-package-asan SELECT=way")
    counts = way.counted(way.stack(BUILD))
    assert counts.keys() == LIMITS.keys() and all(counts[name] <= limit for name, limit in LIMITS.items()), counts
