"""Draws pictures that show the position of a tensor's elements in memory."""
from gradus.viz._strides import Picture, strides

__all__ = ["Picture", "strides"]
