"""Python's ``multiprocessing`` by the name PyTorch has for it. Tensors go to other processes as copies: no memory is shared.

>>> import multiprocessing
>>> get_context("spawn") is multiprocessing.get_context("spawn")
True
"""
from multiprocessing import *  # noqa: F403
from multiprocessing import __all__  # noqa: F401
