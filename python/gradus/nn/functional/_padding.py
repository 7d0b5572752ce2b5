"""Borders: the operator."""
from gradus import _C

pad = _C.nn.pad
