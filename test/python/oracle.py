"""Defines `torch` as PyTorch, with which tests compare. If PyTorch is not installed, `torch` is an object that skips each test that uses it."""
import os

import pytest

ABSENT = "PyTorch is not installed: build/venv/bin/pip install -r tools/requirements-oracle.txt"


class Absent:
    """Takes the place of the module torch if PyTorch is not installed. While tests are collected, every attribute is this object itself, so that a
    test's parameters may contain torch.float32. While a test runs, reading an attribute skips the test."""

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


# PyTorch's libraries choose kernels by the type of CPU, and the last bits of results depend on the kernel. These settings select kernels that run on
# most CPUs. They exclude the newest kernels, which have crashed.
os.environ.setdefault("MKL_CBWR", "AVX2")
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
try:
    import torch
except ModuleNotFoundError:
    torch = Absent()


def needs_torch():
    """Skips the test if PyTorch is not installed. Tests that import PyTorch in another process call this function."""
    if isinstance(torch, Absent):
        pytest.skip(ABSENT)
