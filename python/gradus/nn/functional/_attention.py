"""Attention."""
from __future__ import annotations

from gradus import _C

__all__ = ["scaled_dot_product_attention"]

scaled_dot_product_attention = _C.nn.scaled_dot_product_attention
