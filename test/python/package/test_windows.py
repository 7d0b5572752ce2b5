"""Compares unfold and fold, pixel shuffling, fractional pooling, max unpooling and grid sampling with PyTorch."""
import random

import pytest
from nn_programs import attempt, same


def gradients(t, function, *inputs):
    """Returns [result y of the function, strides of y, name of its grad_fn, gradients of a loss, second derivatives]."""
    inputs = [x.detach().requires_grad_() for x in inputs]
    y = function(*inputs)
    grads = t.autograd.grad((y * y).sum(), inputs, create_graph=True)
    second = t.autograd.grad(sum((g * g).sum() for g in grads), inputs)
    return [y, y.stride(), y.grad_fn.name(), list(grads), list(second)]


@same
def test_unfold_and_fold(t):
    F, draw = t.nn.functional, random.Random(0)
    for _ in range(30):
        kernel, dilation, padding, stride = ([draw.randint(low, high) for _ in range(2)] for low, high in ((1, 3), (1, 2), (0, 2), (1, 3)))
        size = [draw.randint(5, 9) for _ in range(2)]
        x = t.randn(*draw.choice([(2, 3), (3,)]), *size, dtype=t.float64)
        columns = F.unfold(x, kernel, dilation, padding, stride)
        yield gradients(t, lambda x: F.unfold(x, kernel, dilation, padding, stride), x)
        yield gradients(t, lambda c: F.fold(c, size, kernel, dilation, padding, stride), columns)
    for layer in (t.nn.Unfold(2, padding=1), t.nn.Fold((4, 5), (2, 2), stride=1)):
        yield repr(layer), sorted(key for key in vars(layer) if not key.startswith("_"))


@same
def test_errors_of_unfold_and_fold(t):
    F, x, columns = t.nn.functional, t.ones(1, 2, 5, 5), t.ones(1, 8, 16)
    for args in ((0,), (2, 0), (2, 1, -1), (2, 1, 0, 0), (9,), ((2, 2, 2),)):
        yield attempt(F.unfold, x, *args)
    for args in ((5, 0), (5, 2, 0), (5, 2, 1, -1), (5, 2, 1, 0, 0), (6, 2), (5, 3), ((5, 5, 5), 2), (0, 2), (-1, 2)):
        yield attempt(F.fold, columns, *args)
    for size in ((2, 0, 5, 5), (2, 5, 0, 5), (1, 1, 1, 1, 1)):
        yield attempt(F.unfold, t.ones(*size), 2), attempt(F.fold, t.ones(*size[:2], 0), 5, 2)
    yield F.unfold(t.ones(0, 2, 5, 5), 2).shape, [attempt(F.unfold, x, *args)[0] for args in ((2, 2**62),)]


@same
def test_pixel_shuffle_and_channel_shuffle(t):
    for name, size, number in (("pixel_shuffle", (2, 8, 3, 2), 2), ("pixel_shuffle", (18, 1, 2), 3), ("pixel_unshuffle", (1, 2, 4, 6), 2),
                               ("channel_shuffle", (2, 6, 2, 3), 3), ("channel_shuffle", (2, 6, 4), 2)):
        function, x = getattr(t, name), t.randn(*size, dtype=t.float64)
        yield gradients(t, lambda x: function(x, number), x), getattr(t.nn.functional, name)(x, number)
        yield [attempt(function, x, n)[0] for n in (0, -1, 7, 2**40)], attempt(function, t.ones(2, 8), 2)
        yield t.vmap(lambda x: function(x, number))(t.stack([x, x + 1]))
        if len(size) == 4:
            yield function(x.to(memory_format=t.channels_last), number).stride()


