"""What PyTorch asks of its libraries. Gradus has kernels of its own and none of these; switches can be set and have no effect.

>>> import gradus
>>> gradus.backends.cudnn.is_available(), gradus.backends.mps.is_available()
(False, False)
"""
from gradus.backends import cuda, cudnn, mha, mkl, mkldnn, mps, openmp

__all__ = ["cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp"]
