"""Compares kl_divergence and its gradients with PyTorch for every pair of distribution classes that PyTorch supports. Also tests which registered
function is used for a pair of subclasses."""
import warnings

import numpy as np
import pytest

from distribution_cases import CASES, build
from nn_programs import gradus
from oracle import torch
from test_distributions import array, attempt

D = gradus.distributions
FIRST = {name: case for case in reversed(CASES) for name in [case[0]]}


def pairs():
    registry = D.kl._KL_REGISTRY
    return [(p, q) for p in FIRST for q in FIRST
            if any(issubclass(getattr(D, p), a) and issubclass(getattr(D, q), b) for a, b in registry)]


def divergence(module, names, dtype):
    made = [build(module, FIRST[name], seed=seed, dtype=dtype, requires_grad=True) for name, seed in zip(names, (0, 50))]
    shape = np.broadcast_shapes(*(tuple(distribution.batch_shape) for distribution, _ in made))
    result = module.distributions.kl_divergence(*(distribution.expand(shape) for distribution, _ in made))  # expanded, because PyTorch's infinite divergences do not broadcast
    inputs = [p for _, parameters in made for p in parameters.values() if p.requires_grad]
    if not result.requires_grad:
        return [result]
    finite = module.where(module.isfinite(result), result, 0.0).sum()
    found = module.autograd.grad(finite, inputs, allow_unused=True)
    return [result, *(module.zeros_like(x) if g is None else module.nan_to_num(g) for g, x in zip(found, inputs))]


@pytest.mark.parametrize("names", pairs(), ids="-".join)
def test_kl_divergence_of_each_pair_agrees_with_pytorch(names):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = attempt(lambda: divergence(torch, names, "float64"))
        actual = attempt(lambda: divergence(gradus, names, "float64"))
    if isinstance(expected, str) or isinstance(actual, str):
        assert actual == expected
        return
    for got, wanted in zip(actual, expected):
        assert got.shape == tuple(wanted.shape)
        np.testing.assert_allclose(array(got), array(wanted), rtol=1e-7, atol=1e-9)


def test_kl_divergence_broadcasts_batches():
    p, q = D.Uniform(gradus.tensor([0.1, -1.0]), 2.0), D.Gamma(gradus.ones(3, 1), 1.0)
    assert (gradus.isinf(D.kl_divergence(p, q)) == gradus.tensor([False, True])).all() and D.kl_divergence(p, q).shape == (3, 2)


def test_the_registered_pairs_are_those_of_pytorch():
    theirs = {(p.__name__, q.__name__) for p, q in torch.distributions.kl._KL_REGISTRY}
    assert {(p.__name__, q.__name__) for p, q in D.kl._KL_REGISTRY} == theirs


def test_register_kl_finds_the_most_derived_pair_and_warns_of_ambiguity():
    class A(D.Normal):
        pass

    class B(A):
        pass
    before = dict(D.kl._KL_REGISTRY)
    try:
        D.register_kl(A, A)(lambda p, q: "a")
        assert D.kl_divergence(B(0.0, 1.0), A(0.0, 1.0)) == "a"
        D.register_kl(B, D.Normal)(lambda p, q: "b")
        with pytest.warns(RuntimeWarning, match=r"Ambiguous kl_divergence\(B, A\). Please register_kl\(B, A\)"):
            D.kl_divergence(B(0.0, 1.0), A(0.0, 1.0))
    finally:
        D.kl._KL_REGISTRY.clear()
        D.kl._KL_REGISTRY.update(before)
        D.kl._KL_MEMOIZE.clear()


def test_errors_of_kl_divergence_and_register_kl():
    with pytest.raises(NotImplementedError, match=r"No KL\(p \|\| q\) is implemented for p type Weibull and q type Normal"):
        D.kl_divergence(D.Weibull(1.0, 1.0), D.Normal(0.0, 1.0))
    with pytest.raises(TypeError, match="Expected type_p to be a Distribution subclass"):
        D.register_kl(int, D.Normal)
