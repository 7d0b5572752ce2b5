"""Compares norms, ranks, pseudo-inverses and least squares with PyTorch: values, strides, derivatives, errors."""
import numpy as np
import pytest

from nn_programs import gradus
from oracle import torch
from test_spectral import array, error, random, tensor

INF = float("inf")


def compare(function, inputs, dtype, second=True):
    found = []
    for module in (gradus, torch):
        given = [tensor(module, a, dtype).requires_grad_() for a in inputs]
        results = function(module, *given)
        results = [results] if isinstance(results, module.Tensor) else list(results)
        total = sum((r.abs() ** 2).sum() for r in results if r.requires_grad and r.numel())
        first = module.autograd.grad(total, given, create_graph=second) if isinstance(total, module.Tensor) else []
        more = module.autograd.grad(sum((g.abs() ** 2).sum() for g in first), given) if second and first else []
        strides = [[stride for size, stride in zip(r.shape, r.stride()) if size > 1 and r.numel()] for r in results]
        found.append(([(tuple(r.shape), s, str(r.dtype)) for r, s in zip(results, strides)], [array(t) for t in (*results, *first, *more)]))
    assert found[0][0] == found[1][0]
    for ours, theirs in zip(found[0][1], found[1][1]):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-8 * max(1.0, np.abs(theirs).max(initial=0)))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, INF, -INF])
@pytest.mark.parametrize("shape, options", [((3, 4), {}), ((4, 3), {"keepdim": True}), ((2, 3, 4), {"dim": (2, 0)}), ((2, 3, 4), {"dim": (0, -1), "keepdim": True}), ((3, 3), {"dim": (1, 0)})])
def test_matrix_norm(shape, options, order, dtype):
    compare(lambda m, a: m.linalg.matrix_norm(a, order, **options), [random(0, shape, dtype)], dtype)
    if "dim" in options or len(shape) == 2:
        compare(lambda m, a: m.linalg.norm(a, order, **options), [random(0, shape, dtype)], dtype, second=False)


@pytest.mark.parametrize("order", [3, 5, 10, 0.5, -2])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex32"])
def test_vector_norm_of_half_types_with_large_orders(order, dtype):
    """The norm fits into float16, although an intermediate power, 12 ** 10, does not."""
    norms = [module.linalg.vector_norm(module.tensor([10.0, -7.25, 12.0]).to(getattr(module, dtype)), order).item() for module in (gradus, torch)]
    np.testing.assert_allclose(*norms, rtol=1e-2 if dtype == "bfloat16" else 1e-3)


@pytest.mark.parametrize("order", [1, 2, 3, 0.5, -1, INF, -INF])
@pytest.mark.parametrize("options", [{}, {"dim": 1}, {"dim": (0, 1), "keepdim": True}, {"dtype": "float64"}])
def test_vector_norm(options, order):
    named = lambda m: options if "dtype" not in options else {"dtype": m.float64}  # noqa: E731
    compare(lambda m, a: m.linalg.vector_norm(a, order, **named(m)), [random(1, (3, 4), "float64")], "float64", second=False)


@pytest.mark.parametrize("call", ["linalg.vector_norm(x, 0)", "linalg.vector_norm(x, 0, dim=0, keepdim=True)", "norm(x, 0)", "norm(x, p=0, dim=0)", "dist(x, x.detach(), 0)",
                                  "nn.functional.pairwise_distance(x, x.detach(), 0)", "linalg.vector_norm(2 * x, 0) + x.sum()"])
def test_a_norm_of_order_0_passes_on_no_gradient_and_a_tangent_of_zeros(call):
    def outcome(module):
        x = module.tensor([1.0, 0.0, 2.0], requires_grad=True)
        eval(f"module.{call}").sum().backward()
        with module.autograd.forward_ad.dual_level():
            grad, x = x.grad, module.autograd.forward_ad.make_dual(x.detach(), module.ones(3))
            tangent = module.autograd.forward_ad.unpack_dual(eval(f"module.{call}")).tangent
        return grad if grad is None else grad.tolist(), tangent.tolist()
    assert outcome(gradus) == outcome(torch)


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 3)])
def test_norm_with_p_nuc(shape):
    for options in ({}, {"dim": (0, -1)}, {"dim": (0, -1), "keepdim": True}):
        if "dim" in options or len(shape) == 2:
            compare(lambda m, a, options=options: m.norm(a, "nuc", **options), [random(2, shape, "float64")], "float64")


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5), (2, 4, 3), (0, 3), (3, 0), (2, 0, 3)])
def test_pinv(shape, dtype):
    a = random(3, shape, dtype)
    for options in ({}, {"rcond": 0.3}, {"atol": 0.5}, {"rtol": 0.3}, {"atol": 0.5, "rtol": 0.4}):
        compare(lambda m, x, options=options: m.linalg.pinv(x, **options), [a], dtype)
    compare(lambda m, x: m.pinverse(x), [a], dtype)
    if shape == (3, 3):
        compare(lambda m, x: m.linalg.pinv(x + x.mH, hermitian=True), [a], dtype)


