"""Defines gradus.cpu.amp.autocast, an older name of gradus.amp.autocast for the CPU."""
import warnings

import gradus
from gradus import amp

__all__ = ["autocast"]


class autocast(amp.autocast):
    """Equivalent to ``gradus.amp.autocast("cpu", ...)``. Deprecated; creating one gives a FutureWarning."""

    def __init__(self, enabled=True, dtype=gradus.bfloat16, cache_enabled=True):
        warnings.warn("`torch.cpu.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cpu', args...)` instead.", FutureWarning, stacklevel=2)
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
