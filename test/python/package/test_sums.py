"""Errors of float32 sums beside exact ones, in units of 2^-24 of the sum of absolute values: those of summation by halves grow with the logarithm of the length."""
import math

import numpy as np
import pytest

import gradus


def numbers(kind, n):
    rng = np.random.default_rng(4)
    if kind == "uniform":
        return rng.random(n, dtype=np.float32)
    x = (rng.standard_normal(n) * 10.0 ** rng.integers(-6, 6, n)).astype(np.float32)
    x[1::2] = -x[: n - n % 2 : 2] * np.float32(1 + 1e-6)  # neighbours nearly cancel
    return x


def strided(x):
    wide = gradus.zeros(len(x), 3)
    wide[:, 1] = gradus.tensor(x)
    return wide[:, 1]


@pytest.mark.parametrize("layout", [gradus.tensor, strided])
@pytest.mark.parametrize("kind", ["uniform", "cancelling"])
@pytest.mark.parametrize("n", [1000, 65536, 1000000])
def test_vector(n, kind, layout):
    x = numbers(kind, n)
    t, wide, unit = layout(x), x.astype(np.float64), 2.0**-24
    size = float(np.abs(wide).sum())
    assert abs(t.sum().item() - math.fsum(wide)) <= 2 * unit * size
    assert abs(t.mean().item() - math.fsum(wide) / n) <= 3 * unit * size / n
    assert abs(t.norm().item() / math.sqrt(math.fsum(wide * wide)) - 1) <= 4 * unit
    assert abs(t.var().item() / wide.var(ddof=1) - 1) <= 4 * unit
    turned = np.roll(x, 7)
    assert abs(gradus.dot(t, gradus.tensor(turned)).item() - math.fsum(wide * turned)) <= 24 * unit * float(np.abs(wide * turned).sum())
    running, sizes = np.cumsum(wide), np.cumsum(np.abs(wide))
    assert np.all(np.abs(t.cumsum(0).numpy() - running) <= 3 * unit * sizes)


@pytest.mark.parametrize("shape,dim", [((2000, 1000), 0), ((2000, 1000), 1), ((100, 200, 100), 1), ((3, 300000), 1), ((300000, 3), 0)])
def test_along_each_dimension(shape, dim):
    x = numbers("uniform", math.prod(shape)).reshape(shape)
    wide, unit = x.astype(np.float64), 2.0**-24
    exact = wide.sum(dim)
    assert np.all(np.abs(gradus.tensor(x).sum(dim).numpy() - exact) <= 3 * unit * exact)
    assert np.all(np.abs(gradus.tensor(x).mean(dim).numpy() * shape[dim] - exact) <= 4 * unit * exact)
    assert np.all(np.abs(gradus.tensor(x).var(dim).numpy() / wide.var(dim, ddof=1) - 1) <= 4 * unit)
