"""Discrete Fourier transforms under PyTorch's names.

Each function takes real or complex tensors, integers as the default float. `n` or `s` cuts the input, or fills it up with zeros; norm "backward" divides inverse transforms by the number of
elements, "forward" the others, and "ortho" all by its root.
"""
from gradus._C.fft import fft, fft2, fftfreq, fftn, fftshift, hfft, hfft2, hfftn, ifft, ifft2, ifftn, ifftshift, ihfft, ihfft2, ihfftn, irfft, irfft2, irfftn, rfft, rfft2, rfftfreq, rfftn

__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft",
           "rfft2", "rfftfreq", "rfftn"]
