"""Switches of the libraries that PyTorch uses. Gradus uses none of these libraries, so the switches can be set but have no effect.

>>> import gradus
>>> gradus.backends.cudnn.is_available(), gradus.backends.mps.is_available()
(False, False)
"""
from gradus.backends import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, nnpack, openmp, opt_einsum, quantized

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum", "quantized"]
