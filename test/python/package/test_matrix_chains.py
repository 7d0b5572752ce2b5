"""Compares products of several matrices, condition numbers, Householder products and low-rank decompositions with PyTorch: values, derivatives,
strides, random numbers, errors."""
import warnings

import numpy as np
import pytest

from nn_programs import gradus
from oracle import torch
from test_decomposition import compare, random

DTYPES = ["float64", "complex128"]
pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 8, -1, -3])
def test_matrix_power(n, dtype):
    for shape in ((3, 3), (2, 4, 4)):
        compare(lambda m, a: m.linalg.matrix_power(a, n), [random(0, shape, dtype)], dtype, differentiate=n not in (0, 1))
        compare(lambda m, a: m.matrix_power(a.mT, n), [random(0, shape, dtype)], dtype, differentiate=False)
    a = gradus.eye(2).requires_grad_()
    assert gradus.matrix_power(a, 0).sum().backward() is None and a.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_matrix_power_with_large_exponents():
    shear = gradus.tensor([[1, 1], [0, 1]])
    assert shear.matrix_power(2**40).tolist() == [[1, 2**40], [0, 1]]
    assert gradus.matrix_power(-gradus.eye(2), -2**63).tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", [[(2, 3), (3, 4)], [(2, 3), (3, 4), (4, 1)], [(9, 2), (2, 8), (8, 3), (3, 7), (7, 1)], [(3,), (3, 4), (4,)], [(3, 2), (2,)], [(3,), (3,)], [(2, 0), (0, 3), (3, 3)]])
