"""Compares batches of small real matrices with single matrices. For a batch the kernels compute several matrices at once, one in each lane of a SIMD
vector. The sizes are from 0 to 16, the matrices are row-major and column-major, and some batches fill a vector only partly."""
import numpy as np
import pytest

import gradus

SIDES = range(17)


def matrices(batch, n, dtype, by_rows, ridge=0.0):
    x = np.random.default_rng(n).normal(size=(batch, n, n)) + ridge * np.eye(n)
    made = gradus.tensor(x, dtype=dtype)
    return made if by_rows else made.mT.contiguous().mT


def close(a, b, dtype):
    limit = 2e-4 if dtype == gradus.float32 else 1e-11
    return np.abs(np.asarray(a.tolist()).reshape(b.shape) - b).max(initial=0) <= limit * max(1, np.abs(b).max(initial=0))


@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize("dtype", [gradus.float32, gradus.float64])
@pytest.mark.parametrize("n", SIDES)
def test_inv_lu_factor_and_cholesky(n, dtype, by_rows):
    for batch in (2, 17):
        x = matrices(batch, n, dtype, by_rows, ridge=n)
        inside = np.asarray(x.tolist()).reshape(batch, n, n)
        assert close(gradus.linalg.inv(x), np.linalg.inv(inside), dtype)
        LU, pivots, info = gradus.linalg.lu_factor_ex(x)
        for i in range(batch):
            alone = gradus.linalg.lu_factor_ex(x[i])
            assert (LU[i] == alone.LU).all() and (pivots[i] == alone.pivots).all() and info[i] == alone.info == 0
        positive = x @ x.mT + gradus.eye(n, dtype=dtype)
        positive = positive if by_rows else positive.mT.contiguous().mT
        for upper in (False, True):
            # cholesky reads only the triangle named by `upper`, so `half` has the same factor as `positive`.
            half = positive.triu() if upper else positive.tril()
            half = half if by_rows else half.mT.contiguous().mT
            factor = gradus.linalg.cholesky(half, upper=upper)
            assert (factor == gradus.stack([gradus.linalg.cholesky(m, upper=upper) for m in half])).all() if n > 0 else factor.shape == (batch, 0, 0)
            assert close(factor.mT @ factor if upper else factor @ factor.mT, np.asarray(positive.tolist()).reshape(batch, n, n), dtype)


@pytest.mark.parametrize("dtype", [gradus.float32, gradus.float64])
@pytest.mark.parametrize("n", SIDES)
def test_solve_triangular_of_a_batch_has_the_bits_of_single_matrices(n, dtype):
    triangles = matrices(17, n, dtype, True, ridge=2 * n + 1)
    for k in (1, 2, 19):
        right = gradus.tensor(np.random.default_rng(k).normal(size=(17, n, k)), dtype=dtype)
        for upper in (False, True):
            for unit in (False, True):
                solved = gradus.linalg.solve_triangular(triangles, right, upper=upper, unitriangular=unit)
                for i in range(17):
                    assert (solved[i] == gradus.linalg.solve_triangular(triangles[i], right[i], upper=upper, unitriangular=unit)).all()
        one = gradus.linalg.solve_triangular(triangles[:1], right, upper=True)  # one triangular matrix for the complete batch
        assert (one == gradus.linalg.solve_triangular(triangles[:1].expand(17, n, n), right, upper=True)).all()


@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize("dtype", [gradus.float32, gradus.float64])
@pytest.mark.parametrize("n", SIDES)
def test_solve_inv_and_det_of_a_batch_have_the_bits_of_single_matrices(n, dtype, by_rows):
    x = matrices(19, n, dtype, by_rows)
    determinants = gradus.linalg.det(x)
    inverses = gradus.linalg.inv(x)
    assert close(determinants, np.linalg.det(np.asarray(x.tolist()).reshape(19, n, n)), dtype)
    for k in (0, 1, 3, 16, 17):
        right = gradus.tensor(np.random.default_rng(k).normal(size=(19, n, k)), dtype=dtype)
        solved, info = gradus.linalg.solve_ex(x, right)
        shared = gradus.linalg.solve(x, right[0])  # right-hand sides shared by the complete batch
        recorded = gradus.linalg.solve(x.clone().requires_grad_(), right)
        assert (info == 0).all() and (recorded == solved).all()
        for i in range(19):
            assert (solved[i] == gradus.linalg.solve(x[i], right[i])).all() and (shared[i] == gradus.linalg.solve(x[i], right[0])).all()
    for i in range(19):
        assert determinants[i] == gradus.linalg.det(x[i]) and (inverses[i] == gradus.linalg.inv(x[i])).all()
    assert (gradus.linalg.det(x.clone().requires_grad_()) == determinants).all()


