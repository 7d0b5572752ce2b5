"""Parameters as one vector, and back."""
from __future__ import annotations

import gradus
from gradus._C import Tensor


def parameters_to_vector(parameters):
    """Returns all elements of all parameters, one after the other.

    >>> nn.utils.parameters_to_vector([gradus.tensor([[1., 2.]]), gradus.tensor(3.)]).tolist()
    [1.0, 2.0, 3.0]
    """
    return gradus.cat([parameter.view(-1) for parameter in _on_one_device(parameters)])


def vector_to_parameters(vec, parameters):
    """Makes the parameters views of a vector's parts, one after the other. TypeError: vec is no tensor."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected {gradus.__name__}.Tensor, but got: {type(vec).__name__}")
    start = 0
    for parameter in _on_one_device(parameters):
        size = parameter.numel()
        parameter.data = vec[start:start + size].view_as(parameter).data
        start += size


def _on_one_device(parameters):
    device = None
    for parameter in parameters:
        if device is not None and parameter.device != device:
            raise TypeError("Found two parameters on different devices, this is currently not supported.")
        device = parameter.device
        yield parameter
