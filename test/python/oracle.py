"""`torch` is PyTorch, with which tests compare. If PyTorch is not installed, `torch` is a stand-in that skips each test that uses it."""
import os

import pytest

ABSENT = "PyTorch is not installed: build/venv/bin/pip install -r tools/requirements-oracle.txt"


class Absent:
    """Returns itself for every attribute while tests are collected, so that parameters may name a dtype. While a test runs it skips the test."""

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


# PyTorch's libraries choose kernels by the CPU, and the results differ in bits. These settings choose kernels that most CPUs have; newer ones have
# crashed.
os.environ.setdefault("MKL_CBWR", "AVX2")
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
try:
    import torch
except ModuleNotFoundError:
    torch = Absent()


def needs_torch():
    """Skips the test if PyTorch is not installed. For tests that import PyTorch in another process."""
    if isinstance(torch, Absent):
        pytest.skip(ABSENT)
