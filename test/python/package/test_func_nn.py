"""Tests per-sample gradients (func.vmap of func.grad) of neural-network operators. Each choice of batched arguments is compared with a PyTorch loop
over the samples."""
import itertools
import warnings

import pytest
from both import gradus, needs_torch
from oracle import torch as oracle

BATCH = 3


def numbers(torch, *sizes, step=0.37):
    """Returns distinct numbers in [-1, 1]."""
    n = 1
    for size in sizes:
        n *= size
    return torch.sin(torch.arange(n, dtype=torch.float64) * step + 0.1).reshape(sizes)


def integers(torch, *sizes, least=0, most=3):
    return (numbers(torch, *sizes, step=1.7) * 100).long().remainder(most - least) + least


def places(torch, *sizes, image):
    """Returns an integer tensor of the shape `sizes` whose planes (last two dimensions) contain distinct indices from 0 to image - 1."""
    planes = [numbers(torch, image, step=0.7 + i).argsort()[:sizes[-2] * sizes[-1]] for i in range(sizes[0] * sizes[1])]
    return torch.stack(planes).reshape(sizes)


def nn(torch):
    return torch.nn.functional


# Name -> (function, function that makes the arguments of one sample). The function is differentiated with respect to the first argument.
FUNCTIONS = {
    "grid_sample": (lambda t, x, grid: nn(t).grid_sample(x, grid, align_corners=False), lambda t: (numbers(t, 2, 3, 4, 5), numbers(t, 2, 3, 2, 2))),
    "grid_sample, to the grid": (lambda t, grid, x: nn(t).grid_sample(x, grid, padding_mode="border", align_corners=True), lambda t: (numbers(t, 2, 3, 2, 2), numbers(t, 2, 3, 4, 5))),
    "grid_sample in 3d": (lambda t, x, grid: nn(t).grid_sample(x, grid, align_corners=True), lambda t: (numbers(t, 1, 2, 3, 4, 2), numbers(t, 1, 2, 2, 2, 3))),
    "affine_grid": (lambda t, theta: nn(t).affine_grid(theta, [2, 1, 3, 4], align_corners=False), lambda t: (numbers(t, 2, 2, 3),)),
    "pdist": (lambda t, x: t.pdist(x, 1.5), lambda t: (numbers(t, 5, 3),)),
    "pdist, the largest": (lambda t, x: t.pdist(x, float("inf")), lambda t: (numbers(t, 4, 3),)),
    "multilabel_margin_loss": (lambda t, x, y: nn(t).multilabel_margin_loss(x, y), lambda t: (numbers(t, 3, 4), integers(t, 3, 4, least=-1, most=4))),
    "multilabel_margin_loss of a vector": (lambda t, x, y: nn(t).multilabel_margin_loss(x, y), lambda t: (numbers(t, 4), integers(t, 4, least=-1, most=4))),
    "ctc_loss": (lambda t, x, y: nn(t).ctc_loss(x.log_softmax(-1), y, (6, 5), (3, 2), reduction="none"), lambda t: (numbers(t, 6, 2, 4), integers(t, 2, 3, least=1, most=4))),
    "ctc_loss of labels in a row": (lambda t, x, y: nn(t).ctc_loss(x.log_softmax(-1), y, (6, 5), (3, 2)), lambda t: (numbers(t, 6, 2, 4), integers(t, 5, least=1, most=4))),
    "batch_norm": (lambda t, x, w, b: nn(t).batch_norm(x, None, None, w, b, training=True), lambda t: (numbers(t, 4, 3, 2), numbers(t, 3), numbers(t, 3, step=2))),
    "batch_norm, given statistics": (lambda t, x, w: nn(t).batch_norm(x, t.tensor([0.5, 0.1], dtype=t.float64), t.tensor([0.5, 2], dtype=t.float64), w), lambda t: (numbers(t, 4, 2), numbers(t, 2))),
    "instance_norm": (lambda t, x: nn(t).instance_norm(x), lambda t: (numbers(t, 2, 3, 5),)),
    "group_norm": (lambda t, x, w: nn(t).group_norm(x, 2, w), lambda t: (numbers(t, 2, 4, 3), numbers(t, 4))),
    "fractional_max_pool2d": (lambda t, x, u: nn(t).fractional_max_pool2d(x, 2, (3, 2), _random_samples=u), lambda t: (numbers(t, 2, 3, 6, 5), numbers(t, 2, 3, 2).abs() * 0.9)),
    "fractional_max_pool3d": (lambda t, x, u: nn(t).fractional_max_pool3d(x, 2, (3, 2, 2), _random_samples=u), lambda t: (numbers(t, 3, 6, 5, 4), numbers(t, 1, 3, 3).abs() * 0.9)),
    "max_unpool2d": (lambda t, x, i: nn(t).max_unpool2d(x, i, 2), lambda t: (numbers(t, 2, 3, 2, 2), places(t, 2, 3, 2, 2, image=16))),
    "max_unpool3d": (lambda t, x, i: nn(t).max_unpool3d(x, i, (1, 2, 2)), lambda t: (numbers(t, 2, 1, 2, 2), places(t, 2, 1, 2, 2, image=16))),
    "max_pool2d": (lambda t, x: nn(t).max_pool2d(x, 2, 1, 1), lambda t: (numbers(t, 2, 3, 4),)),
    "adaptive_max_pool3d": (lambda t, x: nn(t).adaptive_max_pool3d(x, 2), lambda t: (numbers(t, 1, 2, 3, 4, 3),)),
    "adaptive_avg_pool2d": (lambda t, x: nn(t).adaptive_avg_pool2d(x, (2, 3)), lambda t: (numbers(t, 2, 5, 4),)),
    "interpolate": (lambda t, x: nn(t).interpolate(x, (3, 7), mode="bicubic", antialias=True), lambda t: (numbers(t, 1, 2, 5, 4),)),
}


