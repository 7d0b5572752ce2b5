"""Checks samplers of distributions that have parameters, such as poisson. With the same seed, Gradus and PyTorch must draw the same samples, bit for
bit. Afterwards the generators of both libraries must have the same state."""
import numpy as np
import pytest

from nn_programs import gradus
from oracle import torch


def numbers(seed, low, high):
    return np.random.default_rng(seed).uniform(low, high, (7, 30)).tolist()


def expect_same(draw):
    for seed in range(4):
        found = []
        for module in (gradus, torch):
            module.manual_seed(seed)
            drawn = [draw(module), module.rand(3), module.randn(3), draw(module), module.randn(20)]
            found.append([t.double().tolist() for t in drawn] + [module.get_rng_state().tolist()])
        assert found[0] == found[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bounds", [(0, 1), (0, 9), (5, 50), (1e3, 1e5)])
def test_poisson_gamma_binomial_and_dirichlet(bounds, dtype):
    values, shares, small = numbers(0, *bounds), numbers(1, 0, 1), numbers(2, 0, 0.01)

    def made(module, x):
        return module.tensor(x, dtype=getattr(module, dtype))
    expect_same(lambda m: m.poisson(made(m, values)))
    expect_same(lambda m: m.poisson(made(m, values).t()))
    expect_same(lambda m: m._standard_gamma(made(m, values)))
    expect_same(lambda m: m.binomial(made(m, values).floor(), made(m, shares)))
    expect_same(lambda m: m.binomial(made(m, values).floor(), made(m, small)[:, :1]))
    # Only three columns are used. PyTorch sums longer rows in SIMD lanes, i.e. in another order, so the last bits would differ.
    expect_same(lambda m: m._sample_dirichlet(made(m, values)[:, :3]))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("n", [1, 5, 16, 300])
def test_geometric_cauchy_and_log_normal(n, dtype):
    for fill in (lambda t: t.geometric_(0.1), lambda t: t.cauchy_(2, 3.3), lambda t: t.log_normal_(0.5, 1.3), lambda t: t.log_normal_()):
        expect_same(lambda m: fill(m.zeros(n, dtype=getattr(m, dtype))))
        expect_same(lambda m: fill(m.zeros(n, 4, dtype=getattr(m, dtype)).t()[::2]))


def test_extreme_and_invalid_parameters():
    nan, inf = float("nan"), float("inf")
    assert gradus.binomial(gradus.tensor([nan, 3.0, -2.0, 5.0, 5.0]), gradus.tensor([0.5, nan, 0.5, 0.0, 1.0])).nan_to_num(nan=-1).tolist() == [-1, -1, 0, 0, 5]
    assert gradus.poisson(gradus.tensor([0.0])).item() == 0 and gradus._standard_gamma(gradus.tensor([inf])).item() == inf
    with pytest.raises(RuntimeError, match="invalid Poisson rate, expected rate to be non-negative"):
        gradus.poisson(gradus.tensor([1.0, -1.0]))
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        gradus.binomial(gradus.ones(2), gradus.ones(2, dtype=gradus.float64))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_of_gamma_and_dirichlet_samples(dtype):
    pick = np.random.default_rng(3)
    a, b = np.exp(pick.uniform(-3, 5, 5000)), np.exp(pick.uniform(-3, 5, 5000))
    x = pick.gamma(a)
    share = np.clip(x / (x + pick.gamma(b)), 1e-6, 1 - 1e-6)

    def answers(module):
        def made(values):
            return module.tensor(values.tolist(), dtype=getattr(module, dtype))
        return [np.array(t.tolist()) for t in (module._standard_gamma_grad(made(a), made(x)), module._dirichlet_grad(made(share), made(a), made(a + b)))]
    for actual, expected in zip(answers(gradus), answers(torch)):
        np.testing.assert_allclose(actual, expected, rtol=1e-9 if dtype == "float64" else 5e-3)
