"""autocast by its older name."""
from gradus import amp

__all__ = ["autocast"]


class autocast(amp.autocast):
    """``gradus.amp.autocast("cuda", ...)``, which is disabled, with a warning."""

    def __init__(self, enabled=True, dtype=None, cache_enabled=True):
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
