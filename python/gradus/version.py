"""Defines version numbers. ``__version__`` is the version of PyTorch whose behaviour Gradus follows, with Gradus's own version appended. ``gradus``
is Gradus's own version.

Gradus is built without support for accelerators, so the versions of their libraries are None.
"""
from gradus import _C

__all__ = ["__version__", "cuda", "debug", "git_version", "gradus", "hip", "rocm", "xpu"]

gradus = _C.__version__
__version__ = f"2.13.0+gradus.{gradus}"
debug = False
cuda = None
git_version = "Unknown"  # PyTorch's value for a build that does not record its commit
hip = None
rocm = None
xpu = None
