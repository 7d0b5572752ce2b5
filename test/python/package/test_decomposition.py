"""Compares Cholesky and QR decompositions and triangular solves with PyTorch: values, strides, first and second derivatives, errors."""
import numpy as np
import pytest

from nn_programs import gradus
from oracle import torch

DTYPES = ["float64", "complex128"]


def random(seed, shape, dtype):
    pick = np.random.default_rng(seed)
    values = pick.normal(size=shape)
    return (values + 1j * pick.normal(size=shape) if dtype.startswith("complex") else values).astype(dtype)


def tensor(module, values, dtype):
    return module.tensor(values.tolist(), dtype=getattr(module, dtype)).reshape(tuple(values.shape)).requires_grad_()


def real_sum(module, results, dtype):
    """Returns a loss that depends on the absolute values of all elements, and so does not depend on the phases of the columns of Q."""
    weights = [module.tensor(random(9 + i, tuple(r.shape), "float64").tolist(), dtype=module.float64).reshape(r.shape) for i, r in enumerate(results)]
    return sum((((r.abs() if dtype == "complex128" else r) * w).sum() for r, w in zip(results, weights)), module.zeros((), dtype=module.float64))


def squares(t):
    return (t * t.conj()).real.sum() if t.is_complex() else (t * t).sum()


def results_and_derivatives(module, function, inputs, dtype, differentiate=True):
    given = [tensor(module, values, dtype) for values in inputs]
    results = function(module, *given)
    results = [results] if isinstance(results, module.Tensor) else list(results)
    if not differentiate or not any(r.numel() for r in results):
        return results, []
    first = module.autograd.grad(real_sum(module, results, dtype), given, create_graph=True)
    return results, [*first, *module.autograd.grad(sum(squares(g) for g in first), given)]


def compare(function, inputs, dtype, differentiate=True):
    ours, theirs = (results_and_derivatives(module, function, inputs, dtype, differentiate) for module in (gradus, torch))
    for kind, tolerance in ((0, 1e-9), (1, 1e-5)):
        assert len(ours[kind]) == len(theirs[kind])
        for a, b in zip(ours[kind], theirs[kind]):
            assert a.shape == tuple(b.shape) and (kind or a.stride() == b.stride())
            a, b = (np.array(t.detach().tolist()) for t in (a, b))
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(b).max(initial=0))))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (1, 1), (2, 4, 4), (2, 3, 5, 5), (40, 6, 6), (20, 20), (2, 30, 30), (0, 0), (0, 3, 3)])
def test_cholesky_and_cholesky_inverse(shape, upper, dtype):
    root = random(0, shape, dtype)
    matrix = root @ np.conj(np.swapaxes(root, -1, -2)) + 0.5 * np.eye(shape[-1])
    compare(lambda m, a: m.linalg.cholesky(a, upper=upper), [matrix], dtype)
    compare(lambda m, a: m.cholesky_inverse(m.linalg.cholesky(a, upper=upper), upper), [matrix], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5), (2, 6, 4), (2, 4, 6), (40, 12), (1, 1), (4, 1), (1, 4), (0, 3), (3, 0), (0, 3, 3)])
def test_qr(shape, mode, dtype):
    differentiate = mode == "reduced" or mode == "complete" and shape[-2] <= shape[-1]
    compare(lambda m, a: m.linalg.qr(a, mode=mode), [random(1, shape, dtype)], dtype, differentiate)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("flags", [(upper, unit) for upper in (False, True) for unit in (False, True)])
@pytest.mark.parametrize("shapes", [((3, 3), (3, 2), True), ((2, 3, 3), (3, 2), True), ((3, 1, 4, 4), (2, 4, 3), True), ((4, 4), (3, 4), False),
                                    ((2, 4, 4), (5, 1, 3, 4), False), ((30, 30), (30, 5), True), ((3, 3), (3, 0), True)])
def test_solve_triangular(shapes, flags, dtype):
    a, b, left = shapes
    matrix = 0.3 * random(2, a, dtype) + 2 * np.eye(a[-1])
    compare(lambda m, x, y: m.linalg.solve_triangular(x, y, upper=flags[0], left=left, unitriangular=flags[1]), [matrix, random(3, b, dtype)], dtype)


