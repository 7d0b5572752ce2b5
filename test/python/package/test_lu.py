"""Compares LU decompositions, linear equations, inverses and determinants with PyTorch: values, strides, infos, first and second derivatives,
errors."""
import warnings

import numpy as np
import pytest

from nn_programs import gradus
from oracle import torch
from test_decomposition import compare, on_threads, random

DTYPES = ["float64", "complex128"]
SHAPES = [(3, 3), (1, 1), (2, 4, 4), (40, 6, 6), (20, 3, 3), (30, 30), (0, 0), (0, 3, 3), (2, 0, 0)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES + [(5, 3), (3, 5), (2, 6, 4), (2, 4, 6), (40, 30), (30, 40), (0, 3), (3, 0)])
def test_lu_and_lu_factor(shape, dtype):
    matrix = random(0, shape, dtype)
    compare(lambda m, a: m.linalg.lu_factor(a)[0], [matrix], dtype)
    compare(lambda m, a: m.linalg.lu(a)[1:], [matrix], dtype)
    compare(lambda m, a: tuple(r.to(m.float64) for r in m.linalg.lu_factor_ex(a.detach())[1:]) + (m.linalg.lu(a.detach())[0],), [matrix], dtype, differentiate=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", [((3, 3), (3, 2), True), ((3, 3), (3,), True), ((2, 4, 4), (2, 4), True), ((3, 1, 4, 4), (2, 4, 3), True), ((4, 4), (3, 4), False),
                                    ((2, 4, 4), (5, 1, 3, 4), False), ((30, 30), (30, 5), True), ((30, 30), (300, 30), False), ((40, 5, 5), (5, 20), True), ((0, 0), (0, 2), True)])
