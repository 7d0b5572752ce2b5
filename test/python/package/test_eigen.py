"""Compares eigenvalues of general matrices with PyTorch: residuals, strides, derivatives, errors."""
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nn_programs import gradus
from oracle import needs_torch, torch
from test_spectral import DTYPES, adjoint, array, error, random, tensor, with_derivatives


def check(a, dtype):
    ours, theirs = (module.linalg.eig(tensor(module, a, dtype)) for module in (gradus, torch))
    assert all(x.shape == tuple(y.shape) and x.stride() == y.stride() and str(x.dtype) == str(y.dtype) for x, y in zip(ours, theirs))
    values, vectors = array(ours[0]), array(ours[1])
    tolerance = 10 * DTYPES[dtype] * max(np.abs(values).max(initial=0), 1)
    assert np.abs(a @ vectors - vectors * values[..., None, :]).max(initial=0) <= tolerance
    assert np.abs(np.linalg.norm(vectors, axis=-2) - 1).max(initial=0) <= tolerance
    alone = array(gradus.linalg.eigvals(tensor(gradus, a, dtype)))
    for found in (values, alone):
        assert np.abs(found.sum(-1) - np.trace(a, axis1=-2, axis2=-1)).max(initial=0) <= tolerance * max(a.shape[-1], 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (1, 1), (2, 2), (7, 3, 3), (2, 2, 5, 5), (40, 8, 8), (3, 12, 12), (40, 40)])
def test_residuals_of_eig(shape, dtype):
    check(random(0, shape, dtype), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 6, 15])
def test_eig_of_special_matrices(n, dtype):
    for a in (np.zeros((n, n)), np.eye(n), np.ones((n, n)), np.diag(np.arange(n) - 1.0), np.eye(n)[::-1], np.roll(np.eye(n), 1, 0)):
        check(a, dtype)


def families(n, count=100):
    pick = np.random.default_rng(n)
    normal, zeros, eye = pick.normal(size=(count, n, n)), np.zeros((count, n, n)), np.eye(n)
    companion = zeros + np.eye(n, k=-1)
    companion[:, 0] = pick.normal(size=(count, n))
    return {
        "normal": normal, "uniform": pick.uniform(size=(count, n, n)), "skew": normal - adjoint(normal), "symmetric": normal + adjoint(normal), "triangular": np.triu(normal), "companion": companion,
        "with zeros": normal * (pick.uniform(size=(count, n, n)) < 0.3), "permutations": np.stack([eye[pick.permutation(n)] for _ in range(count)]), "orthogonal": np.linalg.qr(normal)[0],
        "of rank 1": normal[:, :, :1] * normal[:, :1], "not diagonalizable": zeros + np.eye(n, k=1), "nearly so": zeros + eye + np.eye(n, k=1) + 1e-7 * normal, "tiny": 1e-30 * normal, "huge": 1e30 * normal,
        "subnormal": 1e-40 * normal, "zeros": zeros, "ones": zeros + 1}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 11, 16])
def test_eig_of_small_real_matrices(n, dtype):
    epsilon = np.finfo(dtype).eps
    for title, matrices in families(n).items():
        a = matrices.astype(dtype)
        bound = 12 * n * epsilon * np.linalg.norm(a.astype(float), axis=(1, 2))[:, None] + 4 * np.finfo(dtype).smallest_subnormal * n
        w, v = (t.numpy().astype(complex) for t in gradus.linalg.eig(gradus.from_numpy(a)))
        assert (np.linalg.norm(a @ v - v * w[:, None, :], axis=1) <= bound).all(), title
        assert np.abs(np.linalg.norm(v, axis=1) - 1).max() <= 8 * epsilon, title
        assert (np.isreal(w) | ~np.isreal(np.roll(w, 1, 1)) | ~np.isreal(np.roll(w, -1, 1))).all(), title


@pytest.mark.parametrize("n", [2, 3, 4, 8, 16])
def test_eigenvalues_have_the_order_of_lapack(n):
    for title, matrices in families(n).items():
        if title in ("normal", "uniform", "orthogonal", "triangular", "companion", "tiny", "huge", "subnormal"):
            for function in (lambda m, x: m.linalg.eigvals(x), lambda m, x: m.linalg.eig(x)[0]):
                ours, theirs = (function(module, module.from_numpy(matrices)).numpy() for module in (gradus, torch))
                same = np.abs(ours - theirs).max(1) <= 1e-9 * np.abs(theirs).max(1)
                # Rounding can decide which shift a QR iteration uses, so for a few matrices the order of the eigenvalues differs from PyTorch's.
                assert same.mean() > 0.95, title


def test_eig_without_openblas():
    needs_torch()
    program = "import test_eigen as t\nfor dtype in t.DTYPES:\n    for shape in [(40, 40), (2, 20, 20), (5, 5)]:\n        t.check(t.random(0, shape, dtype), dtype)\n"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "GRADUS_OPENBLAS": "none"}
    result = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parent, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-4000:]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4)])
def test_derivatives_of_eig(shape, dtype):
    for function in (lambda m, a: (m.linalg.eigvals(a).abs() ** 3).sum(), lambda m, a: (m.linalg.eig(a)[0].abs() ** 3).sum() + (m.linalg.eig(a)[1].abs() ** 4).sum()):
        for ours, theirs in zip(*(with_derivatives(module, function, random(1, shape, dtype), dtype) for module in (gradus, torch))):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7 * max(1.0, np.abs(theirs).max()))


def phase(module):
    a = tensor(module, random(8, (3, 3), "complex128"), "complex128").requires_grad_()
    vectors = module.linalg.eig(a)[1]
    return module.autograd.grad(vectors.real.sum() + vectors.imag.sum(), a)


@pytest.mark.parametrize("call", [
    lambda m: m.linalg.eig(m.ones(2)), lambda m: m.linalg.eig(m.ones(2, 3)), lambda m: m.linalg.eig(m.ones(2, 2, dtype=m.int64)), lambda m: m.linalg.eigvals(m.ones(2)),
    lambda m: m.linalg.eigvals(m.ones(2, 3)), lambda m: m.linalg.eig(m.full((2, 2), float("nan"))), phase])
def test_errors_of_eig_are_those_of_pytorch(call):
    assert error(gradus, call) == error(torch, call)
