"""Tests operators without a derivative. As in PyTorch their results require a gradient, and backward raises an error with the name of the
operator."""
import pytest

import gradus
from oracle import torch

CALLS = {
    "unique": lambda module, x, y: module.unique(x),
    "unique with inverse and counts": lambda module, x, y: module.unique(x, return_inverse=True, return_counts=True)[0],
    "unique along a dimension": lambda module, x, y: module.unique(x.reshape(2, 2), dim=0),
    "unique_consecutive": lambda module, x, y: module.unique_consecutive(x),
    "unique_consecutive along a dimension": lambda module, x, y: module.unique_consecutive(x.reshape(2, 2), dim=0, return_counts=True)[0],
    "bincount": lambda module, x, y: module.bincount(module.tensor([0, 1, 1, 2]), x),
    "heaviside": lambda module, x, y: module.heaviside(x, y),
    "heaviside by values": lambda module, x, y: module.heaviside(x.detach(), y),
    "floor_divide": lambda module, x, y: module.floor_divide(x, y),
    "floor_divide by a number": lambda module, x, y: x // 2,
}


def outcome(module, call):
    x, y = (module.tensor(values, requires_grad=True) for values in ([1.0, 2.0, 1.0, 3.0], [1.0, 2.0, 0.5, 3.0]))
    result = call(module, x, y)
    try:
        result.sum().backward()
    except RuntimeError as error:
        return result.requires_grad, type(error), str(error).replace("'_", "'")  # PyTorch names internal operators, which begin with '_'
    return result.requires_grad, x.grad.tolist()


@pytest.mark.parametrize("name", CALLS)
def test_backward_names_the_operator_without_derivative(name):
    assert outcome(gradus, CALLS[name]) == outcome(torch, CALLS[name])


@pytest.mark.parametrize("name", ["unique", "unique_consecutive"])
@pytest.mark.parametrize("shape, dim", [((), 0), ((), -1), ((0, 3), 1), ((0, 0), 0), ((0, 2), 0), ((2, 3), 2), ((3, 2), 1), ((4,), None), ((2, 3), None)])
def test_unique_of_empty_and_scalar_tensors(name, shape, dim):
    def run(module):
        try:
            results = getattr(module, name)(module.ones(shape), dim=dim, return_inverse=True, return_counts=True)
        except (RuntimeError, IndexError) as error:
            return type(error), str(error)
        return [(tuple(r.shape), r.tolist()) for r in results]

    assert run(gradus) == run(torch)


def test_results_of_tensors_without_gradient_require_none():
    x = gradus.tensor([1.0, 1.0, 2.0])
    assert not gradus.unique(x).requires_grad
    with gradus.no_grad():
        assert not (x.requires_grad_() // 2).requires_grad
