"""Compares gradients with PyTorch at points where formulas are often wrong: NaN, infinities, ties, kinks, negative bases, views, functions without
gradient."""
import math

import numpy as np
import pytest

import gradus
from oracle import torch


nan, inf = math.nan, math.inf
SPECIAL = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 6.0, 20.0, 21.0, 1e-30, -1e-30, 1e30, -1e30]

UNARY = """abs acos angle asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac lgamma log log10 log1p log2 logit nan_to_num neg
positive rad2deg reciprocal relu round rsqrt selu sgn sigmoid sign sin sinh sqrt square tan tanh trunc celu""".split()
ACTIVATIONS = """celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 selu silu softplus softshrink softsign
tanhshrink""".split()
WITH_OPTIONS = {
    "logit with eps": lambda module, x: module.logit(x, 0.1),
    "hardtanh": lambda module, x: module.nn.functional.hardtanh(x, -2, 3),
    "hardshrink": lambda module, x: module.nn.functional.hardshrink(x, 0.0),
    "softshrink": lambda module, x: module.nn.functional.softshrink(x, 0.0),
    "threshold": lambda module, x: module.nn.functional.threshold(x, 1, 5),
    "leaky_relu": lambda module, x: module.nn.functional.leaky_relu(x, -0.5),
    "elu": lambda module, x: module.nn.functional.elu(x, 2.5),
    "softplus": lambda module, x: module.nn.functional.softplus(x, 2, 3),
    "gelu": lambda module, x: module.nn.functional.gelu(x, approximate="tanh"),
    "clamp to NaN": lambda module, x: module.clamp(x, min=nan),
    "clamp to nothing": lambda module, x: module.clamp(x, 1, -1),
    "round": lambda module, x: module.round(x, decimals=1),
    # (xlogy, nan) is left out, because PyTorch's xlogy ignores a NaN that is given as a number.
    **{f"{name} by {number}": lambda module, x, name=name, number=number: getattr(module, name)(x, number)
       for name in ("fmod", "remainder", "div", "mul", "xlogy", "pow") for number in (2.0, 0.0, inf, -1.0, nan, 0.5) if (name, str(number)) != ("xlogy", "nan")},
    **{f"{number} to a power": lambda module, x, number=number: module.pow(number, x) for number in (0.0, 1.0, 2.0, -1.0, 0.5, inf, nan)},
}
BINARY = "add sub mul div pow maximum minimum fmax fmin hypot fmod remainder copysign xlogy logaddexp logaddexp2 float_power".split()
LOSSES = "mse_loss l1_loss smooth_l1_loss huber_loss poisson_nll_loss hinge_embedding_loss".split()
VECTORS = [[1.0, nan], [nan, nan], [0.0, 0.0], [0.0, 2.0, 0.0], [inf, 1.0], [-inf, inf], [2.0, 2.0, 1.0], [nan, 0.0, 3.0], [inf, nan], [3.0], [0.0, 0.0, 2.0], [2.0, nan, 3.0],
           [2.0, inf, 3.0]]
# Reductions of a vector. prod and cumprod are left out, because their gradients differ from PyTorch's (docs/differences.md).
REDUCTIONS = {
    **{name: lambda module, x, name=name: getattr(module, name)(x) for name in ("sum", "mean", "var", "std", "nansum")},
    **{name: lambda module, x, name=name: getattr(module, name)(x, 0) for name in ("cumsum", "logsumexp")},
    "sort": lambda module, x: module.sort(x)[0] * module.arange(x.numel(), dtype=x.dtype),
    "topk": lambda module, x: module.topk(x, 1)[0],
    "kthvalue": lambda module, x: module.kthvalue(x, 1)[0],
    "quantile": lambda module, x: module.quantile(x, 0.3),
    "cdist": lambda module, x: module.cdist(x.reshape(-1, 1), module.zeros(1, 1, dtype=x.dtype), p=1.0),
    **{f"norm {p}": lambda module, x, p=p: x.norm(p) for p in (0, 1, 2, 3, 0.5, 1.5, -1, inf, -inf)},
    **{f"norm {p} along a dimension": lambda module, x, p=p: x.reshape(1, -1).norm(p, 1) for p in (1, 2, inf, -inf)},
}
COMPLEX = "abs acos angle asin asinh atan atanh cos cosh exp expm1 log log10 log1p log2 neg reciprocal rsqrt sgn sigmoid sin sinh sqrt square tan tanh".split()