def test_multi_dot_and_chain_matmul(shapes, dtype):
    matrices = [random(i, shape, dtype) for i, shape in enumerate(shapes)]
    compare(lambda m, *all: m.linalg.multi_dot(all), matrices, dtype)
    if all(len(shape) == 2 for shape in shapes):
        compare(lambda m, *all: m.chain_matmul(*all), matrices, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", [((3,), (3,), -1), ((2, 3), (3,), -1), ((2, 3), (4, 1, 3), 1), ((), (), -1)])
def test_vecdot(shapes, dtype):
    compare(lambda m, x, y: m.linalg.vecdot(x, y, dim=shapes[2]), [random(0, shapes[0], dtype), random(1, shapes[1], dtype)], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", [None, 1, -1, 2, -2, float("inf"), -float("inf"), "fro", "nuc"])
def test_cond(p, dtype):
    for shape in ((3, 3), (2, 4, 4), (0, 3, 3), (2, 0, 0), *([(3, 5), (0, 2, 3)] if p in (None, 2, -2) else [])):
        # Derivatives are not compared, because PyTorch cannot differentiate cond.
        compare(lambda m, a: m.linalg.cond(a, p), [random(0, shape, dtype)], dtype, differentiate=False)
    with np.errstate(divide="ignore"):
        compare(lambda m, a: m.linalg.cond(a, p).reciprocal(), [np.array([[1.0, 0.0], [0.0, 0.0]])], dtype, differentiate=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("shapes", [((4, 3), 3, (4, 2), True), ((4, 3), 3, (5, 4), False), ((3, 3), 3, (3, 1), True), ((2, 4, 2), 2, (2, 4, 3), True), ((2, 4), 2, (2, 3), True), ((40, 30), 30, (40, 7), True)])
def test_ormqr(shapes, transpose, dtype):
    input, k, other, left = shapes
    inputs = [random(0, input, dtype) / 4, random(1, (*input[:-2], k), dtype) / 4, random(2, other, dtype)]
    compare(lambda m, a, tau, b: m.ormqr(a, tau, b, left, transpose), inputs, dtype)
    compare(lambda m, a, tau, b: a.ormqr(tau, b, left=left, transpose=transpose), inputs, dtype, differentiate=False)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("shape, options", [((9, 5), {"q": 3}), ((5, 9), {"q": 2, "niter": 0}), ((2, 8, 7), {}), ((2, 7, 8), {"q": None, "niter": None}), ((3, 3), {"q": 0})])
def test_svd_lowrank_and_pca_lowrank(shape, options, dtype):
    wide = "complex128" if "complex" in dtype else "float64"
    values, mean = random(0, shape, wide).astype(dtype), random(1, shape[-2:], wide).astype(dtype)
    for call in (lambda m, a, b: m.svd_lowrank(a, **options), lambda m, a, b: m.svd_lowrank(a, M=b, **options),
                 lambda m, a, b: m.pca_lowrank(a, **{k: v for k, v in options.items() if v is not None}), lambda m, a, b: m.pca_lowrank(a, center=False)):
        results = []
        for module in (torch, gradus):
            module.manual_seed(7)
            U, S, V = call(module, module.from_numpy(values), module.from_numpy(mean))
            results.append([(U * S.unsqueeze(-2)) @ V.mH, S, module.rand(3)])
        for theirs, ours in zip(*results):
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-3, atol=1e-3)


def test_gradcheck_of_svd_lowrank():
    a = gradus.from_numpy(random(3, (6, 4), "float64")).requires_grad_()

    def sum_of_values(a):
        gradus.manual_seed(1)
        return gradus.svd_lowrank(a, q=2)[1].sum()

    assert gradus.autograd.gradcheck(sum_of_values, (a,))


@pytest.mark.parametrize("dtype", DTYPES)
def test_frobenius_norm_and_nuclear_norm(dtype):
    for shape, dim in (((2, 3), [0, 1]), ((2, 3, 4), [1]), ((2, 3, 4), [2, 0])):
        compare(lambda m, a: m.frobenius_norm(a, dim, keepdim=True), [random(0, shape, dtype)], dtype)
    for shape, dim in (((2, 3), [0, 1]), ((2, 3, 4), [2, 0])):
        compare(lambda m, a: m.nuclear_norm(a, dim), [random(0, shape, dtype)], dtype)
    compare(lambda m, a: m.nuclear_norm(a, True), [random(0, (2, 3), dtype)], dtype)


ERRORS = [
    lambda m: m.linalg.matrix_power(m.ones(2), 2), lambda m: m.linalg.matrix_power(m.ones(2, 3), 0), lambda m: m.matrix_power(m.eye(2, dtype=m.int32), -1),
    lambda m: m.linalg.matrix_power(m.eye(2), 2, out=m.empty(0, dtype=m.float64)), lambda m: m.matrix_power(m.eye(2), 2.5),
    lambda m: m.linalg.multi_dot([m.ones(2, 2)]), lambda m: m.linalg.multi_dot([m.ones(2, 2), m.ones(3, 3)]), lambda m: m.linalg.multi_dot([m.ones(2, 2), m.ones(2, 2, 2)]),
    lambda m: m.linalg.multi_dot([m.ones(2, 2), m.ones(2), m.ones(2, 2)]), lambda m: m.linalg.multi_dot([m.ones(()), m.ones(2)]), lambda m: m.linalg.multi_dot([m.ones(2, 2), m.ones(2, 2, dtype=m.float64)]),
    lambda m: m.linalg.multi_dot([m.ones(2), m.ones(2)], out=m.empty(0, dtype=m.float64)), lambda m: m.chain_matmul(), lambda m: m.chain_matmul(m.ones(2, 2), m.ones(2)),
    lambda m: m.linalg.vecdot(m.ones(3, dtype=m.int32), m.ones(3, dtype=m.int32)), lambda m: m.linalg.vecdot(m.ones(3), m.ones(3, dtype=m.float64)),
    lambda m: m.linalg.vecdot(m.ones(1, 3), m.ones(3), out=m.empty(0, dtype=m.float64)), lambda m: m.linalg.cross(m.ones(2, 3), m.ones(3, 2)), lambda m: m.linalg.cross(m.ones(2), m.ones(2)),
    lambda m: m.linalg.cond(m.ones(3)), lambda m: m.linalg.cond(m.ones(2, 2), 3), lambda m: m.linalg.cond(m.ones(2, 3), 1), lambda m: m.linalg.cond(m.ones(2, 3), -1.0),
    lambda m: m.linalg.cond(m.ones(2, 3), "fro"), lambda m: m.linalg.cond(m.ones(2, 3), float("inf")), lambda m: m.linalg.cond(m.eye(2, dtype=m.int32)), lambda m: m.linalg.cond(m.eye(2, dtype=m.int32), 1),
    lambda m: m.linalg.cond(m.eye(2), 1, out=m.empty(0, dtype=m.int32)), lambda m: m.linalg.cond(m.ones(3), "fro"),
    lambda m: m.ormqr(m.ones(3), m.ones(3), m.ones(3, 3)), lambda m: m.ormqr(m.ones(4, 3), m.ones(3), m.ones(4)), lambda m: m.ormqr(m.ones(4, 3), m.ones(3), m.ones(3, 5)),
    lambda m: m.ormqr(m.ones(4, 3), m.ones(3), m.ones(3, 5), False), lambda m: m.ormqr(m.ones(4, 3), m.ones(2), m.ones(4, 5)), lambda m: m.ormqr(m.ones(4, 3), m.ones(2, 3), m.ones(4, 5)),
    lambda m: m.ormqr(m.ones(2, 4, 3), m.ones(3, 3), m.ones(2, 4, 5)), lambda m: m.ormqr(m.ones(2, 4, 3), m.ones(2, 3), m.ones(3, 4, 5)), lambda m: m.ormqr(m.ones(2, 4, 3), m.ones(2, 3), m.ones(4, 5)),
    lambda m: m.ormqr(m.ones(4, 3, dtype=m.float64), m.ones(3), m.ones(4, 5)), lambda m: m.ormqr(m.ones(4, 3), m.ones(3), m.ones(4, 5, dtype=m.float64)),
    lambda m: m.ormqr(m.ones(4, 3, dtype=m.int32), m.ones(3, dtype=m.int32), m.ones(4, 5, dtype=m.int32)), lambda m: m.ormqr(m.ones(4, 3), m.ones(3), m.ones(4, 5), out=m.empty(0, dtype=m.float64)),
    lambda m: m.frobenius_norm(m.ones(2, 2, 2), (0, 1, 2)), lambda m: m.frobenius_norm(m.ones(2, 2, dtype=m.int32), 1), lambda m: m.nuclear_norm(m.ones(2)),
    lambda m: m.nuclear_norm(m.eye(2), (0, 1), out=m.empty(0, dtype=m.float64)), lambda m: m.frobenius_norm(m.eye(2), (0, 1), out=m.empty(0, dtype=m.float64)),
    lambda m: m.svd_lowrank(m.ones(3)), lambda m: m.svd_lowrank(m.ones(3, 4), M=m.ones(5)), lambda m: m.pca_lowrank(m.ones(3, 4), q=9), lambda m: m.pca_lowrank(m.ones(3, 4), niter=-1),
    lambda m: m.matrix_rank(m.eye(2)), lambda m: m.symeig(m.eye(2)), lambda m: m.eye(2).symeig(eigenvectors=True), lambda m: m.eig(m.eye(2)), lambda m: m.eye(2).eig(),
    lambda m: m.lstsq(m.eye(2), m.eye(2)), lambda m: m.eye(2).lstsq(m.eye(2)), lambda m: m.solve(m.eye(2), m.eye(2)), lambda m: m.eye(2).solve(m.eye(2)),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors_are_those_of_pytorch(number):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as theirs:
            ERRORS[number](torch)
    with pytest.raises(type(theirs.value)) as ours:
        ERRORS[number](gradus)
    assert str(ours.value) == str(theirs.value)
