"""Gradus: strided tensors with automatic differentiation. `import gradus as torch` runs an ordinary PyTorch program."""
from gradus._C import *  # noqa: F403
from gradus import _C

__version__ = _C.__version__


def __getattr__(name):
    raise AttributeError(f"module 'gradus' has no attribute '{name}'")
