"""Borders: the operator."""
from gradus._C import nn as _nn

__all__ = ["pad"]

pad = _nn.pad
