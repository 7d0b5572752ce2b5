"""Compares pooling with PyTorch: values, indices, first and second derivatives, strides and errors, for random windows, dtypes and strides."""
import itertools
import random

import pytest
from nn_programs import attempt, same

SHAPES = {1: [(2, 3, 9), (3, 20), (1, 1, 40)], 2: [(2, 3, 9, 8), (3, 7, 21), (1, 20, 5, 6), (2, 2, 33, 40)],
          3: [(2, 3, 5, 6, 7), (3, 4, 5, 6), (1, 17, 3, 4, 5)]}
LAST = {4: "channels_last", 5: "channels_last_3d"}
DRAWS = 12


class Draw:
    """Draws random arguments, which are the same for both libraries."""

    def __init__(self, t, dim):
        self.t, self.random, self.dim = t, random.Random(dim), dim

    def number(self, low, high):
        return self.random.choice([self.random.randint(low, high), tuple(self.random.randint(low, high) for _ in range(self.dim))])

    def flag(self):
        return self.random.random() < 0.5

    def input(self, shape, dtype="float64"):
        x = (self.t.randn(*shape) * 4).to(getattr(self.t, dtype))
        last = self.flag() and len(shape) == self.dim + 2 and self.dim > 1
        return x.to(memory_format=getattr(self.t, LAST[len(shape)])) if last else x

    def inputs(self):
        for shape in SHAPES[self.dim]:
            for _ in range(DRAWS):
                yield self.input(shape)


def outcome(function, *args):
    """Returns the result of function(*args), or the name of the class of its exception."""
    result = attempt(function, *args)
    return result[0] if isinstance(result, tuple) and isinstance(result[0], str) else result


def pooled(t, pool, x):
    """Returns the results of a pooling function, their strides and, for floating dtypes, the first and second derivatives."""
    x = x.detach().requires_grad_(x.is_floating_point())
    found = pool(x)
    first, *indices = found if isinstance(found, tuple) else (found,)
    if not x.requires_grad:
        return [first, first.stride(), indices]
    grad, = t.autograd.grad((first * first).sum(), x, create_graph=True)
    return [first, first.stride(), indices, grad, *t.autograd.grad((grad * grad).sum(), x)]


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_max_pool(dim):
    @same
    def program(t):
        pool, draw = getattr(t.nn.functional, f"max_pool{dim}d"), Draw(t, dim)
        for x in draw.inputs():
            args = draw.number(1, 4), draw.random.choice([None, draw.number(1, 3)]), draw.number(0, 1), draw.number(1, 2), draw.flag()
            yield args, outcome(pooled, t, lambda x: pool(x, *args, return_indices=draw.flag()), x), outcome(pool, x, *args)

    program()


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_avg_pool(dim):
    @same
    def program(t):
        pool, draw = getattr(t.nn.functional, f"avg_pool{dim}d"), Draw(t, dim)
        for x in draw.inputs():
            args = [draw.number(1, 4), draw.random.choice([None, draw.number(1, 3)]), draw.number(0, 1), draw.flag(), draw.flag()]
            args += [draw.random.choice([None, 3, -2])] if dim > 1 else []
            yield args, outcome(pooled, t, lambda x: pool(x, *args), x)

    program()


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_adaptive_pools(dim):
    @same
    def program(t):
        F, draw = t.nn.functional, Draw(t, dim)
        largest, average = getattr(F, f"adaptive_max_pool{dim}d"), getattr(F, f"adaptive_avg_pool{dim}d")
        for x in draw.inputs():
            size = draw.random.choice([1, draw.number(1, 6), draw.number(1, 3)])
            yield size, attempt(pooled, t, lambda x: average(x, size), x)[:1], attempt(pooled, t, lambda x: largest(x, size, return_indices=True), x)
        if dim > 1:
            yield average(x, (None,) * (dim - 1) + (2,)), largest(x, (2,) + (None,) * (dim - 1))

    program()


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_adaptive_pools_without_elements(dim):
    @same
    def program(t):
        for name in ("adaptive_max_pool", "adaptive_avg_pool"):
            pool = getattr(t.nn.functional, f"{name}{dim}d")
            for lead in ((2, 3), (0, 3), (2, 0), (0, 0), (3,), (0,)):
                for sizes in itertools.product((0, 4), repeat=dim):
                    x = t.ones(lead + sizes)
                    yield lead, sizes, [attempt(pool, x, size if dim > 1 else size[0]) for size in itertools.product((0, 1, 2), repeat=dim)]
            x = t.ones(0, *[4] * dim, requires_grad=True)
            yield t.autograd.grad(pool(x, 2).sum(), x)

    program()


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_lp_pool(dim):
    @same
    def program(t):
        pool, draw = getattr(t.nn.functional, f"lp_pool{dim}d"), Draw(t, dim)
        for x in draw.inputs():
            args = draw.random.choice([1, 2, 2.5, 3.0]), draw.random.randint(1, 3), draw.random.choice([None, 1, 2]), draw.flag()
            yield args, outcome(pool, x.abs(), *args)

    program()


