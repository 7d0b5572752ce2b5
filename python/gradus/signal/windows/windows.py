"""The functions of torch.signal.windows. All except general_cosine are operators of the C library. general_cosine converts its coefficients to a
tensor and calls an operator."""
from collections.abc import Iterable

from gradus import _C
from gradus._C.windows import bartlett, blackman, cosine, exponential, gaussian, general_hamming, hamming, hann, kaiser, nuttall

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann", "kaiser", "nuttall"]


def general_cosine(M, *, a, sym=True, dtype=None, layout=_C.strided, device=None, requires_grad=False):
    """Returns a window w of shape (M,) with w[k] = sum_i (-1)^i a[i] cos(2 pi i k / n), where n = M - 1 if `sym` is true, otherwise n = M.

    ValueError: M is negative, dtype is neither float32 nor float64, or `a` is empty. TypeError: `a` is not a sequence of numbers.

    >>> torch.signal.windows.general_cosine(5, a=[0.5, 0.5])
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    return _C.windows.general_cosine(M, a=_C.tensor(list(a), dtype=_C.float64), sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
