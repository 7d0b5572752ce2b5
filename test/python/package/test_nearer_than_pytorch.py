"""Tests calls for which PyTorch's result in float32 or 16-bit dtypes differs from the exact result by more than the tolerance, but Gradus's result
does not."""
import numpy as np
import pytest

from nn_programs import gradus
from oracle import torch


def within(ours, exact):
    np.testing.assert_allclose(ours.numpy(), exact.numpy(), rtol=1.3e-6, atol=1e-5)


def near_poles():
    return torch.cat([n + torch.linspace(-0.06, 0.06, 6) for n in range(-9, 0)])


@pytest.mark.parametrize("order", range(5))
def test_polygamma_near_poles(order):
    x = near_poles()
    within(gradus.polygamma(order, gradus.from_numpy(x.numpy())), torch.polygamma(order, x.double()))


def test_hermite_polynomial_he():
    x, n = torch.linspace(-9, 9, 100), torch.arange(100) % 8
    within(gradus.special.hermite_polynomial_he(gradus.from_numpy(x.numpy()), gradus.from_numpy(n.numpy())), torch.special.hermite_polynomial_he(x.double(), n))


def test_matrix_exp():
    torch.manual_seed(0)
    x = torch.rand(30, 5, 5) * 12 - 6
    exact = torch.matrix_exp(x.double())
    theirs = (torch.matrix_exp(x) - exact).norm()
    ours = (torch.from_numpy(gradus.matrix_exp(gradus.from_numpy(x.numpy())).numpy()) - exact).norm()
    assert ours < 1.1 * theirs


def test_gradient_of_as_strided_scatter():
    x, source = gradus.rand(3, 3, dtype=gradus.float64, requires_grad=True), gradus.rand(2, 2, dtype=gradus.float64, requires_grad=True)
    assert gradus.autograd.gradcheck(lambda x, source: gradus.as_strided_scatter(x, source, (2, 2), (2, 1), 0), (x, source))


@pytest.mark.parametrize("order", [0.5, 3, 6, 10, -2])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_vector_norm_whose_powers_overflow_half_types(dtype, order):
    x = gradus.tensor([-8.5, 3.0, 0.5], dtype=getattr(gradus, dtype), requires_grad=True)
    wide = x.detach().double().requires_grad_()
    ours, exact = gradus.linalg.vector_norm(x, order), gradus.linalg.vector_norm(wide, order)
    ours.backward()
    exact.backward()
    eps = gradus.finfo(x.dtype).eps
    assert abs(ours.item() - exact.item()) <= eps * exact.item()
    assert ((x.grad.double() - wide.grad).abs() <= 2 * (1 + abs(order)) * eps * wide.grad.abs() + gradus.finfo(x.dtype).tiny).all()
