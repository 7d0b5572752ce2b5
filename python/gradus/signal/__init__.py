"""The module torch.signal, which consists of the module windows."""
from gradus.signal import windows

__all__ = ["windows"]
