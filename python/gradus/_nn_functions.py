"""Functions of nn.functional that torch has, too."""
from gradus.nn.functional import channel_shuffle, pixel_shuffle, pixel_unshuffle

__all__ = ["channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]
