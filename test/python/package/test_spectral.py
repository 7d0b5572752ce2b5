"""Compares eigenvalues and singular values with PyTorch: residuals, strides, first and second derivatives, errors."""
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nn_programs import gradus
from oracle import needs_torch, torch

DTYPES = {"float32": 2e-5, "float64": 1e-12, "complex64": 2e-5, "complex128": 1e-12}
PRECISE = ["float64", "complex128"]
SQUARES = [(0, 0), (1, 1), (2, 2), (0, 3, 3), (7, 5, 5), (2, 2, 3, 3), (40, 8, 8), (18, 16, 16), (5, 32, 32), (20, 20), (2, 33, 33), (50, 50)]
SHAPES = [(0, 3), (3, 0), (2, 0, 0), (1, 1), (2, 3), (3, 2), (7, 5, 3), (7, 3, 5), (2, 2, 4, 4), (18, 16, 10), (33, 10, 16), (5, 32, 32), (20, 20), (2, 40, 33), (60, 2), (2, 60)]


def adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


def random(seed, shape, dtype):
    pick = np.random.default_rng(seed)
    values = pick.normal(size=shape)
    return values + 1j * pick.normal(size=shape) if dtype.startswith("complex") else values


def tensor(module, values, dtype):
    return module.tensor(values.tolist(), dtype=getattr(module, dtype)).reshape(tuple(values.shape))


def array(t):
    return np.array(t.detach().tolist()).reshape(tuple(t.shape))


def is_close(a, b, dtype, scale=1.0):
    return np.abs(a - b).max(initial=0) <= DTYPES[dtype] * max(scale, 1.0)


def check_eigh(a, dtype):
    for upper, read in (("L", np.tril(a) + adjoint(np.tril(a, -1))), ("U", np.triu(a) + adjoint(np.triu(a, 1)))):
        read = read - 1j * np.imag(np.einsum("...ii->...i", read))[..., None] * np.eye(a.shape[-1]) if np.iscomplexobj(a) else read
        ours, theirs = (module.linalg.eigh(tensor(module, a, dtype), UPLO=upper) for module in (gradus, torch))
        values, vectors = array(ours[0]), array(ours[1])
        scale = np.abs(array(theirs[0])).max(initial=0)
        assert all(x.shape == tuple(y.shape) and x.stride() == y.stride() and str(x.dtype) == str(y.dtype) for x, y in zip(ours, theirs))
        assert is_close(values, array(theirs[0]), dtype, scale) and (np.diff(values) >= 0).all()
        assert is_close(read @ vectors, vectors * values[..., None, :], dtype, scale) and is_close(adjoint(vectors) @ vectors, np.eye(a.shape[-1]), dtype)
        assert is_close(array(gradus.linalg.eigvalsh(tensor(gradus, a, dtype), UPLO=upper)), values, dtype, scale)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARES)
def test_eigh(shape, dtype):
    check_eigh(random(0, shape, dtype), dtype)


