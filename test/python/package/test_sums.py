"""Checks that the errors of float32 sums are small. The unit of the errors is 2^-24 of the sum of the absolute values. With pairwise summation the
errors grow with the logarithm of the length."""
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
def test_sum_mean_norm_and_var_of_long_vectors(n, kind, layout):
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
def test_sum_mean_and_var_along_each_dimension(shape, dim):
    x = numbers("uniform", math.prod(shape)).reshape(shape)
    wide, unit = x.astype(np.float64), 2.0**-24
    exact = wide.sum(dim)
    assert np.all(np.abs(gradus.tensor(x).sum(dim).numpy() - exact) <= 3 * unit * exact)
    assert np.all(np.abs(gradus.tensor(x).mean(dim).numpy() * shape[dim] - exact) <= 4 * unit * exact)
    assert np.all(np.abs(gradus.tensor(x).var(dim).numpy() / wide.var(dim, ddof=1) - 1) <= 4 * unit)


@pytest.mark.parametrize("shape,dim", [((130, 700), 0), ((130, 700), 1), ((9, 5), 0), ((70000,), 0), ((7, 40, 30), 1)])
def test_sums_of_bfloat16_are_accumulated_in_float32(shape, dim):
    x = gradus.tensor(numbers("cancelling", math.prod(shape)).reshape(shape)).to(gradus.bfloat16)
    exact = x.to(gradus.float64)
    size = exact.abs().sum(dim) * 2.0**-22
    for got, wanted in ((x.sum(dim), exact.sum(dim)), (x.sum(dim, dtype=gradus.float32), exact.sum(dim))):
        unit = 2.0**-8 if got.dtype == gradus.bfloat16 else 2.0**-24
        assert gradus.all((got.to(gradus.float64) - wanted).abs() <= size + 1.01 * unit * wanted.abs())
    norm = exact.square().sum(dim).sqrt()
    assert gradus.all((x.norm(dim=dim).to(gradus.float64) - norm).abs() <= 2.0**-8 * norm)


@pytest.mark.parametrize("dtype,tolerance", [(gradus.bfloat16, 2.0**-7), (gradus.float32, 2.0**-22)])
@pytest.mark.parametrize("size", [1e30, 3e18, 1e-22, 1e-30])
def test_norm_does_not_overflow_in_the_squares(size, dtype, tolerance):
    x = gradus.full((1000, 100), size, dtype=dtype)
    for dim in (0, 1):
        norms = x.norm(dim=dim).to(gradus.float64)
        assert gradus.allclose(norms, x[0, 0].to(gradus.float64) * math.sqrt(x.shape[dim]), rtol=tolerance, atol=0)


@pytest.mark.parametrize("n", [5, 63, 64, 100, 1000, 100000])
def test_prod_of_float32_does_not_overflow_in_between(n):
    """The product fits into float32 and has the right sign, although products of many of the elements overflow."""
    rng = np.random.default_rng(5)
    x = (np.exp2(rng.uniform(-1, 1, n)) * rng.choice([-1, 1], n)).astype(np.float32)
    x = (x / np.exp2(np.log2(np.abs(x.astype(np.float64))).mean())).astype(np.float32)
    exact = np.prod(x.astype(np.longdouble))
    assert abs(gradus.tensor(x).prod().item() / float(exact) - 1) <= 2.0**-24 * (2 + 8 * math.sqrt(n))
    # The product of these powers of two is exactly 1, but the product of only 11 large ones overflows float32. For n = 100000 a partial product may
    # overflow even float64, in which the kernel multiplies.
    if n <= 1000:
        powers = np.concatenate([np.full(n, 2.0**12), np.full(n, 2.0**-12)]).astype(np.float32)
        rng.shuffle(powers)
        assert gradus.all(gradus.tensor(np.stack([powers, powers[::-1]])).prod(1) == 1)
    x[n // 2] = 0
    assert gradus.tensor(x).prod().item() == 0
    x[n // 3] = np.nan
    assert math.isnan(gradus.tensor(x).prod().item())


@pytest.mark.parametrize("dtype", [gradus.bfloat16, gradus.float16, gradus.int32])
@pytest.mark.parametrize("shape", [(150, 40), (33, 70), (3, 129, 65)])
@pytest.mark.parametrize("turned", [False, True])
def test_cumsum_and_softmax_of_other_dtypes_equal_those_of_float32(dtype, shape, turned):
    """The kernels convert 16-bit floats and int32 to the dtype of the computation, a block of elements at a time. The results must be those for a
    tensor that was converted as a whole before the call."""
    x = gradus.tensor(numbers("uniform", math.prod(shape)).reshape(shape) * 9).to(dtype)
    x = x.transpose(-1, -2) if turned else x
    wide = x.to(gradus.int64 if dtype == gradus.int32 else gradus.float32).contiguous()
    functions = [lambda t, dim: t.cumsum(dim)]
    if dtype != gradus.int32:
        functions += [lambda t, dim: t.softmax(dim), lambda t, dim: t.log_softmax(dim)]
    for function in functions:
        for dim in range(x.ndim):
            got, wanted = function(x, dim), function(wide, dim)
            assert gradus.allclose(got.to(wanted.dtype), wanted, rtol=2.0**-8 if dtype == gradus.bfloat16 else 2.0**-11 if dtype == gradus.float16 else 0, atol=1e-7)


@pytest.mark.parametrize("n", [1, 3, 4, 7, 1001])
def test_cumsum_of_int64_and_float64(n):
    rng = np.random.default_rng(6)
    x = rng.integers(-(2**62), 2**62, (3, n))
    with np.errstate(over="ignore"):
        assert np.array_equal(gradus.tensor(x).cumsum(1).numpy(), x.cumsum(1))
    x = rng.standard_normal((3, n))
    wide = x.astype(np.longdouble)
    assert np.all(np.abs(gradus.tensor(x).cumsum(1).numpy() - wide.cumsum(1)) <= 2.0**-53 * (n + 2) / 2 * np.abs(wide).cumsum(1))
    t = gradus.tensor(x)
    assert gradus.equal(gradus.cumsum(t, 1, out=t), gradus.tensor(x).cumsum(1))
    x[0, n // 3], x[0, n // 2], x[1, n // 2], x[2, n - 1] = np.inf, np.inf, -np.inf, np.nan
    with np.errstate(invalid="ignore"):
        assert np.array_equal(np.isfinite(gradus.tensor(x).cumsum(1).numpy()), np.isfinite(x.cumsum(1)))