@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_solve(upper):
    compare(lambda m, b, u: m.cholesky_solve(b, u, upper), [random(4, (2, 4, 3), "float64"), 0.3 * random(5, (4, 4), "float64") + 2 * np.eye(4)], "float64")


def error(module, call):
    with pytest.raises(Exception) as caught:
        call(module)
    return type(caught.value).__name__, str(caught.value)


@pytest.mark.parametrize("call", [
    lambda m: m.linalg.cholesky(m.tensor([[1.0, 2.0], [2.0, 1.0]])),
    lambda m: m.linalg.cholesky(m.stack([m.eye(2), m.tensor([[1.0, 2.0], [2.0, 1.0]])])),
    lambda m: m.linalg.cholesky(m.full((2, 2), float("nan"))),
    lambda m: m.linalg.cholesky_ex(-m.eye(2), check_errors=True),
    lambda m: m.linalg.cholesky(m.ones(2, 3)), lambda m: m.linalg.cholesky(m.ones(2)), lambda m: m.linalg.cholesky(m.ones(2, 2, dtype=m.int64)),
    lambda m: m.linalg.cholesky(m.ones(2, 2, dtype=m.float16)),
    lambda m: m.linalg.qr(m.ones(2)), lambda m: m.linalg.qr(m.ones(2, 2), mode="x"), lambda m: m.linalg.qr(m.ones(2, 2, dtype=m.int64)),
    lambda m: m.linalg.qr(m.rand(4, 2, requires_grad=True), mode="complete")[0].sum().backward(),
    lambda m: m.linalg.qr(m.rand(4, 2, requires_grad=True), mode="r")[1].sum().backward(),
    lambda m: m.linalg.solve_triangular(m.eye(3), m.ones(2, 2), upper=True), lambda m: m.linalg.solve_triangular(m.eye(3), m.ones(3), upper=True),
    lambda m: m.linalg.solve_triangular(m.ones(2, 3), m.ones(3, 2), upper=True),
    lambda m: m.cholesky_solve(m.ones(3), m.eye(3)), lambda m: m.cholesky_solve(m.ones(2, 2), m.eye(3)), lambda m: m.cholesky_inverse(m.ones(3, 2))])
def test_errors_of_cholesky_qr_and_solve_triangular(call):
    assert error(gradus, call) == error(torch, call)


def test_a_failed_cholesky_does_not_write_out():
    out = gradus.full((2, 2), 7.0)
    with pytest.raises(gradus.linalg.LinAlgError):
        gradus.linalg.cholesky(gradus.tensor([[1.0, 2.0], [2.0, 1.0]]), out=out)
    assert out.tolist() == [[7.0, 7.0], [7.0, 7.0]] and issubclass(gradus.linalg.LinAlgError, RuntimeError)


def test_cholesky_ex_of_a_batch_equals_that_of_each_matrix():
    matrices = gradus.tensor(np.random.default_rng(0).normal(size=(40, 5, 5)).tolist()) + 2 * gradus.eye(5)
    factor, info = gradus.linalg.cholesky_ex(matrices)
    alone = [gradus.linalg.cholesky_ex(m) for m in matrices]
    assert (info > 0).any() and info.tolist() == [one.info.item() for one in alone]
    assert all((a == b.L).all() for a, b in zip(factor, alone))


@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5), (4, 2, 3), (64, 32), (7, 3, 3, 3)])
def test_orthogonal_init_agrees_with_pytorch(shape):
    made = []
    for module in (gradus, torch):
        module.manual_seed(0)
        made.append(np.array(module.nn.init.orthogonal_(module.empty(shape), 1.5).tolist()))
    np.testing.assert_allclose(*made, atol=2e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape, reflections", [((4, 3), 3), ((3, 3), 2), ((2, 5, 4), 4), ((2, 3, 4, 2), 1)])
def test_householder_product(shape, reflections, dtype):
    compare(lambda m, a, tau: m.linalg.householder_product(a, tau), [random(0, shape, dtype), random(1, (*shape[:-2], reflections), dtype)], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 3), (2, 5, 4), (2, 40, 30), (30, 30)])
