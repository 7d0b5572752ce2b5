"""Mixed precision by its older names; see :mod:`gradus.amp`."""
from .autocast_mode import autocast
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