def test_matrix_rank():
    a = random(4, (3, 4, 2), "float64") @ random(5, (3, 2, 4), "float64")
    for options in ({}, {"tol": 0.5}, {"atol": 0.5}, {"rtol": 0.2}, {"atol": 0.0}, {"atol": 0.5, "rtol": 0.1}, {"rtol": -0.5}, {"atol": -1.0, "rtol": -0.5}):
        ours, theirs = (module.linalg.matrix_rank(tensor(module, a, "float64"), **options) for module in (gradus, torch))
        assert ours.tolist() == theirs.tolist() and ours.dtype == gradus.int64
        ours, theirs = (module.linalg.matrix_rank(tensor(module, a @ a.transpose(0, 2, 1), "float64"), hermitian=True, **options) for module in (gradus, torch))
        assert ours.tolist() == theirs.tolist()
    for name in ("tol", "atol", "rtol"):
        ours, theirs = (module.linalg.matrix_rank(tensor(module, a, "float64"), **{name: module.tensor([0.1, 0.5, 2.0])}) for module in (gradus, torch))
        assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("shapes", [((5, 3), (5, 2)), ((3, 5), (3, 2)), ((3, 3), (3,)), ((2, 5, 3), (2, 5)), ((2, 5, 3), (1, 5, 2)), ((1, 3, 2), (4, 3, 2)), ((0, 4, 2), (0, 4, 1)), ((40, 30), (40, 2))])
def test_lstsq(shapes, driver, dtype):
    compare(lambda m, a, b: m.linalg.lstsq(a, b, driver=driver), [random(6, shapes[0], dtype), random(7, shapes[1], dtype)], dtype, second=max(shapes[0]) < 9)


def test_lstsq_of_rank_deficient_matrices():
    a = random(8, (6, 2), "float64") @ random(9, (2, 4), "float64")
    for driver in ("gelsy", "gelsd", "gelss"):
        compare(lambda m, x, b, driver=driver: tuple(t.detach() for t in m.linalg.lstsq(x, b, rcond=1e-10, driver=driver)), [a, random(10, (6, 2), "float64")], "float64", second=False)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shapes, rank", [(((40, 40), (40,)), 35), (((60, 40), (60, 3)), 30), (((40, 70), (40, 2)), 33), (((2, 30, 30), (2, 30, 4)), 20), (((2, 30, 30), (1, 30, 4)), 20), (((30, 30), (30, 1)), 0)])
def test_lstsq_of_large_rank_deficient_matrices(shapes, rank, dtype):
    *batch, m, n = shapes[0]
    a = random(11, (*batch, m, rank), dtype) @ random(12, (*batch, rank, n), dtype)
    compare(lambda t, x, b: t.linalg.lstsq(x, b), [a, random(13, shapes[1], dtype)], dtype, second=False)


def test_lstsq_rank_of_large_matrices_with_decaying_singular_values():
    """lstsq finds the rank by pivoted QR. The singular values decrease geometrically and rcond lies between two of them, so values far above rounding
    errors must count as 0."""
    u, v = (np.linalg.qr(random(k, (40, 40), "float64"))[0] for k in (14, 15))
    a, b = u * np.geomspace(1, 1e-6, 40) @ v, random(16, (40, 1), "float64")
    for low in (a, np.where(np.arange(40) == 7, a[:, :1], a)):
        for rcond in np.geomspace(2e-6, 0.5, 9):
            made = gradus.linalg.lstsq(tensor(gradus, low, "float64"), tensor(gradus, b, "float64"), rcond=float(rcond))
            values = np.linalg.svd(low, compute_uv=False)
            assert made.rank.item() == (values > rcond * values[0]).sum()
            np.testing.assert_allclose(array(made.solution), np.linalg.pinv(low, rcond=rcond) @ b, rtol=1e-7, atol=1e-7)