def gradients(module, function, *values, dtype="float64"):
    leaves = [module.tensor(value, dtype=getattr(module, dtype), requires_grad=True) for value in values]
    y = function(module, *leaves)
    if not y.requires_grad:
        return []
    (y.real.sum() + 2 * y.imag.sum() if y.is_complex() else y.sum()).backward()
    # Adding 0 turns PyTorch's ZeroTensor, a tensor of zeros without memory, into an ordinary tensor.
    return [(module.zeros_like(x) if x.grad is None else x.grad + 0).tolist() for x in leaves]


def flattened(values):
    for value in values:
        yield from flattened(value) if isinstance(value, list) else [value.real, value.imag] if isinstance(value, complex) else [value]


def close(a, b):
    # The relative tolerance is 1e-7, because PyTorch's hardsigmoid uses a float32 constant.
    return a == b or (a != a and b != b) or (math.isfinite(a) and abs(a - b) <= max(1e-15, 1e-7 * max(abs(a), abs(b))))


def compare(function, *values, dtype="float64"):
    ours, theirs = (list(flattened(gradients(module, function, *values, dtype=dtype))) for module in (gradus, torch))
    different = [(i, a, b) for i, (a, b) in enumerate(zip(ours, theirs)) if not close(a, b)]
    assert len(ours) == len(theirs) and not different, different


def compare_elements(function, *values, dtype="float64"):
    """Compares the gradients of `function` with those that PyTorch computes in one call for all elements. PyTorch's vectorized and scalar loops treat
    NaN differently. A gradient that differs must therefore equal the one that PyTorch computes for that element alone."""
    ours, together = (gradients(module, function, *values, dtype=dtype) for module in (gradus, torch))
    apart = [gradients(torch, function, *([one] for one in element), dtype=dtype) for element in zip(*values)]
    for leaf, mine in enumerate(ours):
        different = [(element, a, b, one[leaf][0]) for element, a, b, one in zip(zip(*values), mine, together[leaf], apart) if not close(a, b) and not close(a, one[leaf][0])]
        assert not different, different


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions(name):
    # At its poles, PyTorch's gradient of digamma is a large number (docs/differences.md).
    compare_elements(lambda module, x: getattr(module, name)(x), [x for x in SPECIAL if not (name == "digamma" and x < 0 and (math.isinf(x) or x == round(x)))])


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    compare_elements(lambda module, x: getattr(module.nn.functional, name)(x), SPECIAL)


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions(name):
    compare_elements(lambda module, x, y: getattr(module, name)(x, y), [a for a in SPECIAL for _ in SPECIAL], SPECIAL * len(SPECIAL))


@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_functions_with_options(name):
    compare_elements(WITH_OPTIONS[name], SPECIAL)


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    compare_elements(lambda module, x, y: getattr(module.nn.functional, name)(x, y, reduction="none"), [a for a in SPECIAL for _ in SPECIAL], SPECIAL * len(SPECIAL))


@pytest.mark.parametrize("target", [0.0, 1.0, 0.5])
def test_binary_cross_entropy_by_both_arguments(target):
    """At inputs of 0 and 1, PyTorch's gradient to the target is infinite (docs/differences.md), so these have a target without gradient."""
    compare(lambda module, x, y: module.nn.functional.binary_cross_entropy(x, y, reduction="none"), [0.5, 1e-30], [target, target])
    compare(lambda module, x: module.nn.functional.binary_cross_entropy(x, module.full_like(x, target), reduction="none"), [0.0, 1.0])


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("values", VECTORS)
def test_reductions(name, values):
    compare(REDUCTIONS[name], values)


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize("values", [[3.0], [2.0, 2.0], [1.0, 2.0, 4.0], [nan, 1.0], [inf, 1.0, 2.0], [[1.0, 2.0], [3.0, 5.0]]])
def test_variances_with_a_correction_near_the_number_of_elements(name, values):
    """Each result of var_mean and std_mean is also differentiated alone: the gradient of the mean does not become NaN with that of the variance.
    PyTorch's gradients over all elements without degrees of freedom are left out (docs/differences.md)."""
    for dim in (None, 0, -1):
        for correction in (0, 1, 2, 2.5, 3, 4, 5):
            for results in ([0], [1], [0, 1]) if "mean" in name else (None,):
                if dim is None and correction >= np.size(values) and results != [1]:
                    continue
                def function(module, x, dim=dim, correction=correction, results=results):
                    found = getattr(module, name)(x, dim=dim, correction=correction)
                    return found if results is None else sum(found[i] for i in results)
                np.testing.assert_allclose(gradients(gradus, function, values), gradients(torch, function, values), rtol=1e-12)


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_functions(name):
    compare(lambda module, x: getattr(module, name)(x), [complex(a, b) for a in (0.0, -0.0, 1.0, -1.0, 3.0) for b in (0.0, -0.0, 1.0, -1.0)], dtype="complex128")


