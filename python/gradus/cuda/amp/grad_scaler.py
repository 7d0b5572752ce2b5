"""Defines gradus.cuda.amp.GradScaler, an older name of gradus.amp.GradScaler for CUDA devices."""
from gradus import amp

__all__ = ["GradScaler"]


class GradScaler(amp.GradScaler):
    """Equivalent to ``gradus.amp.GradScaler("cuda", ...)``, which is disabled with a warning because there is no CUDA device."""

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
