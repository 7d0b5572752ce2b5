"""Compares special functions in float64 with mpmath. test_accuracy uses these functions as the reference for float32. An error bound is in ulps of
the value. Near a zero of a function, where terms cancel, the bound is in ulps of a larger number."""
import math

import numpy as np
import pytest

import gradus

mpmath = pytest.importorskip("mpmath", reason="mpmath, which comes with PyTorch, is not installed: build/venv/bin/python -m pip install -r tools/requirements-oracle.txt")


def bessel(function, order, scale=lambda x: 1):
    return lambda x: function(order, x) * scale(x)


# Name -> (reference function of mpmath, [(start of an interval, its end, bound in ulps, magnitude)]). The bound counts ulps of the exact
# value or of `magnitude`, whichever is larger in absolute value.
SPECIAL = {
    "airy_ai": (mpmath.airyai, [(-30, -5, 16, 1), (-5, 0, 4, 1), (0, 2, 8, 0), (2, 20, 8, 0), (20, 100, 8, 0)]),
    "bessel_j0": (bessel(mpmath.besselj, 0), [(-5, 5, 4, 1), (5, 60, 2, 1), (60, 1e4, 2, 1)]),
    "bessel_j1": (bessel(mpmath.besselj, 1), [(-5, 5, 4, 1), (5, 60, 2, 1), (60, 1e4, 2, 1)]),
    "bessel_y0": (bessel(mpmath.bessely, 0), [(0, 5, 4, 1), (5, 60, 2, 1), (60, 1e4, 2, 1)]),
    "bessel_y1": (bessel(mpmath.bessely, 1), [(0, 5, 8, 1), (5, 60, 2, 1), (60, 1e4, 2, 1)]),
    "modified_bessel_i0": (bessel(mpmath.besseli, 0), [(-8, 8, 5, 0), (8, 700, 5, 0)]),
    "modified_bessel_i1": (bessel(mpmath.besseli, 1), [(-8, 8, 5, 0), (8, 700, 5, 0)]),
    "i0e": (bessel(mpmath.besseli, 0, lambda x: mpmath.exp(-abs(x))), [(-8, 8, 5, 0), (8, 300, 5, 0)]),
    "i1e": (bessel(mpmath.besseli, 1, lambda x: mpmath.exp(-abs(x))), [(-8, 8, 5, 0), (8, 300, 5, 0)]),
    "modified_bessel_k0": (bessel(mpmath.besselk, 0), [(0, 2, 10, 0), (2, 600, 5, 0)]),
    "modified_bessel_k1": (bessel(mpmath.besselk, 1), [(0, 2, 10, 0), (2, 600, 5, 0)]),
    "scaled_modified_bessel_k0": (bessel(mpmath.besselk, 0, mpmath.exp), [(0, 2, 12, 0), (2, 600, 5, 0)]),
    "scaled_modified_bessel_k1": (bessel(mpmath.besselk, 1, mpmath.exp), [(0, 2, 12, 0), (2, 600, 5, 0)]),
    "spherical_bessel_j0": (lambda x: mpmath.sin(x) / x, [(-40, 40, 2, 0)]),
    "digamma": (lambda x: mpmath.psi(0, x), [(0, 8, 12, 1), (8, 100, 3, 0), (-10, 0, 12, 1)]),
    "entr": (lambda x: -x * mpmath.log(x), [(0, 9, 2, 0)]),
    "erf": (mpmath.erf, [(-6, 6, 2, 0)]),
    "erfc": (mpmath.erfc, [(-5, 20, 4, 0)]),
    "erfcx": (lambda x: mpmath.exp(x * x) * mpmath.erfc(x), [(-20, 100, 4, 0)]),
    "erfinv": (mpmath.erfinv, [(-1, 1, 8, 0)]),
    "expit": (lambda x: 1 / (1 + mpmath.exp(-x)), [(-30, 30, 3, 0)]),
    "gammaln": (lambda x: mpmath.log(abs(mpmath.gamma(x))), [(0, 50, 4, 0), (-10, 0, 8, 0)]),
    "log_ndtr": (lambda x: mpmath.log(mpmath.ncdf(x)) if x < 0 else mpmath.log1p(-mpmath.ncdf(-x)), [(-90, 35, 6, 0)]),
    "ndtr": (mpmath.ncdf, [(-30, 9, 6, 0)]),
    "ndtri": (lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1), [(0, 1, 8, 0)]),
    "sinc": (lambda x: mpmath.sincpi(x), [(-30, 30, 3, 0)]),
}
SPECIAL |= {f"polygamma {n}": (lambda x, n=n: mpmath.psi(n, x), [(0, 3, 10, 0), (3, 100, 8, 0), (-10, 0, 10, math.factorial(n) * 2 ** (n + 2)), (-1e-6, 0, 10, 0), (-1 - 1e-6, -1 + 1e-6, 10, 0)])
            for n in (1, 2, 3, 4)}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_agree_with_mpmath(name):
    exact, ranges = SPECIAL[name]
    order = name.partition(" ")[2]
    function = (lambda x: gradus.polygamma(int(order), x)) if order else getattr(gradus.special, name)
    with mpmath.workdps(40):
        for low, high, units, floor in ranges:
            x = np.random.default_rng(2).uniform(low, high, 200)
            for number, ours in zip(x, function(gradus.tensor(x)).tolist()):
                wanted = exact(mpmath.mpf(float(number)))
                assert abs(ours - wanted) <= units * np.spacing(max(abs(float(wanted)), floor)), f"{name}({number!r}) = {ours!r}, not {wanted}"


