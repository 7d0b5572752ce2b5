"""Compares LDL decompositions of symmetric and Hermitian matrices with PyTorch: values, strides, solutions of equations, errors."""
import numpy as np
import pytest

from nn_programs import gradus
from oracle import torch
from test_decomposition import compare, random

DTYPES = ["float64", "complex128"]
HERMITIAN = [False, True]


def symmetric(seed, shape, dtype, hermitian):
    half = random(seed, shape, dtype)
    turned = np.swapaxes(half, -1, -2)
    return half + (turned.conj() if hermitian else turned)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hermitian", HERMITIAN)
@pytest.mark.parametrize("shape", [(3, 3), (1, 1), (2, 4, 4), (24, 24), (25, 25), (40, 6, 6), (2, 70, 70), (0, 0), (0, 3, 3), (2, 0, 0)])
def test_ldl_factor_agrees_with_pytorch(shape, hermitian, dtype):
    matrix = symmetric(0, shape, dtype, hermitian)
    compare(lambda m, a: m.linalg.ldl_factor(a.detach(), hermitian=hermitian)[0], [matrix], dtype, differentiate=False)
    compare(lambda m, a: tuple(r.to(m.float64) for r in m.linalg.ldl_factor_ex(a.detach(), hermitian=hermitian)[1:]), [matrix], dtype, differentiate=False)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("hermitian", HERMITIAN)
@pytest.mark.parametrize("shapes", [((3, 3), (3, 2)), ((2, 4, 4), (4, 1)), ((3, 1, 5, 5), (2, 5, 3)), ((30, 30), (30, 200)), ((2, 60, 60), (60, 3)), ((90, 4, 4), (90, 4, 2))])
def test_ldl_solve_solves_the_equations(shapes, hermitian, dtype):
    wide = "complex128" if "complex" in dtype else "float64"
    matrix, right = symmetric(1, shapes[0], wide, hermitian).astype(dtype), random(2, shapes[1], wide).astype(dtype)
    a, b = gradus.from_numpy(matrix), gradus.from_numpy(right)
    solution = gradus.linalg.ldl_solve(*gradus.linalg.ldl_factor(a, hermitian=hermitian), b, hermitian=hermitian).numpy()
    precision = 1e-3 if dtype in ("float32", "complex64") else 1e-10
    np.testing.assert_allclose(matrix @ solution, np.broadcast_to(right, solution.shape), atol=precision * max(1, np.abs(solution).max()))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hermitian", HERMITIAN)
@pytest.mark.parametrize("shapes", [((3, 3), (3, 2)), ((2, 4, 4), (4, 1)), ((40, 40), (40, 5)), ((0, 0), (0, 2)), ((2, 3, 3), (2, 3, 0))])
def test_ldl_solve_agrees_with_pytorch(shapes, hermitian, dtype):
    matrix, right = symmetric(3, shapes[0], dtype, hermitian), random(4, shapes[1], dtype)
    compare(lambda m, a, b: m.linalg.ldl_solve(*m.linalg.ldl_factor(a.detach(), hermitian=hermitian), b.detach(), hermitian=hermitian), [matrix, right], dtype, differentiate=False)


def test_ldl_factor_reads_the_lower_triangle():
    full = gradus.tensor([[4.0, 99.0], [2.0, 3.0]])
    factored = gradus.linalg.ldl_factor(full)
    assert factored.LD.tolist() == [[4.0, 0.0], [0.5, 2.0]] and factored.pivots.tolist() == [1, 2]


def test_ldl_factor_of_a_batch_has_the_bits_of_single_matrices():
    matrices = gradus.from_numpy(symmetric(5, (9, 30, 30), "float64", False))
    together = gradus.linalg.ldl_factor_ex(matrices)
    for i, matrix in enumerate(matrices):
        assert all((a[i] == b).all() for a, b in zip(together, gradus.linalg.ldl_factor_ex(matrix)))


@pytest.mark.parametrize("matrix, place", [([[0.0, 0.0], [0.0, 0.0]], 1), ([[1.0, 1.0], [1.0, 1.0]], 2)])
def test_zeros_on_the_diagonal_of_d_are_reported(matrix, place):
    a = gradus.tensor(matrix)
    assert gradus.linalg.ldl_factor_ex(a).info.item() == place
    for call in (lambda: gradus.linalg.ldl_factor(gradus.stack([gradus.eye(2), a])), lambda: gradus.linalg.ldl_factor_ex(gradus.stack([gradus.eye(2), a]), check_errors=True)):
        with pytest.raises(RuntimeError, match=rf"\(Batch element 1\): D\[{place},{place}\] is zero"):
            call()


ERRORS = [
    lambda m: m.linalg.ldl_factor(m.ones(2, 3)), lambda m: m.linalg.ldl_factor(m.ones(3)), lambda m: m.linalg.ldl_factor(m.ones(2, 2, dtype=m.int32)),
    lambda m: m.linalg.ldl_factor(m.ones(2, 2, dtype=m.float16)), lambda m: m.linalg.ldl_factor(m.eye(2), out=(m.empty(0, dtype=m.float64), m.empty(0, dtype=m.int32))),
    lambda m: m.linalg.ldl_solve(m.eye(2), m.tensor([1, 2]), m.eye(2, dtype=m.float64)), lambda m: m.linalg.ldl_solve(m.eye(2), m.tensor([1]), m.eye(2)),
    lambda m: m.linalg.ldl_solve(m.eye(2), m.tensor([[1, 2]]), m.eye(2)), lambda m: m.linalg.ldl_solve(m.eye(2), m.tensor([1, 2]), m.ones(3, 2)),
    lambda m: m.linalg.ldl_solve(m.eye(2), m.tensor([1, 3]), m.eye(2)), lambda m: m.linalg.ldl_solve(m.eye(2), m.tensor([1, 0]), m.eye(2)),
    lambda m: m.linalg.ldl_solve(m.eye(2), m.tensor([1.0, 2.0]), m.eye(2)), lambda m: m.linalg.ldl_solve(m.eye(2, dtype=m.int32), m.tensor([1, 2]), m.eye(2, dtype=m.int32)),
    lambda m: m.autograd.grad(m.linalg.ldl_factor(m.eye(2).requires_grad_())[0].sum(), m.ones(1, requires_grad=True)),
    lambda m: m.linalg.ldl_solve(m.eye(2), m.tensor([1, 2]), m.eye(2).requires_grad_()).sum().backward(),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors_are_those_of_pytorch(number):
    with pytest.raises(Exception) as theirs:
        ERRORS[number](torch)
    with pytest.raises(type(theirs.value)) as ours:
        ERRORS[number](gradus)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("pivots", [[1, -2], [-1, 2], [-3, -3], [-2147483648, -2147483648], [2147483647, 1]])
def test_ldl_solve_refuses_pivots_out_of_range(pivots):
    with pytest.raises(RuntimeError, match="Pivots given to ldl_solve"):
        gradus.linalg.ldl_solve(gradus.eye(2), gradus.tensor(pivots), gradus.eye(2))
