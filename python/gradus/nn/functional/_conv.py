"""Convolutions: operators of the schema (schema/convolution.toml)."""
from gradus import _C

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]

conv1d = _C.nn.conv1d
conv2d = _C.nn.conv2d
conv3d = _C.nn.conv3d
conv_transpose1d = _C.nn.conv_transpose1d
conv_transpose2d = _C.nn.conv_transpose2d
conv_transpose3d = _C.nn.conv_transpose3d