# Name of a polynomial -> (function of mpmath, interval of the samples). float32 polynomials are computed in float64, so their results are correctly
# rounded except near ties.
POLYNOMIALS = {
    "hermite_polynomial_h": (mpmath.hermite, -5, 9), "hermite_polynomial_he": (lambda n, x: mpmath.hermite(n, x / mpmath.sqrt(2)) * mpmath.mpf(2) ** (-mpmath.mpf(n) / 2), -5, 9),
    "laguerre_polynomial_l": (lambda n, x: mpmath.laguerre(n, 0, x), -5, 9), "legendre_polynomial_p": (mpmath.legendre, -1, 1),
    "chebyshev_polynomial_t": (mpmath.chebyt, -1, 1), "chebyshev_polynomial_u": (mpmath.chebyu, -1, 1),
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_float32_polynomials_are_correctly_rounded(name):
    exact, low, high = POLYNOMIALS[name]
    with mpmath.workdps(40):
        for degree in (2, 4, 7, 12, 30):
            x = np.random.default_rng(3).uniform(low, high, 50).astype(np.float32)
            for number, ours in zip(x, getattr(gradus.special, name)(gradus.tensor(x), degree).tolist()):
                wanted = exact(degree, mpmath.mpf(float(number)))
                assert abs(ours - wanted) <= 0.501 * float(np.spacing(np.float32(abs(wanted)))), f"{name}({number!r}, {degree}) = {ours!r}, not {wanted}"


INCOMPLETE = [(0.3, 0.1), (0.3, 4.0), (2.5, 2.4), (2.5, 9.0), (30.0, 28.0), (30.0, 60.0), (300.0, 280.0), (300.0, 330.0)]


@pytest.mark.parametrize("upper", [False, True])
def test_igamma_and_igammac_agree_with_mpmath(upper):
    with mpmath.workdps(40):
        for a, x in INCOMPLETE:
            wanted = mpmath.gammainc(a, x, regularized=True) if upper else mpmath.gammainc(a, 0, x, regularized=True)
            ours = (gradus.igammac if upper else gradus.igamma)(gradus.tensor(a, dtype=gradus.float64), gradus.tensor(x, dtype=gradus.float64)).item()
            assert ours == pytest.approx(float(wanted), rel=1e-12), (a, x)