def test_vmap_and_jvp_of_lstsq_of_rank_deficient_matrices():
    a, b = random(16, (3, 30, 20), "float64") @ random(17, (3, 20, 30), "float64"), random(18, (3, 30, 2), "float64")
    found = []
    for module in (gradus, torch):
        x, y = tensor(module, a, "float64"), tensor(module, b, "float64")
        solve = lambda x, y, module=module: module.linalg.lstsq(x, y).solution  # noqa: E731
        found.append([array(t) for t in (module.vmap(solve)(x, y), *module.func.jvp(solve, (x, y), (x.cos(), y.sin())))])
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("value", [float("nan"), INF])
def test_lstsq_of_large_nonfinite_matrices_is_an_error(value):
    a = gradus.eye(40)
    a[3, 7] = value
    with pytest.raises(gradus.linalg.LinAlgError, match="non-finite values"):
        gradus.linalg.lstsq(a, gradus.ones(40, 1))


@pytest.mark.parametrize("call", [
    lambda m: m.linalg.vector_norm(m.ones(3, dtype=m.int64)), lambda m: m.linalg.vector_norm(m.ones(3), dtype=m.int64), lambda m: m.linalg.vector_norm(m.ones(3), dtype=m.complex64),
    lambda m: m.linalg.vector_norm(m.ones(0), INF), lambda m: m.linalg.vector_norm(m.ones(3), dtype=m.float16), lambda m: m.linalg.vector_norm(m.ones(3), 1j),
    lambda m: m.linalg.matrix_norm(m.ones(3)), lambda m: m.linalg.matrix_norm(m.ones(2, 3), 3), lambda m: m.linalg.matrix_norm(m.ones(2, 3), dim=(0,)),
    lambda m: m.linalg.matrix_norm(m.ones(2, 3), dim=(0, -2)), lambda m: m.linalg.matrix_norm(m.ones(2, 3, dtype=m.int64)), lambda m: m.linalg.matrix_norm(m.ones(2, 3), 2, dim=(0, 5)),
    lambda m: m.linalg.norm(m.ones(2, 2, 2), 2), lambda m: m.linalg.norm(m.ones(2, 2, 2), "fro"), lambda m: m.linalg.norm(m.ones(2, 2, 2), 2, dim=(0, 1, 2)), lambda m: m.linalg.norm(m.ones(2), "nuc"),
    lambda m: m.norm(m.ones(2, 2, 2), "nuc"), lambda m: m.norm(m.ones(3), "nuc"), lambda m: m.linalg.matrix_rank(m.ones(3)), lambda m: m.linalg.matrix_rank(m.ones(2, 3), hermitian=True),
    lambda m: m.linalg.matrix_rank(m.ones(2, 2), atol=1j * m.ones(2)), lambda m: m.linalg.matrix_rank(m.ones(2, 2, dtype=m.int64)), lambda m: m.linalg.pinv(m.ones(3)),
    lambda m: m.linalg.pinv(m.ones(2, 3, dtype=m.int64)), lambda m: m.linalg.pinv(m.ones(2, 3), hermitian=True), lambda m: m.linalg.pinv(m.ones(2, 3), rtol=1j * m.ones(1)),
    lambda m: m.linalg.pinv(m.full((2, 2), float("nan"))), lambda m: m.linalg.lstsq(m.ones(3), m.ones(3)), lambda m: m.linalg.lstsq(m.ones(3, 2), m.tensor(1.0)),
    lambda m: m.linalg.lstsq(m.ones(3, 2), m.ones(3).double()), lambda m: m.linalg.lstsq(m.ones(3, 2), m.ones(2, 3, 1)), lambda m: m.linalg.lstsq(m.ones(3, 2), m.ones(2, 1)),
    lambda m: m.linalg.lstsq(m.ones(3, 2), m.ones(3, 1), driver="x"), lambda m: m.linalg.lstsq(m.ones(3, 2, dtype=m.int64), m.ones(3, 1, dtype=m.int64))])
def test_errors_are_those_of_pytorch(call):
    assert error(gradus, call) == error(torch, call)
