"""Conversion of parameters to one vector, and back."""
from __future__ import annotations

import gradus
from gradus._C import Tensor


def parameters_to_vector(parameters):
    """Returns a 1-D tensor with the elements of all parameters, one parameter after another. Raises TypeError if their devices differ.

    >>> nn.utils.parameters_to_vector([gradus.tensor([[1., 2.]]), gradus.tensor(3.)]).tolist()
    [1.0, 2.0, 3.0]
    """
    return gradus.cat([parameter.view(-1) for parameter in _on_one_device(parameters)])


def vector_to_parameters(vec, parameters):
    """Makes each parameter a view of the corresponding slice of the vector `vec`. Raises TypeError if vec is not a tensor."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected {gradus.__name__}.Tensor, but got: {type(vec).__name__}")
    start = 0
    for parameter in _on_one_device(parameters):
        size = parameter.numel()
        parameter.data = vec[start:start + size].view_as(parameter).data
        start += size


def _on_one_device(parameters):
    """Yields the parameters. Raises TypeError if they are on different devices."""
    device = None
    for parameter in parameters:
        if device is not None and parameter.device != device:
            raise TypeError("Found two parameters on different devices, this is currently not supported.")
        device = parameter.device
        yield parameter
