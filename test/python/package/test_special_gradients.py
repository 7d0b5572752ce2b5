"""Gradients beside PyTorch's where formulas are most often wrong: NaN, infinities, ties, kinks, negative bases, views, functions without a gradient."""
import math

import pytest

import gradus
from oracle import torch


nan, inf = math.nan, math.inf
SPECIAL = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 6.0, 1e-30, 1e30]

UNARY = """abs asin asinh atan atanh ceil cos cosh deg2rad erf erfc exp exp2 expm1 floor frac log log10 log1p log2 neg reciprocal relu round rsqrt sigmoid sign sin sinh
sqrt square tan tanh trunc nan_to_num celu selu""".split()
ACTIVATIONS = "celu elu gelu hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 selu silu softplus softsign".split()
BINARY = "add sub mul div pow maximum minimum fmax fmin hypot fmod remainder copysign xlogy logaddexp logaddexp2".split()

def gradients(module, function, *values, dtype="float64"):
    leaves = [module.tensor(value, dtype=getattr(module, dtype), requires_grad=True) for value in values]
    y = function(module, *leaves)
    (y.real.sum() + 2 * y.imag.sum() if y.is_complex() else y.sum()).backward()
    return [x.grad.tolist() for x in leaves]


def flat(values):
    for value in values:
        yield from flat(value) if isinstance(value, list) else [value.real, value.imag] if isinstance(value, complex) else [value]


def close(a, b):
    return a == b or (a != a and b != b) or abs(a - b) <= 1e-7 * max(abs(a), abs(b))  # PyTorch's hardsigmoid has a constant in float32


def compare(function, *values, dtype="float64"):
    ours, theirs = (list(flat(gradients(module, function, *values, dtype=dtype))) for module in (gradus, torch))
    different = [(i, a, b) for i, (a, b) in enumerate(zip(ours, theirs)) if not close(a, b)]
    assert len(ours) == len(theirs) and not different, different


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    compare(lambda module, x: getattr(module, name)(x), SPECIAL)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    compare(lambda module, x: getattr(module.nn.functional, name)(x), SPECIAL)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    compare(lambda module, x, y: getattr(module, name)(x, y), [a for a in SPECIAL for _ in SPECIAL], SPECIAL * len(SPECIAL))


def test_atan2_at_the_origin():
    compare(lambda module, x, y: module.atan2(x, y), [0.0, -0.0, 0.0, 1.0, -2.0, 3.0], [0.0, 0.0, -0.0, 0.0, 3.0, -1.0])
    assert gradients(gradus, lambda module, x, y: module.atan2(x, y), [1e-200], [0.0]) == [[0.0], [-1e200]]  # PyTorch: 0, the square is too small
    compare(lambda module, x: module.angle(x), [0j, 1j, -1 + 0j], dtype="complex128")


@pytest.mark.parametrize("name", ["max", "min", "median", "amax", "amin"])
@pytest.mark.parametrize("values", [[1.0, nan], [nan, nan, 2.0], [2.0, 2.0, 1.0, 2.0], [inf, inf, 1.0], [-inf, -inf], [3.0]])
def test_extremes(name, values):
    compare(lambda module, x: getattr(module, name)(x), values)


@pytest.mark.parametrize("name", ["max", "min", "median", "cummax", "cummin"])
def test_extremes_along_a_dimension(name):
    compare(lambda module, x: getattr(module, name)(x, 1)[0], [[1.0, nan], [nan, nan], [2.0, 2.0], [inf, -inf]])


@pytest.mark.parametrize("exponent", [0.5 + 1j, 1j, 2 + 0j, -1 - 1j])
def test_negative_bases_to_complex_exponents(exponent):
    compare(lambda module, x: x ** exponent, [-2.0, -0.5, 3.0])
    compare(lambda module, x: module.pow(x, module.tensor(exponent)), [-2.0, -0.5, 3.0])


def test_clamps():
    compare(lambda module, x: module.clamp(x, -1, 1), SPECIAL)
    compare(lambda module, x, a, b: module.clamp(x, a, b), [1.0, 2.0, 3.0, 0.0, 1.0, 2.0], [1.0, 1.0, 4.0, 0.0, 2.0, 3.0], [2.0, 2.0, 5.0, 1.0, 1.0, 1.0])


FUNCTIONAL = {
    "hessian of 0-d": lambda module, f: f.hessian(lambda x: x ** 3, module.tensor(2.0)),
    "hessian of a linear function": lambda module, f: f.hessian(lambda x: (2 * x).sum(), module.tensor([2.0, 1.0])),
    "jacobian of 0-d": lambda module, f: f.jacobian(lambda x: x * 2, module.tensor(2.0)),
    "jacobian of a constant": lambda module, f: f.jacobian(lambda x: module.ones(2), module.tensor([2.0, 1.0])),
    **{f"{name} of a linear function": lambda module, f, name=name: getattr(f, name)(lambda x: (2 * x).sum(), module.tensor([2.0, 1.0]), module.tensor([1.0, 1.0]))
       for name in ("hvp", "vhp")},
    **{f"{name} of a constant": lambda module, f, name=name: getattr(f, name)(lambda x: module.tensor(3.0), module.tensor([2.0, 1.0]), module.tensor([1.0, 1.0]))
       for name in ("hvp", "vhp")},
    **{f"{name} of {what}": lambda module, f, name=name, function=function: getattr(f, name)(lambda x: function(module, x), module.tensor([2.0, 1.0]), module.tensor([1.0, 1.0]))
       for name in ("jvp", "vjp") for what, function in {"a linear function": lambda module, x: 2 * x, "a constant": lambda module, x: module.ones(2)}.items()},
}


@pytest.mark.parametrize("name", FUNCTIONAL)
def test_functional(name):
    def plain(value):
        return [plain(one) for one in value] if isinstance(value, tuple) else value.tolist()

    ours, theirs = (plain(FUNCTIONAL[name](module, module.autograd.functional)) for module in (gradus, torch))
    assert ours == theirs


def test_gradgradcheck_of_a_number():
    x = gradus.tensor(2.0, dtype=gradus.float64, requires_grad=True)
    assert gradus.autograd.gradgradcheck(lambda x: x ** 3, (x,))


@pytest.mark.parametrize("asked", [False, True])
def test_a_function_that_writes_a_view(asked):
    def program(module):
        class Twice(module.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x.mul_(2))
                return x

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

        a = module.ones(4, requires_grad=True)
        b = a * 1
        v = b[:2]
        if asked:
            v.grad_fn
        w = Twice.apply(v)
        (b.sum() + w.sum()).backward()
        return a.grad.tolist(), b.tolist()

    assert program(gradus) == program(torch) == ([4, 4, 1, 1], [2, 2, 1, 1])
