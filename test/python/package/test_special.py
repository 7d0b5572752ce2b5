"""Compares special functions with PyTorch: dense samples, special values, promotion, gradients, errors."""
import math

import numpy as np
import pytest

import gradus
from oracle import torch

inf, nan = math.inf, math.nan
# Name of a unary function -> (low, high, tolerance, floor). The samples are from low to high. A float64 result may differ from PyTorch's result y by
# tolerance * max(|y|, floor). The tolerance is large for Ai and for the Bessel functions J and Y. PyTorch's Ai has errors of 1e-7 below -2, and its J
# and Y have such errors beyond 5. test_matrix compares J and Y with libm.
UNARY = {
    "airy_ai": (-30, 20, 1e-5, 1), "bessel_j0": (-60, 60, 1e-6, 1), "bessel_j1": (-60, 60, 1e-6, 1), "bessel_y0": (0, 60, 1e-6, 1), "bessel_y1": (0, 60, 1e-6, 1),
    "modified_bessel_i0": (-60, 60, 1e-14, 0), "modified_bessel_i1": (-60, 60, 1e-14, 0), "modified_bessel_k0": (0, 60, 1e-14, 0), "modified_bessel_k1": (0, 60, 1e-14, 0),
    "scaled_modified_bessel_k0": (0, 90, 1e-14, 0), "scaled_modified_bessel_k1": (0, 90, 1e-14, 0), "spherical_bessel_j0": (-40, 40, 1e-14, 1),
    "digamma": (-9.7, 30, 1e-12, 1), "entr": (0, 9, 1e-14, 1), "erfc": (-5, 20, 2e-14, 0), "erfcx": (-9, 60, 4e-14, 0), "erfinv": (-1, 1, 1e-14, 0), "expit": (-30, 30, 1e-14, 0),
    "i0": (-60, 60, 1e-14, 0), "i0e": (-300, 300, 1e-14, 0), "i1": (-60, 60, 1e-14, 0), "i1e": (-300, 300, 1e-14, 0), "log_ndtr": (-90, 30, 1e-12, 0), "ndtr": (-30, 9, 1e-15, 1),
    "ndtri": (0, 1, 2e-14, 1), "psi": (0.1, 30, 1e-12, 1), "sinc": (-30, 30, 1e-14, 1),
}
SPECIAL = [0.0, -0.0, inf, -inf, nan, 1.0, -1.0, 0.5, -0.5, 8.0, -8.0, 1e-300, 1e300]
# Name -> arguments that are not compared, mostly because PyTorch returns NaN instead of the limit of the function.
OTHERWISE = {"airy_ai": {inf, 1e300, -1e300}, "bessel_j0": {1e300}, "bessel_j1": {1e300}, "bessel_y0": {1e300}, "bessel_y1": {1e300, 1e-300}, "modified_bessel_i0": {inf, -inf},
             "modified_bessel_i1": {inf, -inf, -0.0}, "modified_bessel_k1": {1e-300}, "spherical_bessel_j0": {1e300}, "i0": {inf, -inf}, "i1": {inf, -inf, -0.0}, "i1e": {-0.0}, "erfcx": {1e300}, "sinc": {1e300, 1.0, -1.0, 8.0, -8.0}}


def special_function(module, name):
    return getattr(module.special, name)


def samples(low, high, count=4000):
    return np.random.default_rng(1).uniform(low, high, count)


@pytest.mark.parametrize("name", UNARY)
def test_float64_results_are_close_to_pytorch(name):
    low, high, tolerance, floor = UNARY[name]
    x = samples(low, high)
    ours, theirs = special_function(gradus, name)(gradus.tensor(x)).numpy(), special_function(torch, name)(torch.tensor(x)).numpy()
    assert np.all((ours == theirs) | (np.abs(ours - theirs) <= tolerance * np.maximum(np.minimum(np.abs(theirs), np.finfo(float).max), floor))), x[np.argmax(np.abs(ours - theirs))]


@pytest.mark.parametrize("name", UNARY)
def test_float32_results_are_rounded_once(name):
    low, high, _, _ = UNARY[name]
    x = samples(low, high).astype(np.float32)
    ours = special_function(gradus, name)(gradus.tensor(x))
    wide = special_function(gradus, name)(gradus.tensor(x.astype(np.float64))).numpy()
    assert ours.dtype == gradus.float32
    # Maximum error in ulps. expit, entr and spherical_bessel_j0 are computed in float32, all other functions in float64 and then rounded.
    limit = 2 if name in ("expit", "entr", "spherical_bessel_j0") else 0.5000001
    assert np.all(np.abs(ours.numpy() - wide) <= limit * np.spacing(np.abs(wide).astype(np.float32)).astype(np.float64))