def test_solve(shapes, dtype):
    a, b, left = shapes
    compare(lambda m, x, y: m.linalg.solve(x, y, left=left), [random(1, a, dtype), random(2, b, dtype)], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("shapes", [((3, 3), (3, 2), True), ((2, 4, 4), (3, 1, 4, 2), True), ((4, 4), (3, 4), False), ((2, 4, 4), (2, 3, 4), False), ((20, 5, 5), (5, 3), True)])
def test_lu_solve(shapes, adjoint, dtype):
    a, b, left = shapes
    compare(lambda m, x, y: m.linalg.lu_solve(*m.linalg.lu_factor(x), y, left=left, adjoint=adjoint), [random(3, a, dtype), random(4, b, dtype)], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_inverses_and_determinants(shape, dtype):
    matrix = random(5, shape, dtype)
    compare(lambda m, a: m.linalg.inv(a), [matrix], dtype)
    # Derivatives of 1 x 1 determinants are not compared, because PyTorch's first derivative cannot be differentiated again.
    compare(lambda m, a: m.det(a), [matrix], dtype, differentiate=matrix.size > 1)
    compare(lambda m, a: tuple(m.linalg.slogdet(a)), [matrix], dtype)
    compare(lambda m, a: m.logdet(a.mH @ a + m.eye(a.shape[-1], dtype=a.dtype)), [matrix], dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [1, 3, 16, 40])
def test_slogdet_of_determinants_beyond_the_range(n, dtype):
    """The matrices are diagonal. Some products of diagonal elements overflow or underflow. Others are 0, infinite, NaN or close to 1. slogdet is
    tested for a batch, for single matrices, and with a stored LU decomposition."""
    real = np.finfo(dtype)
    least = real.tiny if "complex" in dtype else real.smallest_subnormal
    rows = [[real.max], [real.tiny], [least], [real.max, real.tiny], [real.max] * 2 + [least], [1 - real.epsneg], [1 + real.eps], [3, -1 / 3], [0], [0, 2],
            [np.inf], [np.inf, 0], [np.nan, 1]]
    numbers = np.array([(row * n)[:n] for row in rows], dtype)
    matrices = gradus.from_numpy(np.stack([np.diag(row) for row in numbers]))
    sign, logarithm = (t.numpy() for t in gradus.linalg.slogdet(matrices))
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.log(np.abs(numbers.astype("complex128" if np.iscomplexobj(numbers) else "float64")))
        expected, error = parts.sum(-1), (1 + n / 2) * real.eps * np.abs(parts).sum(-1)
        assert ((np.abs(logarithm - expected) <= error) | (logarithm == expected) | np.isnan(logarithm) & np.isnan(expected)).all()
    assert (sign[:7] == 1).all() and (sign[8:10] == 0).all()
    for i, matrix in enumerate(matrices):
        for alone in (gradus.linalg.slogdet(matrix), gradus.linalg.slogdet(matrix.clone().requires_grad_())):
            assert (sign[i].tobytes(), logarithm[i].tobytes()) == tuple(t.detach().numpy().tobytes() for t in alone)


@pytest.mark.parametrize("dtype", [gradus.float32, gradus.float64])
def test_the_sign_of_a_real_determinant_is_exact(dtype):
    gradus.manual_seed(0)
    a = gradus.randn(20, 60, 60, dtype=dtype)
    assert set(gradus.linalg.slogdet(a)[0].tolist()) <= {-1.0, 1.0}


def test_gradient_of_the_sign_of_a_complex_determinant():
    """The sign of a complex determinant is a number of absolute value 1 that depends on the matrix. The gradient of the sign's real part is compared
    with PyTorch's."""
    matrix = random(6, (2, 3, 3), "complex128")
    compare(lambda m, a: m.linalg.slogdet(a)[0].real, [matrix], "complex128")


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
@pytest.mark.parametrize("n", [2, 7, 16, 17, 60, 200])
def test_residuals_of_lu_inv_and_solve(n, dtype):
    parts = np.random.default_rng(n).normal(size=(2, 3, n, n))
    a = (parts[0] + 1j * parts[1] if "complex" in dtype else parts[0]).astype(dtype)
    t, precision = gradus.from_numpy(a), 1e-4 if dtype in ("float32", "complex64") else 1e-11
    P, L, U = (x.numpy() for x in gradus.linalg.lu(t))
    assert np.abs(P @ L @ U - a).max() < precision
    assert np.abs(a @ gradus.linalg.inv(t).numpy() - np.eye(n)).max() < precision * n * 100
    assert np.abs(a @ gradus.linalg.solve(t, t).numpy() - a).max() < precision * n * 100


def test_lu_factor_and_solve_of_a_batch_have_the_bits_of_single_matrices():
    matrices = gradus.from_numpy(np.random.default_rng(0).normal(size=(37, 5, 5)))
    right = gradus.from_numpy(np.random.default_rng(1).normal(size=(37, 5, 2)))
    together, solved = gradus.linalg.lu_factor_ex(matrices), gradus.linalg.solve(matrices, right)
    for i, (matrix, b) in enumerate(zip(matrices, right)):
        alone = gradus.linalg.lu_factor_ex(matrix)
        assert all((a[i] == b).all() for a, b in zip(together, alone)) and (solved[i] == gradus.linalg.solve(matrix, b)).all()


ALL_DTYPES = ["float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("shape", [(127, 127), (128, 128), (144, 144), (193, 193), (330, 330), (150, 400), (400, 150), (3, 200, 200)])
def test_lu_factor_of_large_matrices(shape, dtype):
    """lu_factor factors 48 columns at a time, so sizes are at, near and far from multiples of 48. Threads share the work on one large matrix, and
    divide the small matrices of a batch among them."""
    a = random(9, shape, dtype)
    m, n = shape[-2:]
    lu, pivots, info = on_threads(lambda: gradus.linalg.lu_factor_ex(gradus.tensor(a)))
    p, l, u = (t.numpy() for t in gradus.lu_unpack(gradus.tensor(lu), gradus.tensor(pivots)))
    assert not info.any() and np.abs(np.tril(lu, -1)[..., : min(m, n)]).max() <= (1 + 1e-6 if np.isrealobj(a) else 2 ** 0.5 + 1e-6)
    assert np.abs(p @ l @ u - a).max() < 20 * max(m, n) ** 0.5 * np.finfo(dtype).eps * np.abs(a).max()
    if len(shape) == 3:
        alone = gradus.linalg.lu_factor_ex(gradus.tensor(a[1]))
        assert lu[1].tobytes() == alone[0].numpy().tobytes() and pivots[1].tolist() == alone[1].tolist()


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("shape", [(17, 17), (32, 32), (33, 33), (127, 127), (129, 129), (300, 300), (3, 140, 140)])
def test_inverses_of_large_matrices(shape, dtype):
    """inv solves for 128 columns of the inverse at a time. The solver for triangular systems divides large ones into halves recursively."""
    a = random(12, shape, dtype)
    inverse, = on_threads(lambda: [gradus.linalg.inv(gradus.tensor(a))])
    n = shape[-1]
    wide = a.astype("complex128" if np.iscomplexobj(a) else "float64")
    assert np.abs(wide @ inverse - np.eye(n)).max() < 20 * n * np.finfo(dtype).eps * np.abs(a).max() * np.abs(inverse).max()
    assert inverse.dtype == a.dtype and gradus.linalg.inv(gradus.tensor(a)).stride()[-2:] == (1, n)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("place", [0, 47, 48, 100, 199])
def test_lu_factor_ex_info_of_large_singular_matrices(place, dtype):
    """If a column of the matrix is zero, `info` is the position, counted from 1, of the first zero on the diagonal of U. A NaN in a column of the
    matrix spreads only to that column of the factors and to later columns."""
    a = random(10, (200, 200), dtype)
    a[:, place] = 0
    lu, _, info = on_threads(lambda: gradus.linalg.lu_factor_ex(gradus.tensor(a)))
    assert info == place + 1 and lu[place, place] == 0
    a[:, max(place, 1)] = 0
    a[:, 0] = 0
    assert on_threads(lambda: gradus.linalg.lu_factor_ex(gradus.tensor(a)))[2] == 1
    a = random(10, (200, 200), dtype)
    a[:, place] = np.nan
    lu = on_threads(lambda: gradus.linalg.lu_factor_ex(gradus.tensor(a)))[0]
    assert np.isnan(lu[:, place:]).any(0).all() and np.isfinite(lu[:, :place]).all()


@pytest.mark.parametrize("matrix, wanted", [([[1.0, 2.0], [2.0, 4.0]], [[4.0, -2.0], [-2.0, 1.0]]), ([[0.0, 0.0], [0.0, 3.0]], [[3.0, 0.0], [0.0, 0.0]])])
def test_derivatives_of_determinants_of_singular_matrices(matrix, wanted):
    a = gradus.tensor(matrix, dtype=gradus.float64, requires_grad=True)
    first, = gradus.autograd.grad(gradus.det(a), a, create_graph=True)
    np.testing.assert_allclose(first.tolist(), wanted, atol=1e-6)
    second, = gradus.autograd.grad(first[0, 0], a)
    np.testing.assert_allclose(second.tolist(), [[0.0, 0.0], [0.0, 1.0]], atol=1e-6)


def test_info_of_singular_matrices():
    for module in (gradus, torch):
        batch = module.stack([module.eye(3), module.ones(3, 3), module.zeros(3, 3)])
        assert module.linalg.lu_factor_ex(batch).info.tolist() == [0, 2, 1]
        assert module.linalg.inv_ex(batch).info.tolist() == module.linalg.solve_ex(batch, batch).info.tolist() == [0, 2, 1]
        assert module.linalg.det(batch).tolist() == [1, 0, 0] and module.linalg.slogdet(batch)[1].tolist() == [0, -np.inf, -np.inf]
        assert module.logdet(-module.eye(3)).isnan() and module.logdet(module.ones(2, 2)).item() == -np.inf


def test_deprecated_names_of_lu_functions():
    results = []
    for module in (gradus, torch):
        a, b = module.tensor(random(0, (2, 3, 3), "float64").tolist()), module.tensor(random(1, (2, 3, 2), "float64").tolist())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            LU, pivots = module.lu(a)
            results.append([LU, pivots, *a.lu(get_infos=True), *module._lu_with_info(a), *module.lu_unpack(LU, pivots), *module.lu_unpack(LU, pivots, unpack_data=False),
                            *module.lu_unpack(LU, pivots, unpack_pivots=False), module.lu_solve(b, LU, pivots), b.lu_solve(LU, pivots), a.inverse(), a.det(), *a.slogdet(), a.logdet()])
    for a, b in zip(*results, strict=True):
        assert a.shape == tuple(b.shape) and a.stride() == b.stride()
        np.testing.assert_allclose(a.tolist(), b.tolist(), atol=1e-5)


SINGULAR = "m.stack([m.eye(2), m.ones(2, 2)])"
INT32 = "dtype=m.int32"


@pytest.mark.parametrize("call", [
    *(text.format(matrix) for matrix in (SINGULAR, "m.ones(2, 2)") for text in (
        "m.linalg.inv({})", "m.linalg.solve({}, m.ones(2, 2))", "m.linalg.lu_factor({})", "m.linalg.inv_ex({}, check_errors=True)", "m.inverse({})",
        "m.linalg.solve_ex({}, m.ones(2, 2), check_errors=True)", "m.linalg.lu_factor_ex({}, check_errors=True)", "m.matrix_power({}, -1)")),
    *(f"m.{name}({argument})" for argument in ("m.ones(3)", "m.ones(2, 3)", "m.ones(2, 2, dtype=m.int64)", "m.ones(2, 2, dtype=m.float16)") for name in (
        "linalg.inv", "linalg.det", "linalg.slogdet", "logdet", "inverse", "det", "slogdet", "linalg.lu_factor", "linalg.lu") if ("lu" not in name or argument != "m.ones(2, 3)")),
    "m.linalg.lu(m.ones(2, 2), pivot=False)", "m.linalg.lu_factor(m.ones(2, 2), pivot=False)", "m.linalg.lu_factor_ex(m.ones(2, 2), pivot=False)",
    "m.linalg.solve(m.ones(3), m.ones(3))", "m.linalg.solve(m.ones(2, 3), m.ones(3))", "m.linalg.solve(m.ones(2, 2, dtype=m.int64), m.ones(2))",
    "m.linalg.solve(m.eye(3), m.ones(2))", "m.linalg.solve(m.eye(3), m.ones(2, 3))", "m.linalg.solve(m.eye(3), m.ones(()))", "m.linalg.solve(m.eye(3), m.ones(3, dtype=m.float64))",
    "m.linalg.solve(m.eye(3).expand(2, 3, 3), m.ones(5, 3, 3))", "m.linalg.solve(m.eye(3), m.ones(3, 2), left=False)", "m.linalg.solve(m.eye(3), m.ones(3), left=False)",
    "m.linalg.lu_solve(m.eye(3), m.ones(3), m.ones(3, 1))", f"m.linalg.lu_solve(m.eye(3), m.ones(3, {INT32}), m.ones(2, 1))", f"m.linalg.lu_solve(m.eye(3), m.ones(2, {INT32}), m.ones(3, 1))",
    f"m.linalg.lu_solve(m.eye(3), m.ones(3, {INT32}), m.ones(3))", f"m.linalg.lu_solve(m.ones(2, 3), m.ones(2, {INT32}), m.ones(3, 1))",
    f"m.linalg.lu_solve(m.eye(3), m.ones(2, 3, {INT32}), m.ones(3, 1))", f"m.linalg.lu_solve(m.eye(3), m.full((3,), 7, {INT32}), m.ones(3, 1))",
    f"m.linalg.lu_solve(m.eye(3), m.zeros(3, {INT32}), m.ones(3, 1))", f"m.linalg.lu_solve(m.eye(3), m.ones(3, {INT32}), m.ones(3, 1, dtype=m.float64))",
    f"m.linalg.lu_solve(m.eye(3), m.ones(3, {INT32}), m.ones(4, 2), left=False)", f"m.lu_unpack(m.eye(3), m.full((3,), 7, {INT32}))", "m.lu_unpack(m.eye(3), m.ones(3))",
    "m.lu_unpack(m.ones(3), m.ones(3))", "m.linalg.inv(m.eye(2), out=m.empty(2, 2, dtype=m.float64))", "m.linalg.det(m.eye(2), out=m.empty((), dtype=m.int32))",
    "m.linalg.solve(m.eye(2), m.eye(2), out=m.empty(2, 2, dtype=m.float64))", "m.linalg.lu_factor(m.eye(2), out=(m.empty(2, 2), m.empty(2)))"])
def test_errors(call):
    texts = []
    for module in (gradus, torch):
        with pytest.raises(Exception) as caught:
            eval(call, {"m": module})
        texts.append((type(caught.value).__name__, str(caught.value)))
    assert texts[0] == texts[1]


def test_out_argument_of_inv_and_lu_factor():
    for module in (gradus, torch):
        a, out = module.eye(3) * 2, module.empty(3, 3)
        assert module.linalg.inv(a, out=out) is out and out.tolist() == (module.eye(3) / 2).tolist()
        LU, pivots = module.empty(0), module.empty(0, dtype=module.int32)
        module.linalg.lu_factor(a, out=(LU, pivots))
        assert LU.tolist() == a.tolist() and pivots.tolist() == [1, 2, 3]


@pytest.mark.parametrize("call", ["m.linalg.solve(a, b)", "m.linalg.inv(a)", "m.linalg.det(a)", "m.linalg.slogdet(a)[1]", "m.linalg.lu_factor(a)[0]", "m.logdet(a @ a.mT)"])
def test_vmap_and_jvp_of_lu_functions(call):
    a, b = random(0, (4, 3, 3), "float64"), random(1, (4, 3, 2), "float64")
    results = []
    for module in (gradus, torch):
        given = [module.tensor(x.tolist(), dtype=module.float64) for x in (a, b)]
        run = lambda x, y, module=module: eval(call, {"m": module, "a": x, "b": y})  # noqa: E731
        results.append([module.func.vmap(run)(*given), module.func.jvp(run, tuple(given), (given[0].cos(), given[1].sin()))[1],
                        module.func.vmap(module.func.grad(lambda x, y, run=run: run(x, y).sum()))(*given)])
    for ours, theirs in zip(*results):
        np.testing.assert_allclose(ours.tolist(), theirs.tolist(), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensorinv_and_tensorsolve(dtype):
    compare(lambda m, a: m.linalg.tensorinv(a.reshape(2, 3, 3, 2), ind=2), [random(0, (6, 6), dtype)], dtype)
    compare(lambda m, a, b: m.linalg.tensorsolve(a.reshape(2, 3, 6), b), [random(1, (6, 6), dtype), random(2, (2, 3), dtype)], dtype)
    compare(lambda m, a, b: m.linalg.tensorsolve(a.reshape(2, 6, 3), b, dims=(1,)), [random(1, (6, 6), dtype), random(2, (2, 3), dtype)], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_vander(dtype):
    compare(lambda m, x: (m.linalg.vander(x), m.linalg.vander(x, N=3)), [random(3, (2, 4), dtype)], dtype)
    # Derivatives are not compared, because PyTorch's vander overwrites a tensor that its derivative needs.
    compare(lambda m, x: (m.vander(x), m.vander(x, N=2, increasing=True), m.vander(x, 0)), [random(3, (4,), dtype)], dtype, differentiate=False)
    for module in (gradus, torch):
        assert module.vander(module.tensor([1, 2, 3]), 2).tolist() == [[1, 1], [2, 1], [3, 1]] and module.vander(module.tensor([True, False])).dtype == module.int64


@pytest.mark.parametrize("call", [
    "m.linalg.tensorinv(m.ones(2, 2), ind=0)", "m.linalg.tensorinv(m.ones(2, 3), ind=1)", "m.linalg.tensorinv(m.ones(2, 2), ind=1)", "m.linalg.tensorsolve(m.ones(2, 3), m.ones(2))",
    "m.linalg.tensorsolve(m.ones(2, 2), m.ones(3))", "m.linalg.tensorsolve(m.ones(2, 2), m.ones(2), dims=(5,))", "m.linalg.tensorsolve(m.ones(2, 2), m.ones(2))",
    "m.linalg.vander(m.ones(()))", "m.linalg.vander(m.ones(3), N=1)", "m.linalg.vander(m.tensor([True]))", "m.vander(m.ones(2, 2))", "m.vander(m.ones(2), N=-1)"])
def test_errors_of_tensorinv_tensorsolve_and_vander(call):
    test_errors(call)


@pytest.mark.parametrize("count", [1, 20])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lu_factor_with_subnormal_pivots(dtype, count):
    """The reciprocal of a subnormal pivot overflows, so L must be computed by divisions. The same matrix times a power of two has normal pivots. Both
    matrices must have the same bits in the first column of L."""
    least, up = (-149, 120) if dtype == "float32" else (-1074, 1000)
    a = np.ldexp(np.random.default_rng(3).integers(-20, 20, (count, 7, 7)).astype(dtype), least)
    tiny, large = (gradus.linalg.lu_factor_ex(gradus.tensor(x.astype(dtype)))[0].numpy() for x in (a, np.ldexp(a, up)))
    tiny, large = (np.sort(x[:, 1:, 0]) for x in (tiny, large))  # sorted, because later row swaps may differ
    assert np.isfinite(tiny).all() and tiny.tobytes() == large.tobytes() and np.abs(tiny).max() > 0.5
