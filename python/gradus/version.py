"""Versions: ``__version__`` is that of the PyTorch whose behaviour Gradus has, with Gradus's own behind it; ``gradus`` is Gradus's own.

Gradus is built for no accelerator.
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
