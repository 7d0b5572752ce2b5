"""Functions that compute the gradients of convolutions with respect to their input or weight."""
from gradus._C.nn import _convolution_input, _convolution_weight

from .modules.utils import _pair, _single, _triple


def conv1d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Returns the gradient of conv1d with respect to its input, whose size is input_size: (N, C_in, L)."""
    return _convolution_input(input_size, weight, grad_output, _single(stride), _single(padding), _single(dilation), groups)


def conv1d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Returns the gradient of conv1d with respect to its weight, whose size is weight_size: (C_out, C_in / groups, K)."""
    return _convolution_weight(input, weight_size, grad_output, _single(stride), _single(padding), _single(dilation), groups)


def conv2d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Returns the gradient of conv2d with respect to its input, whose size is input_size: (N, C_in, H, W)."""
    return _convolution_input(input_size, weight, grad_output, _pair(stride), _pair(padding), _pair(dilation), groups)


def conv2d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Returns the gradient of conv2d with respect to its weight, whose size is weight_size: (C_out, C_in / groups, KH, KW)."""
    return _convolution_weight(input, weight_size, grad_output, _pair(stride), _pair(padding), _pair(dilation), groups)


def conv3d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Returns the gradient of conv3d with respect to its input, whose size is input_size: (N, C_in, D, H, W)."""
    return _convolution_input(input_size, weight, grad_output, _triple(stride), _triple(padding), _triple(dilation), groups)


def conv3d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Returns the gradient of conv3d with respect to its weight, whose size is weight_size: (C_out, C_in / groups, KD, KH, KW)."""
    return _convolution_weight(input, weight_size, grad_output, _triple(stride), _triple(padding), _triple(dilation), groups)