def check_svd(a, dtype):
    k = min(a.shape[-2:])
    for options in ({"full_matrices": True}, {"full_matrices": False}):
        ours, theirs = (module.linalg.svd(tensor(module, a, dtype), **options) for module in (gradus, torch))
        assert all(x.shape == tuple(y.shape) and x.stride() == y.stride() for x, y in zip(ours, theirs))
        u, s, vh = (array(t) for t in ours)
        scale = s.max(initial=0)
        assert is_close(s, array(theirs[1]), dtype, scale) and (np.diff(s) <= 0).all() and (s >= 0).all()
        assert is_close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, dtype, scale)
        assert is_close(adjoint(u) @ u, np.eye(u.shape[-1]), dtype) and is_close(vh @ adjoint(vh), np.eye(vh.shape[-2]), dtype)
    assert is_close(array(gradus.linalg.svdvals(tensor(gradus, a, dtype))), s, dtype, scale)
    for options in ({}, {"some": False}, {"compute_uv": False}):
        ours, theirs = (module.svd(tensor(module, a, dtype), **options) for module in (gradus, torch))
        assert all(x.shape == tuple(y.shape) and x.stride() == y.stride() for x, y in zip(ours, theirs)) and is_close(array(ours[1]), s, dtype, scale)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_svd(shape, dtype):
    check_svd(random(1, shape, dtype), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("factor", [1.0, 1e-30, 1e30])
def test_eigvalsh_and_svdvals_of_special_matrices(factor, dtype):
    for n in (2, 5, 12, 40):
        low = random(2, (n, 1), dtype) @ random(3, (1, n), dtype)
        for a in (np.zeros((n, n)), np.eye(n), np.ones((n, n)), np.diag(np.arange(n) - 1.0), low @ adjoint(low), np.eye(n)[::-1]):
            scaled = a / max(np.abs(a).max(), 1) * factor
            for result in (gradus.linalg.eigvalsh(tensor(gradus, scaled, dtype)), gradus.linalg.svdvals(tensor(gradus, scaled, dtype))):
                assert np.isfinite(array(result)).all()
            assert is_close(array(gradus.linalg.svdvals(tensor(gradus, scaled, dtype))) / factor, np.linalg.svd(scaled / factor, compute_uv=False), dtype, n)
            if factor == 1:
                check_eigh(scaled, dtype)
                check_svd(scaled, dtype)
                check_svd(scaled[:, : n // 2], dtype)


def orthogonal(pick, count, n):
    return np.linalg.qr(pick.normal(size=(count, n, n)))[0]


def with_values(pick, values):
    count, n = values.shape
    return orthogonal(pick, count, n) * values[:, None, :] @ orthogonal(pick, count, n)


def hard_matrices(n, count=70):
    """Returns {name: batch of matrices} for the kernels that compute several matrices at once, one in each lane of a SIMD vector. The matrices of a
    batch need different numbers of iterations."""
    pick = np.random.default_rng(n)
    grades, eye = 10.0 ** -np.arange(n), np.eye(n)
    bits = pick.integers(0, 2, size=(2, count, n, 1))
    return {
        "normal": pick.normal(size=(count, n, n)), "graded columns": pick.normal(size=(count, n, n)) * grades, "graded rows up": pick.normal(size=(count, n, n)) * grades[::-1, None],
        "graded both": pick.normal(size=(count, n, n)) * grades * grades[:, None], "geometric": with_values(pick, np.tile(grades, (count, 1))),
        "repeated": with_values(pick, np.round(pick.uniform(0, 3, size=(count, n)))), "clustered": with_values(pick, 1 + 10.0 ** -pick.integers(4, 18, size=(count, 1)) * pick.normal(size=(count, n))),
        "of low rank": pick.normal(size=(count, n, 1)) * pick.normal(size=(count, 1, n)) + 10.0 ** -pick.integers(4, 20, size=(count, 1, 1)) * pick.normal(size=(count, n, n)),
        "permutations": np.stack([eye[pick.permutation(n)] for _ in range(count)]), "bidiagonal": eye * bits[0] + np.eye(n, k=1) * bits[1],
        "nearly diagonal": eye * pick.normal(size=(count, n, 1)) + 1e-7 * pick.normal(size=(count, n, n)), "elements of any size": pick.normal(size=(count, n, n)) * 10.0 ** -pick.integers(0, 25, size=(count, n, n)),
        "blocks": np.where((np.arange(n) < n // 2)[:, None] == (np.arange(n) < n // 2), pick.normal(size=(count, n, n)), 0), "zeros": np.zeros((count, n, n))}


def norms(x):
    return np.linalg.norm(x.astype(np.result_type(x, "float64")), axis=(-2, -1))


def with_phases(matrices, dtype):
    """Returns the matrices unchanged for real dtypes. For complex dtypes every second matrix is multiplied by random phases, and every seventh is
    made imaginary."""
    if not dtype.startswith("complex"):
        return matrices.astype(dtype)
    made = matrices * np.exp(1j * np.random.default_rng(12).uniform(0, 7, size=matrices.shape) * (np.arange(len(matrices)) % 2)[:, None, None])
    made[::7] *= 1j
    return made.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 16, 31])
def test_residuals_and_orthogonality_of_eigh_and_svd(n, dtype):
    bound = 8 * n * np.finfo(dtype).eps
    exact = np.result_type(dtype, "float64")
    for title, matrices in hard_matrices(n).items():
        a = with_phases(matrices, dtype)
        b = a + adjoint(a)
        w, v = (t.numpy().astype(exact) for t in gradus.linalg.eigh(gradus.from_numpy(b)))
        assert (norms(b @ v - v * w[:, None, :]) <= bound * norms(b)).all() and (norms(adjoint(v) @ v - np.eye(n)) <= bound).all(), title
        for part in (a, a[:, :, : (n + 1) // 2], a[:, : (n + 1) // 2]):
            u, s, vh = (t.numpy().astype(exact) for t in gradus.linalg.svd(gradus.from_numpy(part)))
            k = s.shape[1]
            assert (norms(u[:, :, :k] * s[:, None, :] @ vh[:, :k] - part) <= bound * norms(part)).all(), title
            assert all((norms(x @ adjoint(x) - np.eye(x.shape[1])) <= bound).all() for x in (u, vh)), title


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 6), (16, 16), (5, 9), (9, 5)])
def test_svd_and_eigh_do_not_depend_on_the_batch(shape, dtype):
    pick = np.random.default_rng(4)
    matrices = with_phases(np.concatenate(list(hard_matrices(max(shape), 5).values()))[:, : shape[0], : shape[1]], dtype)
    for function in (gradus.linalg.svd, gradus.linalg.svdvals) + ((gradus.linalg.eigh, gradus.linalg.eigvalsh) if shape[0] == shape[1] else ()):
        bits = []
        for order in (np.arange(len(matrices)), pick.permutation(len(matrices))):
            parts = function(gradus.from_numpy(matrices[order]))
            bits.append([part.numpy()[np.argsort(order)] for part in (parts if isinstance(parts, tuple) else (parts,))])
        for first in range(0, len(matrices), 5):
            parts = function(gradus.from_numpy(matrices[first: first + 5]))
            for i, part in enumerate(parts if isinstance(parts, tuple) else (parts,)):
                assert part.numpy().tobytes() == bits[0][i][first: first + 5].tobytes() == bits[1][i][first: first + 5].tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(20, 5, 5), (20, 4, 7), (3, 16, 16)])
def test_svd_and_eigh_do_not_depend_on_strides(shape, dtype):
    a = tensor(gradus, random(13, shape, dtype), dtype)
    wide = gradus.stack([a, a], -1)
    for function in (gradus.linalg.svd, gradus.linalg.svdvals) + ((gradus.linalg.eigh, gradus.linalg.eigvalsh) if shape[-1] == shape[-2] else ()):
        bits = []
        for same in (a, a.mT.contiguous().mT, wide[..., 1], a.flip(0).flip(0), a.conj_physical().conj(), a.mH.contiguous().mH, a.mT.conj_physical().mH):
            parts = function(same)
            bits.append([part.numpy().tobytes() for part in (parts if isinstance(parts, tuple) else (parts,))])
        assert all(x == bits[0] for x in bits)
        if function in (gradus.linalg.eigh, gradus.linalg.eigvalsh):
            assert all((x == y).all() for x, y in zip(function(a), function(a.mH, UPLO="U")))


def test_signs_of_vectors_do_not_depend_on_rounding():
    a = with_values(np.random.default_rng(11), np.tile(np.arange(1.0, 7.0), (200, 1)))
    for function in (gradus.linalg.svd, lambda x: gradus.linalg.eigh(x + x.mT)):
        narrow, wide = (function(gradus.from_numpy(a.astype(dtype))) for dtype in ("float32", "float64"))
        assert all(np.abs(x.numpy() - y.numpy()).max() < 1e-3 for x, y in zip(narrow, wide))
    narrow, wide = (gradus.linalg.svd(gradus.from_numpy(with_phases(a, dtype))) for dtype in ("complex64", "complex128"))
    assert all(np.abs(x.numpy() - y.numpy()).max() < 1e-3 for x, y in zip(narrow, wide))


def test_nonfinite_matrices_are_named_in_the_error():
    for dtype, unit in ((gradus.float32, 1), (gradus.complex128, 1), (gradus.complex64, 1j)):
        for at, value in ((0, float("nan")), (16, float("inf")), (69, -float("inf"))):
            a = gradus.eye(8, dtype=dtype).repeat(70, 1, 1)
            a[at, 5, 3] = complex(0, value) if unit == 1j else value
            for function in (gradus.linalg.svd, gradus.linalg.eigh, gradus.linalg.svdvals):
                with pytest.raises(gradus.linalg.LinAlgError, match=rf"Batch element {at}\)"):
                    function(a)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues_of_small_nonfinite_matrices(dtype):
    """An element that is not finite is the eigenvalue of its 1 x 1 matrix, and makes the results of a 2 x 2 matrix NaN. Another batch element is
    computed as ever."""
    for count in (1, 2, 40):
        for n, value in ((1, "nan"), (1, "inf"), (1, "-inf"), (2, "nan"), (2, "-inf")):
            found = []
            for module in (gradus, torch):
                a = module.eye(n, dtype=getattr(module, dtype)).repeat(count, 1, 1) * 2
                a[-1, -1, 0] = float(value)
                found.append([array(x) for x in (*module.linalg.eigh(a), module.linalg.eigvalsh(a))])
            for ours, theirs in zip(*found):
                np.testing.assert_array_equal(ours, theirs)


WITHOUT_OPENBLAS = """
import test_spectral as t
for dtype in t.DTYPES:
    for shape in [(40, 40), (2, 20, 20), (3, 33, 12), (12, 33)]:
        t.check_svd(t.random(0, shape, dtype), dtype)
        if shape[-1] == shape[-2]:
            t.check_eigh(t.random(0, shape, dtype), dtype)
"""


def test_eigh_and_svd_without_openblas():
    needs_torch()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "GRADUS_OPENBLAS": "none"}
    result = subprocess.run([sys.executable, "-c", WITHOUT_OPENBLAS], cwd=Path(__file__).parent, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-4000:]


