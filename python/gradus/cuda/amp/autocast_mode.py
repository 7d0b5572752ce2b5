"""Defines gradus.cuda.amp.autocast, an older name of gradus.amp.autocast for CUDA devices."""
from gradus import amp

__all__ = ["autocast"]


class autocast(amp.autocast):
    """Equivalent to ``gradus.amp.autocast("cuda", ...)``, which is disabled with a warning because there is no CUDA device."""

    def __init__(self, enabled=True, dtype=None, cache_enabled=True):
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
