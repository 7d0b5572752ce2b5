"""Calls operators with tensors that are expanded, transposed, narrowed or sliced with steps, of sizes up to 40. Results and gradients must agree with
those of contiguous copies. Many kernels choose how to read a tensor by its sizes and strides, so the sizes are drawn at random."""
import math
import random

import gradus
import pytest
from gradus.nn import functional as F


def tensor(draw, *sizes):
    """Returns a contiguous tensor of small integers, of which sums and products in float32 are exact."""
    return gradus.tensor([draw.randint(-4, 4) for _ in range(math.prod(sizes))], dtype=gradus.float32).reshape(sizes)


def expanded(draw, *sizes):
    return tensor(draw, *(1 if draw.random() < 0.5 else size for size in sizes)).expand(sizes)


def permuted(draw, *sizes):
    order = draw.sample(range(len(sizes)), len(sizes))
    return tensor(draw, *(sizes[d] for d in order)).permute([order.index(d) for d in range(len(sizes))])


def narrowed(draw, *sizes):
    left = [draw.randint(0, 3) for _ in sizes]
    x = tensor(draw, *(size + more for size, more in zip(sizes, left)))
    return x[tuple(slice(more, more + size) for size, more in zip(sizes, left))]


def sliced(draw, *sizes):
    steps = [draw.randint(1, 3) for _ in sizes]
    return tensor(draw, *(size * step for size, step in zip(sizes, steps)))[tuple(slice(None, None, step) for step in steps)]


def laid_out(draw, *sizes):
    return draw.choice((expanded, expanded, permuted, narrowed, sliced))(draw, *sizes)


def size(draw, most=40):
    return draw.choice((1, 1, 2, 3, draw.randint(1, most), draw.randint(1, most)))


def image(draw):
    """Returns the sizes of a batch of images: samples, channels, and one to three spatial sizes."""
    n = draw.randint(1, 3)
    return [size(draw, 20), size(draw, 9), *(size(draw, (70, 24, 8)[n - 1]) for _ in range(n))]


def kernel(draw, sizes):
    return [draw.randint(1, min(3, size)) for size in sizes[2:]]


def of_windows(name):
    """Returns a function that draws the arguments of F.{name}1d, 2d or 3d, and returns (sizes of the tensors, function of the tensors)."""
    def drawn(draw):
        sizes = image(draw)
        function, n = getattr(F, f"{name}{len(sizes) - 2}d"), sizes[1]
        window, groups = kernel(draw, sizes), draw.choice((1, n))
        if name == "conv":
            return [sizes, [groups * draw.randint(1, 5), n // groups, *window]], lambda x, w: function(x, w, groups=groups)
        if name == "conv_transpose":
            return [sizes, [n, draw.randint(1, 5), *window]], lambda x, w: function(x, w, groups=groups)
        return [sizes], lambda x: function(x, window)
    return drawn


def of_channels(function):
    def drawn(draw):
        sizes = [2, *image(draw)[1:]]  # two samples, because the statistics of a single number are refused
        return [sizes, sizes[1:2], sizes[1:2]], function
    return drawn


def along_a_dim(function):
    def drawn(draw):
        sizes = image(draw)
        dim = draw.randrange(len(sizes))
        return [sizes], lambda x: function(x, dim)
    return drawn


def of_matrices(draw):
    n, rows, columns, inner = size(draw, 6), size(draw), size(draw), size(draw)
    return [[n, rows, inner], [2, 1, inner, columns]], gradus.matmul


def linear(draw):
    sizes, outer = image(draw), size(draw)
    return [sizes, [outer, sizes[-1]], [outer]], F.linear


def attention(draw):
    n, heads, queries, keys, width = size(draw, 4), size(draw, 4), size(draw), size(draw), size(draw, 20)
    return ([[n, heads, queries, width], [n, heads, keys, width], [n, heads, keys, width], [queries, keys]],
            lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=0.1))


def resampled(draw):
    sizes = image(draw)
    mode, result = ("linear", "bilinear", "trilinear")[len(sizes) - 3], [draw.randint(1, size + 5) for size in sizes[2:]]
    return [sizes], lambda x: F.interpolate(x, size=result, mode=mode)


def grid(draw):
    return [[2, size(draw, 9), size(draw), size(draw)], [2, 5, 4, 2]], lambda x, points: F.grid_sample(x, points / 4, align_corners=False)


CALLS = {
    **{name: of_windows(name) for name in ("conv", "conv_transpose", "max_pool", "avg_pool", "adaptive_max_pool", "adaptive_avg_pool")},
    "batch_norm": of_channels(lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True, eps=1.0)),
    "group_norm": of_channels(lambda x, w, b: F.group_norm(x, 1, w, b, eps=1.0)),
    "softmax": along_a_dim(gradus.softmax),
    "cumsum": along_a_dim(gradus.cumsum),
    "logsumexp": along_a_dim(gradus.logsumexp),
    "sort": along_a_dim(lambda x, dim: x.sort(dim, stable=True).values),
    "median": along_a_dim(lambda x, dim: x.median(dim).values),
    "var": along_a_dim(lambda x, dim: x.var(dim, correction=0)),
    "matmul": of_matrices, "linear": linear, "attention": attention, "interpolate": resampled, "grid_sample": grid,
}


@pytest.mark.parametrize("name", CALLS)
def test_results_and_gradients_do_not_depend_on_the_layout(name):
    for seed in range(150):
        draw = random.Random(f"{name} {seed}")
        sizes, function = CALLS[name](draw)
        given = [laid_out(draw, *each) for each in sizes]
        outcomes, gradient = [], None
        for tensors in (given, [x.contiguous() for x in given]):
            leaves = [x.detach().requires_grad_() for x in tensors]
            result = function(*leaves)
            gradient = laid_out(draw, *result.shape) if gradient is None else gradient.contiguous()
            outcomes.append([result, *gradus.autograd.grad(result, leaves, gradient)])
        for got, wanted in zip(*outcomes):
            gradus.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4 * (1 + wanted.abs().max().item()), msg=lambda text: f"{name}, seed {seed}: {text}")
