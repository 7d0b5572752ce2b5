"""Mixed precision. autocast computes matrix products in 16 bits, and GradScaler keeps small gradients from becoming 0 in float16.

>>> import gradus
>>> model = gradus.nn.Linear(3, 2)
>>> with autocast("cpu", dtype=gradus.bfloat16):
...     output = model(gradus.ones(1, 3))
>>> output.dtype
torch.bfloat16
"""
from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available, is_autocast_enabled
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available", "is_autocast_enabled"]
