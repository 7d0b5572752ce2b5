"""Compares the gradient kernel of cdist with NumPy, which computes all differences in float64."""
import numpy
import pytest

import gradus as torch

INF = float("inf")
SIZES = [(1, 1, 1), (3, 5, 2), (16, 64, 4), (17, 65, 7), (33, 130, 129), (2, 3, 260)]


def wanted(a, b, grad, p):
    """Returns the gradients of sum(grad * cdist(a, b, p)) with respect to a and b, which are float64 arrays."""
    d = a[..., :, None, :] - b[..., None, :, :]
    far = numpy.abs(d).max(-1) if p == INF else (numpy.abs(d) ** p).sum(-1) ** (1 / p)
    far = far[..., None]
    with numpy.errstate(all="ignore"):
        slope = numpy.sign(d) * (numpy.abs(d) == far) if p == INF else numpy.sign(d) * (numpy.abs(d) / far) ** (p - 1)
    each = grad[..., None] * numpy.where(d == 0, 0, slope)
    return each.sum(-2), -each.sum(-3)


def gradients(a, b, grad, p):
    a, b = a.requires_grad_(), b.requires_grad_()
    mode = "donot_use_mm_for_euclid_dist"
    return torch.autograd.grad(torch.cdist(a, b, p=p, compute_mode=mode), (a, b), grad)


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 2.5, 3, INF])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_gradients_of_cdist_agree_with_numpy(sizes, dtype, p):
    rows, others, width = sizes
    draw = numpy.random.default_rng(rows * width)
    kind = getattr(torch, dtype)
    a, b, grad = (torch.tensor(draw.standard_normal(s)).to(kind) for s in ((2, rows, width), (2, others, width), (2, rows, others)))
    a, b = a / 16, b / 16  # the division keeps all distances in the range of float16
    a[:, 0], grad[0, 0, 0] = b[:, 0], 0.0  # a distance of 0
    exact = wanted(*(each.double().numpy() for each in (a, b, grad)), p)
    eps, most = torch.finfo(kind).eps, numpy.abs(exact[0]).max() + numpy.abs(exact[1]).max()
    for ours, right in zip(gradients(a, b, grad, p), exact):
        assert ours.dtype == kind
        numpy.testing.assert_allclose(ours.double().numpy(), right, rtol=16 * eps, atol=8 * eps * max(most, 1))


def test_gradients_of_cdist_with_broadcast_batches_and_strides():
    draw = numpy.random.default_rng(1)
    a, b = torch.tensor(draw.standard_normal((3, 1, 4, 20))).transpose(-1, -2), torch.tensor(draw.standard_normal((2, 9, 4)))
    grad = torch.tensor(draw.standard_normal((9, 20, 3, 2))).permute(2, 3, 1, 0)
    for p in (1, 2, 3, INF):
        exact = wanted(a.numpy(), b.numpy(), grad.numpy(), p)
        ours = gradients(a.detach(), b.detach(), grad, p)
        numpy.testing.assert_allclose(ours[0].numpy(), exact[0].sum(1, keepdims=True), rtol=1e-13, atol=1e-13)
        numpy.testing.assert_allclose(ours[1].numpy(), exact[1].sum(0), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_of_cdist_at_tiny_distances(dtype):
    kind = getattr(torch, dtype)
    tiny = torch.finfo(kind).tiny
    a, b = torch.tensor([[0.0, 3 * tiny], [0.0, 0.0]], dtype=kind), torch.tensor([[4 * tiny, 0.0]], dtype=kind)
    far = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
    # In float64 the squares of the differences underflow for p = 2, so the distances are checked for the other dtypes only.
    assert torch.equal(far, torch.tensor([[5 * tiny], [4 * tiny]], dtype=kind)) or dtype == "float64"
    ours = gradients(a, b, torch.tensor([[1e5], [1e5]], dtype=kind), 2)[0]
    right = torch.tensor([[-8e4, 6e4], [-1e5, 0.0]], dtype=kind)
    assert torch.allclose(ours, right if dtype == "float32" else torch.zeros(2, 2, dtype=kind))


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, INF])
def test_nan_propagates_to_gradients_of_cdist(p):
    a, b = torch.tensor([[float("nan"), 1.0], [0.0, 2.0]]), torch.tensor([[3.0, 0.5]])
    first, second = gradients(a, b, torch.ones(2, 1), p)
    assert torch.isnan(first).tolist() == [[True, p not in (1, INF)], [False, False]]
    assert torch.isnan(second)[0, 0].item()


def test_gradients_of_cdist_do_not_depend_on_the_number_of_threads():
    draw = numpy.random.default_rng(2)
    a, b, grad = (torch.tensor(draw.standard_normal(s)).float() for s in ((700, 9), (90, 9), (700, 90)))
    before = torch.get_num_threads()
    try:
        found = []
        for n in (1, 2, 5):
            torch.set_num_threads(n)
            found.append([each.clone() for p in (1, 2, 2.5, INF) for each in gradients(a, b, grad, p)])
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(x, y) for other in found[1:] for x, y in zip(found[0], other))


def test_cdist_backward_refuses_wrong_sizes():
    x, y, grad = torch.ones(3, 2), torch.ones(4, 2), torch.ones(3, 4)
    assert torch._C.nn._cdist_backward(grad, x, y, 1.0, grad).tolist() == [[0.0, 0.0]] * 3
    for wrong in ((grad.T, x, y, 1.0, grad), (grad, x, y, 1.0, grad[:, :3])):
        with pytest.raises(RuntimeError, match="the distances have sizes"):
            torch._C.nn._cdist_backward(*wrong)
    with pytest.raises(RuntimeError, match="non-negative p"):
        torch._C.nn._cdist_backward(grad, x, y, -1.0, grad)