def samples_of(torch, arguments, batched):
    """Returns (arguments, [arguments of each sample alone]). The arguments that `batched` chooses are batches of BATCH different tensors."""
    given = arguments(torch)
    several = [torch.stack([a.flatten().roll(i).reshape(a.shape) for i in range(BATCH)]) if chosen else a for a, chosen in zip(given, batched)]
    return several, [[a[i].clone() if chosen else a.clone() for a, chosen in zip(several, batched)] for i in range(BATCH)]


def weighed(torch, function):
    """Returns a function that calls `function` and returns a weighted sum of the result's elements, each with its own weight."""
    def scalar(*arguments):
        result = function(torch, *arguments)
        return (result * (torch.arange(result.numel(), dtype=result.dtype).reshape(result.shape) + 1).cos()).sum()
    return scalar


@pytest.mark.parametrize("name", FUNCTIONS)
def test_per_sample_gradients_agree_with_a_loop(name):
    needs_torch()
    function, arguments = FUNCTIONS[name]
    for batched in itertools.product((True, False), repeat=len(arguments(gradus))):
        if not any(batched):
            continue
        several, _ = samples_of(gradus, arguments, batched)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ours = gradus.func.vmap(gradus.func.grad_and_value(weighed(gradus, function)), in_dims=tuple(0 if chosen else None for chosen in batched))(*several)
        for i, own in enumerate(samples_of(oracle, arguments, batched)[1]):
            own[0].requires_grad_()
            value = weighed(oracle, function)(*own)
            gradient, = oracle.autograd.grad(value, own[0])
            assert ours[1][i].item() == pytest.approx(value.item(), rel=1e-9, abs=1e-10), (batched, i)
            assert ours[0][i].flatten().tolist() == pytest.approx(gradient.flatten().tolist(), rel=1e-7, abs=1e-9), (batched, i)


ONCE = ("ctc_loss", "grid_sample", "pdist", "multilabel_margin_loss")  # operators of which PyTorch has no second derivative


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if not name.startswith(ONCE)])
def test_hessians_agree_with_second_derivatives_of_pytorch(name):
    """func.hessian applies vmap to forward-mode AD of the gradient, so it tests how the operators that compute gradients work inside of vmap. The
    Hessian is compared with PyTorch's second derivatives, computed row by row."""
    needs_torch()
    function, arguments = FUNCTIONS[name]
    given, theirs = arguments(gradus), arguments(oracle)
    x = theirs[0].detach().requires_grad_()
    gradient, = oracle.autograd.grad(weighed(oracle, function)(x, *theirs[1:]), x, create_graph=True)
    rows = [oracle.autograd.grad(one, x, retain_graph=True, allow_unused=True)[0] for one in gradient.flatten()] if gradient.requires_grad else []
    wanted = [number for row in rows for number in ([0.0] * x.numel() if row is None else row.flatten().tolist())]
    ours = gradus.func.hessian(lambda y: weighed(gradus, function)(y, *given[1:]))(given[0]).flatten().tolist()
    assert ours == pytest.approx(wanted or [0.0] * len(ours), rel=1e-6, abs=1e-8)
