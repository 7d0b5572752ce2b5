"""The switches of PyTorch's libraries. Gradus has kernels of its own and none of these libraries; the switches can be set and have no effect.

>>> import gradus
>>> gradus.backends.cudnn.is_available(), gradus.backends.mps.is_available()
(False, False)
"""
from gradus.backends import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, nnpack, openmp, opt_einsum, quantized

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum", "quantized"]
