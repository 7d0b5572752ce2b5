"""The older names of mixed precision on CUDA devices. New programs use :mod:`gradus.amp`."""
from .autocast_mode import autocast
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
