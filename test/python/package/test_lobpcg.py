"""Compares lobpcg with the complete list of eigenvalues and with PyTorch's lobpcg: eigenvalues, eigenvectors, derivatives, errors."""
import numpy as np
import pytest

from nn_programs import gradus
from oracle import torch


def eigenvalues(matrix, B, k, largest):
    """Returns the k largest (or smallest) eigenvalues, the most extreme one first. NumPy computes them, because PyTorch's method "basic" finds an
    eigenvalue twice on some machines."""
    # With B = L L^T, the eigenvalues e of A x = e B x are those of the symmetric matrix inv(L) A inv(L)^T.
    half = np.linalg.inv(np.linalg.cholesky(B))
    ascending = np.linalg.eigvalsh(half @ matrix @ np.swapaxes(half, -1, -2))
    return (ascending[..., ::-1] if largest else ascending)[..., :k]


def positive(seed, shape):
    half = np.random.default_rng(seed).normal(size=shape)
    return half @ np.swapaxes(half, -1, -2) + np.diag(np.arange(shape[-1]) ** 2.0)


@pytest.mark.parametrize("largest", [True, False, None])
@pytest.mark.parametrize("shape, options", [((20, 20), {"k": 3}), ((20, 20), {"k": 2, "n": 4}), ((3, 15, 15), {"k": 2}), ((12, 12), {}), ((40, 40), {"k": 5, "method": "basic", "niter": -1})])
def test_eigenvalues_and_eigenvectors(shape, options, largest):
    matrix = positive(0, shape)
    for B in (None, positive(1, shape) / shape[-1]):
        keywords = {"largest": largest, "tol": 1e-9, **options}
        E, X = gradus.lobpcg(gradus.from_numpy(matrix), B=None if B is None else gradus.from_numpy(B), **keywords)
        theirs = torch.lobpcg(torch.from_numpy(matrix), B=None if B is None else torch.from_numpy(B), **keywords)
        assert E.shape == tuple(theirs[0].shape) and X.shape == tuple(theirs[1].shape)
        x, b = X.numpy(), np.broadcast_to(np.eye(shape[-1]), shape) if B is None else B
        np.testing.assert_allclose(E.numpy(), eigenvalues(matrix, b, x.shape[-1], largest is not False), rtol=1e-6)
        np.testing.assert_allclose(matrix @ x, (b @ x) * E.numpy()[..., None, :], atol=1e-5 * np.abs(matrix).max())
        np.testing.assert_allclose(np.swapaxes(x, -1, -2) @ b @ x, np.broadcast_to(np.eye(x.shape[-1]), (*shape[:-2], x.shape[-1], x.shape[-1])), atol=1e-8)


def test_initial_vectors_preconditioner_and_niter():
    matrix = gradus.from_numpy(positive(2, (30, 30)))
    wanted = gradus.linalg.eigvalsh(matrix)[:2]
    E, _ = gradus.lobpcg(matrix, X=gradus.eye(30, 2, dtype=gradus.float64), iK=matrix.inverse(), largest=False, tol=1e-10)
    np.testing.assert_allclose(E.numpy(), wanted.numpy(), rtol=1e-8)
    E, X = gradus.lobpcg(matrix, k=1, niter=1)
    assert (E <= gradus.linalg.eigvalsh(matrix)[-1] + 1e-9).all() and X.shape == (30, 1)
    assert gradus.lobpcg(gradus.eye(9, device="meta"), k=2)[1].shape == (9, 2)


@pytest.mark.parametrize("largest", [True, False])
def test_derivatives_of_lobpcg(largest):
    matrix = positive(3, (9, 9))

    def values(module):
        a = module.tensor(matrix.tolist(), dtype=module.float64).requires_grad_()
        module.manual_seed(3)
        E, X = module.lobpcg(a, k=2, largest=largest, tol=1e-12)
        weight = module.arange(18.0, dtype=module.float64).reshape(9, 2)
        (E.sum() + (X.abs() * weight).sum()).backward()
        return a.grad

    np.testing.assert_allclose(values(gradus).numpy(), values(torch).numpy(), atol=1e-5)

    def sizes(a):
        gradus.manual_seed(3)
        E, X = gradus.lobpcg(a, k=2, largest=largest, tol=1e-13)
        return E, X.abs()

    assert gradus.autograd.gradcheck(sizes, (gradus.from_numpy(matrix).requires_grad_(),), atol=1e-4)


@pytest.mark.parametrize("call, text", [
    (lambda m, a: m.lobpcg(a[:3]), "A must be square"), (lambda m, a: m.lobpcg(a, B=a[:3, :3]), "A and B must have same shape"), (lambda m, a: m.lobpcg(a, X=a[:5, :2]), "X shape mismatch"),
    (lambda m, a: m.lobpcg(a, k=5), "is smaller than 3 x the number of requested eigenpairs"),
])
def test_errors_are_those_of_pytorch(call, text):
    for module in (torch, gradus):
        with pytest.raises(Exception, match=text):
            call(module, module.eye(12))


def test_unsupported_arguments_are_refused():
    a = gradus.eye(12)
    with pytest.raises(NotImplementedError, match="tracker"):
        gradus.lobpcg(a, tracker=print)
    with pytest.raises(NotImplementedError, match="ortho"):
        gradus.lobpcg(a, ortho_iparams={"ortho_i_max": 2})
    with pytest.raises(ValueError, match="does not support backward with B"):
        gradus.lobpcg(a.requires_grad_(), B=gradus.eye(12))
    with pytest.raises(RuntimeError, match="expected A of dtype float32 or float64"):
        gradus.lobpcg(gradus.eye(12, dtype=gradus.complex64))
    with pytest.raises(ValueError, match="must be positive"):
        gradus.lobpcg(gradus.eye(12), k=0)