@pytest.mark.parametrize("dtype", [gradus.float32, gradus.float64])
@pytest.mark.parametrize("n", [2, 3, 5, 8, 16])
def test_pivots_of_a_batch_are_those_of_single_matrices(n, dtype):
    """The elements are drawn from a few values, which include 0, infinity and NaN. Therefore matrices in different lanes of one SIMD vector need
    different pivots."""
    values = np.array([0.0, -0.0, 1.0, -1.0, 2.0, np.inf, -np.inf, np.nan])
    drawn = np.random.default_rng(n).integers(0, 8, size=(200, n, n))
    drawn[:150] %= 5  # these matrices are finite
    drawn[7, :, 1] = 0  # this matrix is singular
    x = gradus.tensor(values[drawn], dtype=dtype)
    LU, pivots, info = gradus.linalg.lu_factor_ex(x)
    determinants = gradus.linalg.det(x)
    for i in range(200):
        alone = gradus.linalg.lu_factor_ex(x[i])
        assert (pivots[i] == alone.pivots).all() and info[i] == alone.info
        assert gradus.allclose(LU[i], alone.LU, rtol=0, atol=0, equal_nan=True)
        assert gradus.allclose(determinants[i], gradus.linalg.det(x[i]), rtol=0, atol=0, equal_nan=True)
    _, solved_info = gradus.linalg.solve_ex(x, x[:, :, :1])
    assert (solved_info == info).all() and (info > 0).any()


def test_solve_names_the_first_singular_matrix():
    x = matrices(40, 5, gradus.float64, True, ridge=5)
    x[33, :, 2] = 0
    solved, info = gradus.linalg.solve_ex(x, gradus.ones(40, 5, dtype=gradus.float64))
    assert info[33] == 3 and (info == 0).sum() == 39 and solved[32].isfinite().all() and gradus.linalg.det(x)[33] == 0
    with pytest.raises(gradus.linalg.LinAlgError, match=r"torch.linalg.solve: \(Batch element 33\): The solver failed because the input matrix is singular"):
        gradus.linalg.solve(x, gradus.ones(40, 5, dtype=gradus.float64))


def test_inv_names_the_first_singular_matrix():
    x = matrices(40, 5, gradus.float64, True, ridge=5)
    x[33, :, 2] = 0
    inverse, info = gradus.linalg.inv_ex(x)
    assert info[33] == 3 and (info == 0).sum() == 39 and inverse[32].isfinite().all()
    with pytest.raises(gradus.linalg.LinAlgError, match=r"linalg.inv: \(Batch element 33\): The diagonal element 3 is zero"):
        gradus.linalg.inv(x)


def test_gradients_of_inv_of_a_batch():
    x = matrices(3, 4, gradus.float64, True, ridge=4).requires_grad_()
    assert gradus.autograd.gradcheck(gradus.linalg.inv, x, check_forward_ad=True) and gradus.autograd.gradgradcheck(gradus.linalg.inv, x)


@pytest.mark.parametrize("driver", ["gels", "gelsy"])
@pytest.mark.parametrize("dtype", [gradus.float32, gradus.complex128])
def test_lstsq_of_large_matrices(dtype, driver):
    generator = np.random.default_rng(1)
    for k in (1, 20):
        part = gradus.tensor(generator.normal(size=(2, 50, 30)), dtype=dtype)
        a = part[0] if not dtype.is_complex else part[0] + 1j * part[1]
        b = gradus.tensor(generator.normal(size=(50, k)), dtype=dtype)
        solved = gradus.linalg.lstsq(a, b, driver=driver).solution
        assert (a.mH @ (a @ solved - b)).abs().max() < (1e-3 if dtype == gradus.float32 else 1e-11)


@pytest.mark.parametrize("dtype", [gradus.float32, gradus.float64, gradus.complex64, gradus.complex128])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_solve_triangular_with_few_right_sides(k, dtype):
    n = 40
    generator = np.random.default_rng(k)
    part = gradus.tensor(generator.normal(size=(2, n, n)) / n, dtype=dtype)
    x = part[0] + (0 if not dtype.is_complex else 1j * part[1]) + gradus.eye(n, dtype=dtype)
    b = gradus.tensor(generator.normal(size=(n, k)), dtype=dtype)
    for upper in (False, True):
        for unit in (False, True):
            triangle = x.triu() if upper else x.tril()
            whole = triangle - triangle.diagonal().diag() + gradus.eye(n, dtype=dtype) if unit else triangle
            limit = 1e-5 if dtype in (gradus.float32, gradus.complex64) else 1e-13
            for laid in (x, x.mT.contiguous().mT):
                left = gradus.linalg.solve_triangular(laid, b, upper=upper, unitriangular=unit)
                right = gradus.linalg.solve_triangular(laid, b.mT, upper=upper, left=False, unitriangular=unit)
                assert (whole @ left - b).abs().max() < limit and (right @ whole - b.mT).abs().max() < limit
    LU, pivots = gradus.linalg.lu_factor(x)
    for laid in (LU, LU.contiguous()):
        for adjoint in (False, True):
            for side in (True, False):
                solved = gradus.linalg.lu_solve(laid, pivots, b if side else b.mT, left=side, adjoint=adjoint)
                matrix = x.mH if adjoint else x
                assert ((matrix @ solved - b) if side else (solved @ matrix - b.mT)).abs().max() < limit