@pytest.mark.parametrize("dim", [2, 3])
def test_fractional_max_pool(dim):
    @same
    def program(t):
        pool, sizes = getattr(t.nn.functional, f"fractional_max_pool{dim}d"), (9, 8, 7)[:dim]
        for lead in ((2, 3), (3,)):
            x = t.randn(*lead, *sizes, dtype=t.float64)
            for options in ({"output_size": 4}, {"output_ratio": (0.5,) * dim}, {"output_size": (3, 4, 2)[:dim]}, {"output_size": 1}):
                yield pool(x, 2, return_indices=True, **options), gradients(t, lambda x: pool(x, (2, 3, 1)[:dim], **options), x)
        layer = getattr(t.nn, f"FractionalMaxPool{dim}d")(2, output_ratio=(0.6,) * dim, return_indices=True)
        yield repr(layer), layer(x), [attempt(pool, x, 2, output_size=n)[0] for n in (9, 2**40)], attempt(pool, x, 2)
        yield attempt(type(layer), 2), attempt(type(layer), 2, 3, 0.5), attempt(type(layer), 2, output_ratio=1.5)

    program()


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_max_unpool(dim):
    @same
    def program(t):
        F = t.nn.functional
        pool, unpool = getattr(F, f"max_pool{dim}d"), getattr(F, f"max_unpool{dim}d")
        for lead in ((2, 3), (3,)):
            x = t.randn(*lead, *(9, 8, 7)[:dim], dtype=t.float64)
            for args in ((2,), (3, 2, 1)):
                y, places = pool(x, *args, return_indices=True)
                yield gradients(t, lambda y: unpool(y, places, *args, output_size=x.shape[-dim:]), y)
        layer = getattr(t.nn, f"MaxUnpool{dim}d")(3, 2, 1)
        yield repr(layer), layer(y, places, x.shape[-dim:]), attempt(unpool, y, places, 3, 2, 1, (1,) * dim), attempt(unpool, y, places.int(), 2)[0]
        yield attempt(unpool, y, places + 10**6, 3, 2, 1)[0], attempt(unpool, y, places - 10**6, 3, 2, 1)[0]
        x, nothing = t.ones(2, 3, *[1] * dim, requires_grad=True), t.ones(2, 3, *[0] * dim)
        empty = unpool(x, x.long(), 2, 2, 1)
        yield empty, attempt(t.autograd.grad, empty.sum(), x)
        for size in (None, (-1,) * dim):
            yield attempt(unpool, nothing, nothing.long(), 2, 2, 1, size), attempt(unpool, nothing, nothing.long(), 2, 2, 0, size)[0]

    program()


@pytest.mark.parametrize("dim, mode", [(2, "bilinear"), (2, "nearest"), (2, "bicubic"), (3, "bilinear"), (3, "nearest")])
def test_grid_sample(dim, mode):
    @same(tolerance=1e-9)
    def program(t):
        draw = random.Random(dim)
        for padding in ("zeros", "border", "reflection"):
            for align_corners in (True, False):
                for _ in range(5):
                    x = t.randn(2, draw.randint(1, 3), *(draw.randint(1, 7) for _ in range(dim)), dtype=t.float64).requires_grad_()
                    grid = (t.rand(2, *(draw.randint(1, 9) for _ in range(dim)), dim, dtype=t.float64) * 4 - 2).requires_grad_()
                    y = t.nn.functional.grid_sample(x, grid, mode, padding, align_corners)
                    yield y, y.stride(), y.grad_fn.name(), t.autograd.grad((y * y).sum(), (x, grid))

    program()


@same
def test_errors_of_grid_sample(t):
    F, x, grid = t.nn.functional, t.ones(1, 1, 3, 3), t.zeros(1, 2, 2, 2)
    yield attempt(F.grid_sample, x, grid), attempt(F.grid_sample, x, grid, "other"), attempt(F.grid_sample, x, grid, padding_mode="other")
    for a, b in ((x, grid[0]), (x, t.zeros(2, 2, 2, 2)), (x, t.zeros(1, 2, 2, 3)), (x[:, :, :0], grid), (x, grid.double()), (t.ones(1, 1, 2, 2, 2), grid)):
        yield attempt(F.grid_sample, a, b, align_corners=True)[0]
    yield attempt(F.grid_sample, t.ones(1, 1, 2, 2, 2), t.zeros(1, 1, 1, 1, 3), "bicubic", "zeros", True)
    for value in (float("nan"), float("inf"), 1e30):
        yield F.grid_sample(x, t.full((1, 1, 1, 2), value), align_corners=False)


@same
def test_affine_grid(t):
    F = t.nn.functional
    for size in ((2, 1, 3, 4), (1, 1, 1, 5), (2, 3, 2, 3, 4)):
        for align_corners in (True, False):
            theta = t.randn(size[0], len(size) - 2, len(size) - 1, dtype=t.float64)
            yield attempt(gradients, t, lambda theta: F.affine_grid(theta, size, align_corners), theta)
    yield attempt(F.affine_grid, theta, (1, 1, 2)), attempt(F.affine_grid, theta, (2, 1, 2, 2), False), attempt(F.affine_grid, theta, (2, 1, 0, 2, 2), False)
    yield attempt(F.affine_grid, theta.long(), (2, 1, 2, 2, 2), False)
