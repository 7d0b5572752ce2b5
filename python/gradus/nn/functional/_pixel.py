"""Channels laid out as pixels, and back; channels in another order: the operators."""
from gradus._C import nn as _nn

__all__ = ["channel_shuffle", "native_channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]

channel_shuffle = _nn.channel_shuffle
native_channel_shuffle = _nn.native_channel_shuffle
pixel_shuffle = _nn.pixel_shuffle
pixel_unshuffle = _nn.pixel_unshuffle