@same(tolerance=1e-2)
def test_dtypes_of_pools(t):
    F, draw = t.nn.functional, Draw(t, 2)
    for dtype in ("float16", "bfloat16", "float32", "int64", "int32", "int16", "int8", "bool", "complex64"):
        x = draw.input((2, 3, 7, 6), dtype)
        for pool in (F.max_pool2d, F.avg_pool2d, F.adaptive_avg_pool2d, F.adaptive_max_pool2d):
            yield dtype, outcome(pool, x, 2)


@same(tolerance=0)
def test_max_pool_of_nan_infinity_and_zeros(t):
    nan, inf = float("nan"), float("inf")
    for values in ([nan, 1, 2, nan], [1, nan, nan, 0], [-inf, -inf, -inf, -inf], [inf, inf, 1, 2], [0.0, -0.0, -0.0, 0.0]):
        for x in (t.tensor(values).reshape(1, 1, 4), t.tensor(values * 10).reshape(1, 1, 40), t.tensor([values] * 5).t().contiguous().reshape(1, 4, 5)):
            yield t.nn.functional.max_pool2d(x, (x.shape[-2], 2), 1, return_indices=True), t.nn.functional.max_pool1d(x[0], 3, 2, 1, return_indices=True)


@same
def test_errors_of_pools(t):
    F = t.nn.functional
    x = t.ones(1, 2, 5, 5)
    huge = 2**62
    for pool in (F.max_pool2d, F.avg_pool2d):
        for args in [(0,), (2, 0), (2, 1, 2), (2, 1, -1), (9,), ((2, 2, 2),), ("a",), (huge,), (2, huge), (huge, 1, huge // 2), (None,), (2, -1)]:
            yield attempt(pool, x, *args)[0]
        yield attempt(pool, t.ones(0, 2, 5, 5), 2), [attempt(pool, t.ones(*size), 2)[0] for size in [(2, 0, 5, 5), (2, 5, 0, 5), (1, 1, 1, 1, 1)]]
    yield [attempt(F.max_pool2d, x, 2, 1, 0, dilation)[0] for dilation in (0, huge, (1, 1, 1))], attempt(F.avg_pool2d, x, 2, divisor_override=0)[0]
    for pool in (F.adaptive_avg_pool2d, F.adaptive_max_pool2d):
        yield [attempt(pool, x, size)[0] for size in (-1, (2, 2, 2), (2, 2, 2, 2), 2**40)]
    yield attempt(F.max_pool1d, t.ones(5), 2)[0], attempt(F.max_pool3d, t.ones(1, 1, 2, 2, 2), 3)[0], attempt(F.avg_pool3d, t.ones(1, 1, 2, 2, 2), 3)[0]


@same
def test_pooling_modules(t):
    nn = t.nn
    for dim in (1, 2, 3):
        x = t.randn(2, 3, *(8, 7, 6)[:dim])
        for name, cases in {"MaxPool": [(2,), (3, 2, 1, 1, True)], "AvgPool": [(2,), (3, 2, 1, True, False)], "LPPool": [(2, 2), (1.5, 3, 2, True)],
                            "AdaptiveMaxPool": [(2,), (3, True)], "AdaptiveAvgPool": [(2,), ((1,) * dim,)]}.items():
            for args in cases:
                layer = getattr(nn, f"{name}{dim}d")(*args)
                yield repr(layer), sorted(key for key in vars(layer) if not key.startswith("_")), layer(x.abs())


@same
def test_node_names(t):
    F = t.nn.functional
    for dim, x in ((1, t.ones(1, 2, 5)), (2, t.ones(1, 2, 5, 5)), (3, t.ones(1, 2, 5, 5, 5))):
        for name in ("max_pool", "avg_pool", "adaptive_max_pool", "adaptive_avg_pool"):
            node = getattr(F, f"{name}{dim}d")(x.requires_grad_(), 2).grad_fn
            yield node.name(), node.next_functions[0][0].name()


@same
def test_vmap_and_jvp_of_pools(t):
    F, x = t.nn.functional, t.randn(3, 2, 4, 6, 5)
    for pool in (lambda x: F.max_pool2d(x, 2, return_indices=True), lambda x: F.avg_pool2d(x, 3, 1, 1), lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
                 lambda x: F.max_pool1d(x[0], 2), lambda x: F.adaptive_max_pool2d(x, 2)):
        yield t.vmap(pool)(x), t.vmap(pool, in_dims=1)(x)
    yield t.func.jvp(lambda x: F.max_pool2d(x, 2), (x[0],), (x[1],)), t.func.jvp(lambda x: F.avg_pool2d(x, 2, 1), (x[0],), (x[1],))


@same
def test_func_transforms_of_max_pool_without_recorded_indices(t):
    """Max pooling stores indices only if a gradient is recorded. The transforms of torch.func need the indices, which are then computed again."""
    x = t.randn(2, 3, 8, 8, dtype=t.float64)
    yield t.func.hessian(lambda x: (t.nn.functional.max_pool2d(x, 2) ** 3).sum())(x[:1, :1, :4, :4])
    yield t.func.grad(lambda x: t.nn.functional.max_pool2d(x, 3, 2, 1).sin().sum())(x)
