"""Mixed precision: there is none yet. What is disabled does nothing, and what is enabled is refused."""
from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available, is_autocast_enabled
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available", "is_autocast_enabled"]
