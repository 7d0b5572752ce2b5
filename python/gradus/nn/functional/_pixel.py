"""Channels laid out as pixels, and back; channels in another order. Views and copies."""
from __future__ import annotations

from ._arguments import require

__all__ = ["channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]


def _check(name, input, factor, argument, ndim):
    require(name, "Tensor", input=input)
    require(name, "int", **{argument: factor})
    if input.dim() < ndim:
        raise RuntimeError(f"{name} expects input to have at least {ndim} dimensions, but got input with {input.dim()} dimension(s)")
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {argument}, but got {factor}")


def pixel_shuffle(input, upscale_factor):
    """(…, C r^2, H, W) as (…, C, H r, W r): r^2 channels make a square of r by r pixels."""
    r = upscale_factor
    _check("pixel_shuffle", input, r, "upscale_factor", 3)
    *batch, channels, height, width = input.shape
    if channels % (r * r):
        raise RuntimeError(f"pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but input.size(-3)={channels} "
                           f"is not divisible by {r * r}")
    squares = input.reshape(*batch, channels // (r * r), r, r, height, width)
    return squares.movedim((-4, -3), (-3, -1)).reshape(*batch, channels // (r * r), height * r, width * r)


def pixel_unshuffle(input, downscale_factor):
    """(…, C, H r, W r) as (…, C r^2, H, W): the inverse of pixel_shuffle."""
    r = downscale_factor
    _check("pixel_unshuffle", input, r, "downscale_factor", 3)
    *batch, channels, height, width = input.shape
    for what, size in (("height", height), ("width", width)):
        if size % r:
            raise RuntimeError(f"pixel_unshuffle expects {what} to be divisible by downscale_factor, but {what}={size} is not divisible by {r}")
    squares = input.reshape(*batch, channels, height // r, r, width // r, r)
    return squares.movedim((-3, -1), (-4, -3)).reshape(*batch, channels * r * r, height // r, width // r)


def channel_shuffle(input, groups):
    """The channels, dimension 1, of `groups` groups of neighbours, one of each in turn."""
    require("channel_shuffle", "Tensor", input=input)
    require("channel_shuffle", "int", groups=groups)
    if input.dim() < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if input.size(1) % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {input.size(1)} channels and {groups} groups.")
    return input.unflatten(1, (groups, input.size(1) // groups)).transpose(1, 2).flatten(1, 2)