@pytest.mark.parametrize("name", UNARY)
def test_special_values(name):
    for x in SPECIAL:
        ours, theirs = (special_function(module, name)(module.tensor(x, dtype=module.float64)).item() for module in (gradus, torch))
        if not any(x == y and math.copysign(1, x) == math.copysign(1, y) for y in OTHERWISE.get(name, ())):
            assert ours == pytest.approx(theirs, rel=1e-7 if name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1") else 1e-12, abs=1e-15, nan_ok=True), x
            assert theirs != 0 or math.copysign(1, ours) == math.copysign(1, theirs), x


def test_limits_for_which_pytorch_returns_nan():
    assert gradus.special.i0(gradus.tensor([inf, -inf])).tolist() == [inf, inf] and gradus.special.i1(gradus.tensor([inf, -inf])).tolist() == [inf, -inf]
    assert gradus.special.sinc(gradus.tensor([1.0, -3.0, 1e30])).abs().tolist() == [0, 0, 0]
    assert gradus.special.ndtr(gradus.tensor(-30.0, dtype=gradus.float64)).item() == pytest.approx(4.906713927148187e-198, rel=1e-13)
    assert gradus.special.i0(gradus.tensor(713.0, dtype=gradus.float64)).item() == pytest.approx(6.705128263670995e307, rel=1e-14)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["int64", "bool", "float16", "bfloat16", "complex64"])
def test_promotion_of_dtypes(name, dtype):
    x = [[1, 0], [1, 1]]
    try:
        theirs = special_function(torch, name)(torch.tensor(x, dtype=getattr(torch, dtype)))
    except NotImplementedError:
        if dtype == "complex64":
            with pytest.raises((NotImplementedError, RuntimeError)):
                special_function(gradus, name)(gradus.tensor(x, dtype=getattr(gradus, dtype)))
    else:
        ours = special_function(gradus, name)(gradus.tensor(x, dtype=getattr(gradus, dtype)))
        assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
        torch.testing.assert_close(torch.tensor(ours.tolist(), dtype=theirs.dtype), theirs, equal_nan=True)


@pytest.mark.parametrize("name", [name for name in UNARY if "bessel" not in name and name not in ("airy_ai", "digamma")])
def test_first_and_second_order_gradients(name):
    low, high, _, _ = UNARY[name]
    x = np.clip(samples(low, high, 50), -20, 20)
    results = []
    for module in (gradus, torch):
        t = module.tensor(x, requires_grad=True)
        first, = module.autograd.grad(special_function(module, name)(t).sum(), t, create_graph=True)
        second, = module.autograd.grad(first.sum(), t)
        results.append((first.detach().numpy(), second.numpy()))
    for ours, theirs in zip(*results):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)


BINARY = ["xlogy", "xlog1py"]


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("arguments", [lambda m: (m.tensor([0.0, 1.0, nan, 2.0]), m.tensor([[0.5], [0.0], [-1.0], [nan]])), lambda m: (2, m.tensor([1.0, 3.0])),
                                       lambda m: (m.tensor([1, 2]), 3), lambda m: (m.tensor([1, 2]), m.tensor([1.0, 2.0], dtype=m.float64)), lambda m: (m.ones(2),)])
def test_xlogy_and_xlog1py(name, arguments):
    results = []
    for module in (gradus, torch):
        try:
            result = special_function(module, name)(*arguments(module))
            results.append((str(result.dtype).split(".")[1], result.numpy().astype(np.float64)))
        except TypeError:
            results.append(TypeError)
    assert type(results[0]) is type(results[1])
    if results[0] is not TypeError:
        assert results[0][0] == results[1][0]
        np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-6)


def test_out_argument():
    x = gradus.tensor([0.25, 0.5])
    out = gradus.empty(2)
    assert gradus.special.entr(x, out=out) is out and out.tolist() == gradus.special.entr(x).tolist()
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        gradus.special.i0e(x, out=gradus.empty(2, dtype=gradus.int64))


POLYNOMIALS = [name for name in dir(torch.special) if "polynomial" in name and not name.startswith("special")]


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_orthogonal_polynomials(name):
    x, n = [-3.0, -1.0, -0.7, -0.0, 0.0, 0.3, 0.5, 1.0, 1.5, 20.0], [-2, 0, 1, 2, 3, 5, 8, 9, 12, 25]
    for dtype, tolerance in (("float64", 1e-12), ("float32", 2e-4)):
        ours, theirs = (special_function(m, name)(m.tensor(x, dtype=getattr(m, dtype)), m.tensor(n)[:, None]).numpy() for m in (gradus, torch))
        finite = np.abs(theirs) < 1e30
        np.testing.assert_allclose(ours[finite], theirs[finite], rtol=tolerance, atol=tolerance)
        assert ours.dtype == theirs.dtype
    for arguments in ((2.5, [1, 2, 3]), ([0.5, 0.25], 3), ([1, 0], 4)):
        ours, theirs = (special_function(m, name)(*(m.tensor(a) if isinstance(a, list) else a for a in arguments)) for m in (gradus, torch))
        assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)
    assert not special_function(gradus, name)(gradus.ones(2, requires_grad=True), 3).requires_grad