def weights(module, shape):
    return module.tensor(random(9, tuple(shape), "float64").tolist(), dtype=module.float64).reshape(tuple(shape))


def eigh_loss(module, a, upper="L"):
    values, vectors = module.linalg.eigh(a, UPLO=upper)
    return (values * weights(module, values.shape)).sum() + (vectors.abs() ** 2 * weights(module, vectors.shape)).sum()


def svd_loss(module, a):
    u, s, vh = module.linalg.svd(a, full_matrices=False)
    return (s * weights(module, s.shape)).sum() + (u.abs() ** 2 * weights(module, u.shape)).sum() + (vh.abs() ** 2 * weights(module, vh.shape)).sum()


def with_derivatives(module, function, a, dtype):
    x = tensor(module, a, dtype).requires_grad_()
    value = function(module, x)
    first, = module.autograd.grad(value, x, create_graph=True)
    second, = module.autograd.grad((first.abs() ** 2).sum(), x)
    return [array(t) for t in (value, first, second)]


FUNCTIONS = {
    "eigh": (eigh_loss, [(4, 4), (2, 3, 3), (10, 10)]), "eigh of the upper triangle": (lambda m, a: eigh_loss(m, a, "U"), [(4, 4)]),
    "eigvalsh": (lambda m, a: (m.linalg.eigvalsh(a) ** 3).sum(), [(4, 4), (2, 3, 3)]), "svd": (svd_loss, [(4, 4), (2, 3, 3), (5, 3), (3, 5)]),
    "full svd": (lambda m, a: (m.linalg.svd(a)[1] ** 3).sum() + (m.linalg.svd(a)[0][..., :3].abs() ** 4).sum(), [(5, 3), (3, 3)]),
    "svdvals": (lambda m, a: (m.linalg.svdvals(a) ** 3).sum(), [(4, 4), (2, 3, 3), (5, 3), (3, 5)]),
    "torch.svd": (lambda m, a: (m.svd(a)[1] ** 3).sum() + (m.svd(a)[2].abs() ** 4).sum(), [(5, 3), (3, 3)])}


