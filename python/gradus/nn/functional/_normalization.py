"""Normalization over the last dimensions, those of normalized_shape: the operators."""
from gradus import _C

layer_norm = _C.nn.layer_norm
rms_norm = _C.nn.rms_norm
