"""The older names of mixed precision on the CPU. New programs use ``gradus.amp``."""
from .autocast_mode import autocast
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
