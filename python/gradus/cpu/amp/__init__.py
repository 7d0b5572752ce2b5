"""Mixed precision on the cpu by its older names; ``gradus.amp`` has the newer."""
from .autocast_mode import autocast
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
