"""Window functions under PyTorch's names, symmetric by default: with sym=False one period of a window that repeats."""
from gradus.signal.windows.windows import (bartlett, blackman, cosine, exponential, gaussian, general_cosine, general_hamming, hamming, hann, kaiser,
                                           nuttall)

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann", "kaiser", "nuttall"]
