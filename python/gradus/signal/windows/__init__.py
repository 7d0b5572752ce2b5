"""The functions of torch.signal.windows. Windows are symmetric by default; with sym=False they are one period of a periodic window."""
from gradus.signal.windows.windows import (bartlett, blackman, cosine, exponential, gaussian, general_cosine, general_hamming, hamming, hann, kaiser,
                                           nuttall)

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann", "kaiser", "nuttall"]