def test_gradients_that_are_more_exact_than_in_pytorch():
    """Gradus's gradients differ from PyTorch's in these cases, which docs/differences.md lists."""
    assert math.isnan(gradients(gradus, lambda module, x: module.acosh(x), [-2.0])[0][0])
    assert gradients(gradus, lambda module, x: module.acosh(x), [complex(0, -0.0)], dtype="complex128") == [[2 - 1j]]
    assert gradients(gradus, lambda module, x: module.polygamma(1, x), [inf]) == [[0.0]]
    assert gradients(gradus, lambda module, x: module.nanmean(x), [nan, nan]) == [[0.0, 0.0]]
    assert gradients(gradus, lambda module, x: module.cumprod(x, 0), [1.0, nan])[0][1] == 1
    assert gradients(gradus, lambda module, r, phi: module.polar(r, phi), [0.0], [0.0])[0] == [1.0]
    assert gradients(gradus, lambda module, x: module.nn.functional.kl_div(module.zeros(1, dtype=x.dtype), x, reduction="none"), [0.0]) == [[0.0]]


def test_atan2_at_the_origin():
    compare(lambda module, x, y: module.atan2(x, y), [0.0, -0.0, 0.0, 1.0, -2.0, 3.0], [0.0, 0.0, -0.0, 0.0, 3.0, -1.0])
    # PyTorch gives 0 instead of -1e200, because the square of 1e-200 underflows.
    assert gradients(gradus, lambda module, x, y: module.atan2(x, y), [1e-200], [0.0]) == [[0.0], [-1e200]]
    compare(lambda module, x: module.angle(x), [0j, 1j, -1 + 0j], dtype="complex128")


@pytest.mark.parametrize("name", ["max", "min", "median", "amax", "amin"])
@pytest.mark.parametrize("values", [[1.0, nan], [nan, nan, 2.0], [2.0, 2.0, 1.0, 2.0], [inf, inf, 1.0], [-inf, -inf], [3.0]])
def test_max_min_and_median_with_ties_and_nan(name, values):
    compare(lambda module, x: getattr(module, name)(x), values)


@pytest.mark.parametrize("name", ["max", "min", "median", "cummax", "cummin"])
def test_max_min_median_and_running_extremes_along_a_dimension(name):
    compare(lambda module, x: getattr(module, name)(x, 1)[0], [[1.0, nan], [nan, nan], [2.0, 2.0], [inf, -inf]])


@pytest.mark.parametrize("exponent", [0.5 + 1j, 1j, 2 + 0j, -1 - 1j])
def test_pow_of_negative_bases_with_complex_exponents(exponent):
    compare(lambda module, x: x ** exponent, [-2.0, -0.5, 3.0])
    compare(lambda module, x: module.pow(x, module.tensor(exponent)), [-2.0, -0.5, 3.0])


def test_clamp():
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
def test_autograd_functional(name):
    def as_lists(value):
        return [as_lists(one) for one in value] if isinstance(value, tuple) else value.tolist()

    ours, theirs = (as_lists(FUNCTIONAL[name](module, module.autograd.functional)) for module in (gradus, torch))
    assert ours == theirs


def test_gradgradcheck_of_a_zero_dimensional_tensor():
    x = gradus.tensor(2.0, dtype=gradus.float64, requires_grad=True)
    assert gradus.autograd.gradgradcheck(lambda x: x ** 3, (x,))


@pytest.mark.parametrize("asked", [False, True])
def test_a_custom_function_that_marks_a_view_dirty(asked):
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


@pytest.mark.parametrize("sizes, dim", [([(0,), (2, 3)], 0), ([(2, 3), (0,), (2, 1)], -1), ([(0,), (0,)], 0), ([(0, 3), (2, 3), (0,)], 0), ([(3, 0), (0,), (3, 2)], 1)])
def test_cat_with_ignored_empty_tensors(sizes, dim):
    """A tensor that cat ignores because it is empty has an empty gradient."""
    both = []
    for module in (gradus, torch):
        tensors = [module.ones(size, requires_grad=True) for size in sizes]
        (module.cat(tensors, dim) * 3).sum().backward()
        both.append([t.grad.tolist() for t in tensors] + [tuple(t.grad.shape) for t in tensors])
    assert both[0] == both[1]