def test_orthogonal_polynomials_of_high_degree():
    theta, n = 0.3, 2**40
    assert gradus.special.chebyshev_polynomial_t(gradus.tensor(math.cos(theta), dtype=gradus.float64), 1000).item() == pytest.approx(math.cos(1000 * theta), abs=1e-12)
    for name in POLYNOMIALS:
        assert special_function(gradus, name)(gradus.tensor([0.5]), n).numel() == 1
        assert special_function(gradus, name)(gradus.tensor([0.5]), nan).item() == 0


def test_zeta():
    s, a = [1.0, 1.5, 2.0, 3.0, 30.0, 0.5], [-1.5, -1.0, 0.0, 0.25, 1.0, 7.0, 1e10, nan]
    ours, theirs = (m.special.zeta(m.tensor(s, dtype=m.float64)[:, None], m.tensor(a, dtype=m.float64)).numpy() for m in (gradus, torch))
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    x = gradus.tensor([1.5, 2.5], dtype=gradus.float64, requires_grad=True)
    gradus.special.zeta(3, x).sum().backward()
    y = torch.tensor([1.5, 2.5], dtype=torch.float64, requires_grad=True)
    torch.special.zeta(3, y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-12)
    with pytest.raises(NotImplementedError, match="the derivative for 'zeta' is not implemented"):
        gradus.special.zeta(x, 3).sum().backward()
    assert gradus.special.zeta(gradus.tensor(1e6), 0.99).item() == inf and gradus.special.zeta(gradus.tensor(1e6), 1).item() == 1


def test_airy_ai_is_more_accurate_than_in_pytorch():
    x = gradus.tensor([-20.0, -6.0, -4.0, -2.0, 1.0, 3.0, 30.0], dtype=gradus.float64)
    wanted = [-0.1764061270779847, -0.3291451736298231, -0.07026553294928951, 0.22740742820168558, 0.13529241631288141, 0.006591139357460719, 3.2082175915504954e-49]
    assert gradus.special.airy_ai(x).tolist() == pytest.approx(wanted, rel=1e-13)


def both(call):
    """Returns (results of a call in Gradus, results in PyTorch), each a list of (dtype, elements)."""
    def listed(result):
        return [(str(t.dtype).split(".")[1], t.tolist()) for t in (result if isinstance(result, tuple) else (result,))]
    return listed(call(gradus)), listed(call(torch))


HALF = [0.0, -0.0, 1.0, -1.0, 2.0, 65504.0, 2.0**-14, -(2.0**-14), 2.0**-24, -(2.0**-24), 3.5]


@pytest.mark.parametrize("call", [
    lambda m: m.gcd(m.tensor([4, -6, 0, 0, 12]), m.tensor([6, 4, 0, -5, 18])), lambda m: m.lcm(m.tensor([4, -6, 0, 0, 12]), m.tensor([6, 4, 0, -5, 18])),
    lambda m: m.gcd(m.tensor([12, -120], dtype=m.int8), m.tensor([18, 96], dtype=m.int8)), lambda m: m.tensor([4, 9]).gcd_(m.tensor([6])), lambda m: m.tensor([4, 9]).lcm_(m.tensor([6])),
    lambda m: m.frexp(m.tensor([1.5, 0.0, -0.0, inf, -inf, -3.0, 1e-42, 1e30])), lambda m: m.frexp(m.tensor([1.5, 6.1e-5, 6e-8, 65504.0], dtype=m.float16)),
    lambda m: m.tensor([0.1], dtype=m.float64).frexp(), lambda m: m.ldexp(m.tensor([1.5, -2.0]), m.tensor([3, -4])), lambda m: m.ldexp(m.tensor([3, 4]), m.tensor([1, 2])),
    lambda m: m.tensor([1.0]).ldexp_(m.tensor([2])), lambda m: m.nextafter(m.tensor([1.0, 0.0, 3.0, inf]), m.tensor([2.0, -1.0, 3.0, 0.0])),
    *(lambda m, to=to, dtype=dtype: m.nextafter(m.tensor(HALF, dtype=getattr(m, dtype)), m.tensor(to, dtype=getattr(m, dtype))) for to in (inf, -inf, 0.0) for dtype in ("float16", "bfloat16", "float64")),
    *(lambda m, dtype=dtype: (-m.tensor([0.0, -0.0, 1.0, nan, inf], dtype=getattr(m, dtype)), -m.zeros((), dtype=getattr(m, dtype)), m.zeros(3, 2, dtype=getattr(m, dtype)).t().neg())
      for dtype in ("float16", "bfloat16", "float32", "float64", "complex64")),
    lambda m: m.nanmedian(m.tensor([3.0, nan, 1.0, 2.0, 5.0])), lambda m: m.nanmedian(m.tensor([[3.0, nan, 1.0], [2.0, 2.0, nan]]), 1), lambda m: m.nanmedian(m.tensor([[3, 1], [2, 5]]), 0, True),
    lambda m: m.tensor([[3.0, nan], [1.0, 2.0]]).nanmedian(0)])
def test_calls_with_exact_results(call):
    ours, theirs = both(call)
    assert repr(ours) == repr(theirs)  # the text also shows the signs of zeros


def test_public_names_are_those_of_pytorch():
    assert [name for name in torch.special.__all__ if not hasattr(gradus.special, name)] == []
