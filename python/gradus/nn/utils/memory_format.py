"""Conversion of the weights of convolutions to another memory format, e.g. channels_last."""
from __future__ import annotations

import gradus

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module, memory_format, kinds):
    """Converts the weights of all submodules of the classes `kinds` to the memory format, and returns the module."""
    for below in module.modules():
        if isinstance(below, kinds):
            below.weight.data = below.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    """Converts the weights of all Conv2d and ConvTranspose2d in `module` to `memory_format`. Returns the module."""
    return _convert(module, memory_format, (gradus.nn.Conv2d, gradus.nn.ConvTranspose2d))


def convert_conv3d_weight_memory_format(module, memory_format):
    """Converts the weights of all Conv3d and ConvTranspose3d in `module` to `memory_format`. Returns the module."""
    return _convert(module, memory_format, (gradus.nn.Conv3d, gradus.nn.ConvTranspose3d))