@pytest.mark.parametrize("dtype", PRECISE)
@pytest.mark.parametrize("function, shape", [(name, shape) for name, (_, shapes) in FUNCTIONS.items() for shape in shapes])
def test_derivatives_of_eigh_and_svd(function, shape, dtype):
    a = random(5, shape, dtype)
    a = a + adjoint(a) if function.startswith("eig") else a
    for ours, theirs in zip(*(with_derivatives(module, FUNCTIONS[function][0], a, dtype) for module in (gradus, torch))):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7 * max(1.0, np.abs(theirs).max()))


def test_derivatives_of_repeated_eigenvalues_and_singular_values():
    for function in (gradus.linalg.svdvals, gradus.linalg.eigvalsh, lambda a: gradus.linalg.svd(a)[1], lambda a: gradus.linalg.eigh(a)[0]):
        x = gradus.eye(3, requires_grad=True)
        assert gradus.autograd.grad(function(x).sum(), x)[0].tolist() == np.eye(3).tolist()


def test_jvp_of_eigh_and_svd():
    a, along = random(6, (4, 4), "float64"), random(7, (4, 4), "float64")
    for function in (lambda m, x: m.linalg.svdvals(x), lambda m, x: m.linalg.eigvalsh(x + x.mT), lambda m, x: m.linalg.svd(x)[0].abs(), lambda m, x: m.linalg.eigh(x + x.mT)[1].abs()):
        ours, theirs = (module.func.jvp(lambda x, module=module: function(module, x), (tensor(module, a, "float64"),), (tensor(module, along, "float64"),))[1] for module in (gradus, torch))
        np.testing.assert_allclose(array(ours), array(theirs), rtol=1e-8, atol=1e-10)


