"""The functions of torch.signal.windows; they are operators of the schema but for general_cosine, whose coefficients are a list."""
from collections.abc import Iterable

from gradus import _C
from gradus._C.windows import bartlett, blackman, cosine, exponential, gaussian, general_hamming, hamming, hann, kaiser, nuttall

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann", "kaiser", "nuttall"]


def general_cosine(M, *, a, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False):
    """Returns the sum of (-1)^i a[i] cos(2 pi i k / n) for k < M, with n = M - 1, or M unless sym.

    ValueError: M is negative, dtype is neither float32 nor float64, or there are no coefficients `a`. TypeError: those are not several numbers.

    >>> torch.signal.windows.general_cosine(5, a=[0.5, 0.5])
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    return _C.windows.general_cosine(M, a=_C.tensor(list(a), dtype=_C.float64), sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
