"""Rearrangement of channels as pixels, and back."""
from __future__ import annotations

from .. import functional as F
from .module import Module

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """Rearranges (..., C r^2, H, W) to (..., C, H r, W r), where r = upscale_factor (Shi et al., 2016).

    >>> nn.PixelShuffle(2)(gradus.arange(4).reshape(4, 1, 1)).tolist()
    [[[0, 1], [2, 3]]]
    """

    def __init__(self, upscale_factor: int):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input):
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self):
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Rearranges (..., C, H r, W r) to (..., C r^2, H, W), where r = downscale_factor. It is the inverse of PixelShuffle."""

    def __init__(self, downscale_factor: int):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input):
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self):
        return f"downscale_factor={self.downscale_factor}"