def test_lstsq_of_full_rank_and_rank_deficient_matrices():
    generator = np.random.default_rng(0)
    for shape in ((2, 9, 4), (2, 4, 9), (30, 30), (2, 60, 26), (26, 60), (2, 5, 5), (5, 32, 16)):
        a = generator.normal(size=shape)
        b = generator.normal(size=shape[:-1] + (3,))
        low = a.copy()
        low[..., -1, :] = low[..., 0, :]
        low[..., :, -1] = low[..., :, 0]
        for given in (a, low):
            made = gradus.linalg.lstsq(gradus.tensor(given.tolist(), dtype=gradus.float64), gradus.tensor(b.tolist(), dtype=gradus.float64))
            assert np.abs(np.asarray(made.solution.tolist()) - np.linalg.pinv(given) @ b).max() < 1e-9
            assert (np.asarray(made.rank.tolist()) == np.linalg.matrix_rank(given)).all() and made.singular_values.shape == (0,)
        # With an rcond slightly above the ratio of the smallest to the largest singular value, the smallest one counts as 0 and reduces the rank.
        values = np.linalg.svd(a, compute_uv=False)
        rcond = float((values[..., -1] / values[..., 0]).max()) * 1.01
        made = gradus.linalg.lstsq(gradus.tensor(a.tolist(), dtype=gradus.float64), gradus.tensor(b.tolist(), dtype=gradus.float64), rcond=rcond)
        assert np.abs(np.asarray(made.solution.tolist()) - np.linalg.pinv(a, rcond=rcond) @ b).max() < 1e-9 and (made.rank < min(shape[-2:])).all()


def test_errors_of_linear_algebra_functions():
    singular = gradus.eye(3).repeat(4, 1, 1)
    singular[2, 1, 1] = 0
    with pytest.raises(gradus.linalg.LinAlgError, match=r"^cholesky_inverse: \(Batch element 2\): The diagonal element 2 is zero, the inversion could not be completed because the input matrix is singular\."):
        gradus.cholesky_inverse(singular)
    with pytest.raises(gradus.linalg.LinAlgError, match=r"^cholesky_inverse: The diagonal element 3 is zero"):
        gradus.cholesky_inverse(gradus.diag(gradus.tensor([1.0, 2.0, 0.0, 0.0])))
    assert (gradus.cholesky_inverse(2 * gradus.eye(2).repeat(3, 1, 1)) == 0.25 * gradus.eye(2)).all() and gradus.cholesky_inverse(gradus.ones(0, 3, 3)).shape == (0, 3, 3)
    integers = gradus.tensor([[1, 0], [0, 1]])
    with pytest.raises(NotImplementedError, match="\"cholesky_inverse_out_cpu\" not implemented for 'Long'"):
        gradus.cholesky_inverse(integers)
    with pytest.raises(NotImplementedError, match="\"cholesky_cpu\" not implemented for 'Long'"):
        gradus.cholesky(integers)
    for call in (gradus.linalg.solve, gradus.linalg.solve_ex):
        with pytest.raises(RuntimeError, match="^linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is equivalent to B / A.squeeze"):
            call(gradus.ones(2, 1, 1), gradus.ones(2, 1), left=False)
    for order in (-1, -2, -float("inf")):
        with pytest.raises(IndexError, match="Expected reduction dim"):
            gradus.linalg.matrix_norm(gradus.ones(2, 0, 0), order)


@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize("dtype", [gradus.float32, gradus.float64])
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (5, 3), (3, 5), (16, 16), (30, 5), (5, 30), (256, 1), (1, 256), (9, 0), (0, 9), (17, 15), (20, 20)])
def test_qr_of_a_batch(shape, dtype, by_rows):
    m, n = shape
    limit = 1e-5 if dtype == gradus.float32 else 1e-13
    for batch in (4, 21):
        x = np.random.default_rng(m + n).normal(size=(batch, m, n))
        x[1:2] = 0  # a zero matrix
        x[2:3] *= np.logspace(-30, 30, n) if n > 1 else 1e-30  # the squares of some columns overflow or underflow in float32
        x[3:4] = np.eye(m, n)  # a triangular matrix: no column needs a reflection
        a = gradus.tensor(x.tolist(), dtype=dtype).reshape(batch, m, n)
        a = a if by_rows else a.mT.contiguous().mT
        for mode in ("reduced", "complete", "r"):
            Q, R = gradus.linalg.qr(a, mode)
            k = m if mode == "complete" else min(m, n)
            assert R.shape == (batch, k, n) and (R == R.triu()).all()
            if mode == "r":
                assert (R == gradus.linalg.qr(a).R).all()
                continue
            assert Q.shape == (batch, m, k) and (Q.mT @ Q - gradus.eye(k, dtype=dtype)).abs().sum() <= limit * (k * k + 1)
            sizes = a.abs().amax(-2, keepdim=True) if m > 0 else a.sum(-2, keepdim=True)
            error = (Q @ R - a).abs()
            assert (error <= 4 * limit * sizes + 1e-44).all()
            # QR is unique only up to signs. A matrix has the same signs in the batch as alone, so R can be compared.
            for i in (0, 3):
                alone = gradus.linalg.qr(a[i], mode)
                assert (R[i] - alone.R).abs().sum() <= limit * (1 + alone.R.abs().sum())
