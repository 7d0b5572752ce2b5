"""Discrete Fourier transforms with PyTorch's names.

Each function takes real or complex tensors; integers are converted to the default float dtype. `n` (an int) or `s` (one int for each dimension) is
the size of the transform; the input is cut or padded with zeros to that size. The forward transform is X[k] = sum_j x[j] exp(-2 pi i j k / n). With
norm="backward", the default, the inverse transform is divided by n. With "forward" the forward transform is divided by n. With "ortho" both
transforms are divided by sqrt(n).
"""
from gradus._C.fft import fft, fft2, fftfreq, fftn, fftshift, hfft, hfft2, hfftn, ifft, ifft2, ifftn, ifftshift, ihfft, ihfft2, ihfftn, irfft, irfft2, irfftn, rfft, rfft2, rfftfreq, rfftn

__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft",
           "rfft2", "rfftfreq", "rfftn"]