def test_householder_product_and_ormqr_of_geqrf(shape, dtype):
    a, x = random(0, shape, dtype), random(1, (*shape[:-1], 18), dtype)
    compare(lambda m, a: m.linalg.householder_product(*m.geqrf(a.detach())), [a], dtype, differentiate=False)
    for transpose in (False, True):
        compare(lambda m, a, x, transpose=transpose: m.ormqr(*m.geqrf(a.detach()), x.detach(), transpose=transpose), [a, x], dtype, differentiate=False)
        compare(lambda m, a, x, transpose=transpose: m.ormqr(*m.geqrf(a.detach()), x.detach().mT, left=False, transpose=transpose), [a, x], dtype, differentiate=False)


def test_complex_householder_product_accumulates_in_double():
    """The mean error relative to the largest element is 2.3 in units of 2^-24. It would be 3.5 if sums were rounded to float32."""
    vectors, tau = (random(seed, shape, "complex128").astype("complex64") for seed, shape in ((0, (200, 6, 6)), (1, (200, 6))))
    found, exact = (gradus.linalg.householder_product(gradus.from_numpy(3 * vectors).to(dtype), gradus.from_numpy(tau).to(dtype)).to(gradus.complex128) for dtype in (gradus.complex64, gradus.complex128))
    assert ((found - exact).abs().amax((1, 2)) / exact.abs().amax((1, 2))).mean() < 2.8 * 2.0**-24


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (2, 3, 5), (0, 3), (2, 0, 3, 2)])
def test_geqrf(shape, dtype):
    compare(lambda m, a: tuple(m.geqrf(a.detach())), [random(0, shape, dtype)], dtype, differentiate=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 4, 4), (2, 2, 3, 3), (0, 0), (0, 2, 2)])
