"""`torch` is PyTorch, with which tests compare. Where it is not installed, a stand-in takes its place that skips each test that asks it for something."""
import os

import pytest

ABSENT = "PyTorch is not installed: build/venv/bin/pip install -r tools/requirements-oracle.txt"


class Absent:
    """Answers with itself while modules are imported and tests collected, so that a parameter may name a dtype; in a test it skips."""

    def __getattr__(self, name):
        if name.startswith("__") and "PYTEST_CURRENT_TEST" not in os.environ:
            raise AttributeError(name)
        return self()

    def __call__(self, *args, **kwargs):
        if "PYTEST_CURRENT_TEST" in os.environ:
            pytest.skip(ABSENT)
        return self

    def __repr__(self):
        return "torch"


# PyTorch's libraries choose kernels by the CPU, and give other bits with each. These are those that most CPUs have: others once ended the process.
os.environ.setdefault("MKL_CBWR", "AVX2")
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
try:
    import torch
except ModuleNotFoundError:
    torch = Absent()


def needs_torch():
    """Skips the test where PyTorch is not installed: for those that import it in a process of their own."""
    if isinstance(torch, Absent):
        pytest.skip(ABSENT)
