"""Signal processing under PyTorch's names: the module windows."""
from gradus.signal import windows

__all__ = ["windows"]