@pytest.mark.parametrize("size", [0.01, 0.4, 2.0])
def test_matrix_exp(shape, size, dtype):
    compare(lambda m, a: m.matrix_exp(a), [random(0, shape, dtype) * size], dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_matrix_exp_of_small_and_large_norms(dtype):
    values = random(3, (6, 5, 5), "complex128" if dtype == "complex64" else "float64") * np.array([0, 1e-6, 0.1, 1, 4, 20])[:, None, None]
    ours, theirs = (np.array(m.matrix_exp(m.tensor(values.tolist(), dtype=getattr(m, dtype))).tolist()) for m in (gradus, torch))
    for a, b in zip(ours, theirs):
        assert np.abs(a - b).max() <= (1e-12 if dtype == "float64" else 1e-4) * np.abs(b).max()
    for wrong in (np.inf, np.nan, 1000.0):
        a, b = (m.matrix_exp(m.full((2, 2), wrong)).tolist() for m in (gradus, torch))
        np.testing.assert_equal(a, b)


@pytest.mark.parametrize("call", [
    lambda m: m.matrix_exp(m.ones(3)), lambda m: m.matrix_exp(m.ones(3, 4)), lambda m: m.matrix_exp(m.ones(2, 2, dtype=m.int64)), lambda m: m.geqrf(m.ones(3)),
    lambda m: m.linalg.householder_product(m.ones(3), m.ones(2)), lambda m: m.linalg.householder_product(m.ones(3, 4), m.ones(2)),
    lambda m: m.linalg.householder_product(m.ones(4, 3), m.ones(4)), lambda m: m.linalg.householder_product(m.ones(2, 4, 3), m.ones(3)),
    lambda m: m.linalg.householder_product(m.ones(2, 4, 3), m.ones(3, 3)), lambda m: m.linalg.householder_product(m.ones(4, 3), m.ones(3, dtype=m.float64)),
    lambda m: m.geqrf(m.ones(2, 2, requires_grad=True))[0].sum().backward()])
def test_errors_of_householder_product_geqrf_and_matrix_exp(call):
    texts = []
    for module in (gradus, torch):
        with pytest.raises(RuntimeError) as caught:
            call(module)
        texts.append(str(caught.value))
    assert texts[1] in texts[0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_inverse_of_large_factors(upper, dtype):
    """cholesky_inverse divides a triangular matrix into halves recursively, so even and odd numbers of columns are tested."""
    for sizes in ((48,), (49,), (2, 97), (301,)):
        generator = torch.Generator().manual_seed(0)
        a = torch.randn(*sizes, sizes[-1], generator=generator, dtype=torch.complex128 if "complex" in dtype else torch.float64)
        a = a @ a.mH + sizes[-1] * torch.eye(sizes[-1])
        factor = torch.linalg.cholesky(a, upper=upper).resolve_conj().contiguous()
        made = gradus.cholesky_inverse(gradus.from_numpy(factor.numpy()).to(getattr(gradus, dtype)), upper=upper).numpy()
        wanted = torch.linalg.inv(a).numpy()
        assert abs(made - wanted).max() < (3e-6 if dtype in ("float32", "complex64") else 1e-14) * abs(wanted).max()


def on_threads(call):
    """Returns the results of a call, after checking that they have the same bits on 1, 2 and 4 threads."""
    before, found = gradus.get_num_threads(), []
    try:
        for threads in (1, 2, 4):
            gradus.set_num_threads(threads)
            found.append([t.numpy() for t in call()])
    finally:
        gradus.set_num_threads(before)
    for others in found[1:]:
        assert all(a.tobytes() == b.tobytes() for a, b in zip(found[0], others, strict=True))
    return found[0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(191, 191), (192, 192), (193, 193), (240, 240), (340, 340), (3, 200, 200)])
def test_cholesky_of_large_matrices_does_not_depend_on_the_number_of_threads(shape, dtype):
    """cholesky factors 48 columns at a time, so the sizes are around multiples of 48. Threads share the work on one large matrix, and divide the
    small matrices of a batch among them."""
    a, n = random(11, shape, dtype), shape[-1]
    a = (a @ np.swapaxes(a, -1, -2).conj() + n * np.eye(n)).astype(dtype)
    (l,) = on_threads(lambda: [gradus.linalg.cholesky(gradus.tensor(a))])
    assert np.abs(l @ np.swapaxes(l, -1, -2).conj() - a).max() < 10 * np.finfo(dtype).eps * np.abs(a).max()
    assert not np.triu(l, 1).any() and (np.diagonal(l, axis1=-2, axis2=-1).real > 0).all()
    if len(shape) == 3:
        assert gradus.linalg.cholesky(gradus.tensor(a[1])).numpy().tobytes() == l[1].tobytes()


@pytest.mark.parametrize("place", [0, 47, 48, 150, 199])
def test_cholesky_ex_info_of_large_matrices(place):
    """info is the order of the first leading principal minor that is not positive."""
    a = 200 * np.eye(200) + np.ones((200, 200))
    a[place, place] = -1
    a[199, 199] = -1
    assert on_threads(lambda: [gradus.linalg.cholesky_ex(gradus.tensor(a))[1]])[0] == place + 1


LARGE = [(95, 95), (96, 96), (97, 97), (127, 128), (128, 127), (129, 129), (300, 100), (100, 300), (250, 161)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("m, n", LARGE)
def test_blocked_qr_of_large_matrices(m, n, dtype):
    """For sizes around the block size, the factors of QR are orthogonal, multiply to the matrix, and agree between the modes."""
    gradus.manual_seed(m + n)
    a = gradus.randn(m, n, dtype=getattr(gradus, dtype))
    bound = 1e-4 if dtype in ("float32", "complex64") else 1e-12
    reflections, tau = gradus.geqrf(a)
    full = gradus.linalg.qr(a, mode="complete")
    assert (gradus.triu(reflections) - full.R).abs().max() < bound
    for q, r in (full, gradus.linalg.qr(a)):
        assert (q @ r - a).abs().max() < bound
        assert (q.mH @ q - gradus.eye(q.shape[1], dtype=q.dtype)).abs().max() < bound
    if m >= n:
        assert (gradus.linalg.householder_product(reflections, tau) - full.Q[:, :n]).abs().max() < bound
    for columns in (16, 17, 64, 65):
        x = gradus.randn(m, columns, dtype=a.dtype)
        assert (gradus.ormqr(reflections, tau, x) - full.Q @ x).abs().max() < bound
        assert (gradus.ormqr(reflections, tau, x, transpose=True) - full.Q.mH @ x).abs().max() < bound


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_blocked_qr_does_not_depend_on_threads_and_batch(dtype):
    """The results of QR have the same bits for any number of threads, and for a matrix alone and in a batch."""
    gradus.manual_seed(0)
    before = gradus.get_num_threads()
    try:
        for m, n in ((200, 200), (230, 150), (150, 230)):
            a, x = gradus.randn(3, m, n, dtype=getattr(gradus, dtype)), gradus.randn(3, m, 150, dtype=getattr(gradus, dtype))
            seen = []
            for threads in (1, 2, 4):
                gradus.set_num_threads(threads)
                for matrices in (slice(0, 1), slice(0, 3)):
                    made = gradus.geqrf(a[matrices])
                    parts = [*made, *gradus.linalg.qr(a[matrices]), gradus.ormqr(*made, x[matrices], transpose=True)]
                    if m >= n:
                        parts.append(gradus.linalg.householder_product(*made))
                    seen.append([part[0] for part in parts])
            assert all(gradus.equal(part, first) for parts in seen for part, first in zip(parts, seen[0]))
    finally:
        gradus.set_num_threads(before)


def test_qr_of_a_large_matrix_with_nan():
    a = gradus.zeros(150, 150).fill_diagonal_(1)
    a[3, 70] = float("nan")
    q, r = gradus.linalg.qr(a)
    assert r[:, 70].isnan().any() and q.isnan().any()
    assert r[:, :64].isfinite().all() and gradus.linalg.qr(gradus.full((150, 150), float("nan"))).R.triu().isnan().any()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("n", [25, 32, 33, 64, 65, 97, 200])
def test_solve_triangular_with_large_matrices(n, left, dtype):
    """Solves with row-major and with column-major triangular matrices, each with 2 to 150 right-hand sides."""
    a = random(20, (n, n), dtype) / n + 2 * np.eye(n, dtype=dtype)
    for upper in (True, False):
        for unit in (True, False):
            triangle = np.triu(a) if upper else np.tril(a)
            wide = triangle - np.diag(np.diag(triangle)) + np.eye(n) if unit else triangle
            for k in (2, 5, 33, 150):
                b = random(21, (n, k) if left else (k, n), dtype)
                for given in (gradus.tensor(triangle), gradus.tensor(np.ascontiguousarray(triangle.T)).mT):
                    x, = on_threads(lambda: [gradus.linalg.solve_triangular(given, gradus.tensor(b), upper=upper, left=left, unitriangular=unit)])
                    assert np.abs((wide @ x if left else x @ wide) - b).max() < 20 * np.finfo(dtype).eps * np.abs(b).max()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("n", [25, 64])
def test_solve_triangular_of_some_right_sides_has_the_bits_of_all(n, upper, dtype):
    """The right-hand sides are computed in the lanes of SIMD vectors: 3 of them fill a part of one vector, 70 fill more than two vectors. A
    right-hand side must have the same bits in both cases."""
    triangle, b = gradus.tensor(random(22, (n, n), dtype) / n + 2 * np.eye(n, dtype=dtype)), gradus.tensor(random(23, (n, 70), dtype))
    for left in (True, False):
        many, few = (gradus.linalg.solve_triangular(triangle, x if left else x.mT.contiguous(), upper=upper, left=left) for x in (b, b[:, :3]))
        assert (many[:, :3] if left else many[:3]).equal(few)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 3, 8, 16])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("sizes", [(37,), (3, 20), (3, 1), ()])
def test_solve_triangular_has_the_same_bits_in_a_batch_and_in_any_memory_order(sizes, upper, n, dtype):
    """Triangular matrices with the batch shape `sizes` broadcast with 37 or 3 x 20 right-hand sides. Each result has the same bits as if its matrix
    were solved in a separate call."""
    batch = (37,) if sizes == (37,) else (3, 20)
    rows, right = (gradus.from_numpy(random(6 + i, shape, dtype)) for i, shape in enumerate([(*sizes, n, n), (*batch, n, 2)]))
    columns = rows.mT.contiguous().mT
    by_rows, by_columns = (gradus.linalg.solve_triangular(a, right, upper=upper) for a in (rows, columns))
    each = gradus.broadcast_to(rows, (*batch, n, n)).reshape(-1, n, n)
    alone = gradus.stack([gradus.linalg.solve_triangular(a, b, upper=upper) for a, b in zip(each, right.reshape(-1, n, 2))])
    assert (by_rows == by_columns).all() and (by_rows == alone.reshape(by_rows.shape)).all()