def error(module, call):
    with pytest.raises(Exception) as caught:
        call(module)
    return type(caught.value).__name__, str(caught.value)


def phase(module, function):
    a = tensor(module, random(8, (3, 3), "complex128"), "complex128").requires_grad_()
    part = function(a + a.mH)
    return module.autograd.grad(part.real.sum() + part.imag.sum(), a)


@pytest.mark.parametrize("call", [
    lambda m: m.linalg.eigh(m.ones(2)), lambda m: m.linalg.eigh(m.ones(2, 3)), lambda m: m.linalg.eigh(m.ones(2, 2, dtype=m.int64)), lambda m: m.linalg.eigh(m.ones(2, 2), "X"),
    lambda m: m.linalg.eigh(m.ones(2, 2, dtype=m.float16)), lambda m: m.linalg.eigvalsh(m.ones(2)), lambda m: m.linalg.eigvalsh(m.ones(2, 2), "Lower"),
    lambda m: m.linalg.eigh(m.full((3, 3), float("inf"))), lambda m: m.linalg.eigh(m.stack([m.eye(3), m.full((3, 3), float("nan"))])),
    lambda m: m.linalg.svd(m.ones(2)), lambda m: m.linalg.svd(m.ones(2, 2, dtype=m.int64)), lambda m: m.linalg.svd(m.ones(2, 2, dtype=m.float16)), lambda m: m.svd(m.ones(2)),
    lambda m: m.linalg.svdvals(m.ones(2)),
    lambda m: m.linalg.svd(m.tensor([[1.0, float("nan")], [2.0, 3.0]])), lambda m: m.linalg.svdvals(m.stack([m.eye(40), m.full((40, 40), float("nan"))])),
    lambda m: m.svd(m.stack([m.eye(3), m.full((3, 3), float("nan"))])),
    lambda m: phase(m, lambda a: m.linalg.eigh(a)[1]), lambda m: phase(m, lambda a: m.linalg.svd(a)[0])])
def test_errors_are_those_of_pytorch(call):
    assert error(gradus, call) == error(torch, call)


def test_eigvalsh_does_not_read_the_other_triangle():
    assert gradus.linalg.eigvalsh(gradus.tensor([[2.0, float("nan")], [1.0, 2.0]])).tolist() == pytest.approx([1, 3])
