"""Pictures of tensors: how one lies in memory."""
from gradus.viz._strides import Picture, strides

__all__ = ["Picture", "strides"]
