"""Defines the distributions and the parameters with which the tests of distributions run."""
import numpy as np


def numbers(seed, shape, low, high):
    return np.asarray(np.random.default_rng(seed).uniform(low, high, shape)).tolist()


def spd(seed, n, batch=()):
    root = np.random.default_rng(seed).normal(size=(*batch, n, n))
    return (root @ np.swapaxes(root, -1, -2) + 0.5 * np.eye(n)).tolist()


def tril(seed, n, batch=()):
    return np.linalg.cholesky(np.array(spd(seed, n, batch))).tolist()


def positive(*shape, low=0.3, high=3.0):
    return lambda seed: numbers(seed, shape, low, high)


def real(*shape, low=-2.0, high=2.0):
    return lambda seed: numbers(seed, shape, low, high)


def unit(*shape):
    return lambda seed: numbers(seed, shape, 0.1, 0.9)


def counts(*shape, most=20):
    return lambda seed: np.floor(numbers(seed, shape, 1, most)).tolist()


# Each case is (class name, {keyword of the constructor: function}). The function takes a seed and returns the parameter as nested lists of numbers.
# The shapes of a case's parameters broadcast.
CASES = [
    ("Bernoulli", {"probs": unit(3)}), ("Bernoulli", {"logits": real(2, 3)}),
    ("Beta", {"concentration1": positive(3), "concentration0": positive(2, 1)}),
    ("Binomial", {"total_count": counts(3), "probs": unit(2, 3)}), ("Binomial", {"total_count": counts(1), "logits": real(3)}),
    ("Categorical", {"probs": unit(2, 4)}), ("Categorical", {"logits": real(4)}),
    ("Cauchy", {"loc": real(3), "scale": positive(2, 1)}),
    ("Chi2", {"df": positive(3)}),
    ("ContinuousBernoulli", {"probs": unit(3)}), ("ContinuousBernoulli", {"logits": real(3)}),
    ("Dirichlet", {"concentration": positive(2, 4)}),
    ("Exponential", {"rate": positive(2, 3)}),
    ("FisherSnedecor", {"df1": positive(3, high=9), "df2": positive(2, 1, low=2.5, high=9)}),
    ("Gamma", {"concentration": positive(3), "rate": positive(2, 1)}),
    ("GeneralizedPareto", {"loc": real(3), "scale": positive(3), "concentration": positive(2, 3, low=0.1, high=0.8)}),
    ("Geometric", {"probs": unit(3)}), ("Geometric", {"logits": real(3)}),
    ("Gumbel", {"loc": real(3), "scale": positive(3)}),
    ("HalfCauchy", {"scale": positive(3)}),
    ("HalfNormal", {"scale": positive(3)}),
    ("InverseGamma", {"concentration": positive(3, low=2.5, high=5), "rate": positive(3)}),
    ("Kumaraswamy", {"concentration1": positive(3), "concentration0": positive(3)}),
    ("Laplace", {"loc": real(3), "scale": positive(2, 1)}),
    ("LogNormal", {"loc": real(3), "scale": positive(3, high=1)}),
    ("LogisticNormal", {"loc": real(2, 3), "scale": positive(2, 3, high=1)}),
    ("LowRankMultivariateNormal", {"loc": real(2, 4), "cov_factor": real(2, 4, 2), "cov_diag": positive(4)}),
    ("MultivariateNormal", {"loc": real(2, 3), "covariance_matrix": lambda seed: spd(seed, 3)}),
    ("MultivariateNormal", {"loc": real(3), "scale_tril": lambda seed: tril(seed, 3, (2,))}),
    ("MultivariateNormal", {"loc": real(3), "precision_matrix": lambda seed: spd(seed, 3)}),
    ("Multinomial", {"probs": unit(2, 4)}),
    ("NegativeBinomial", {"total_count": counts(3), "probs": unit(3)}),
    ("Normal", {"loc": real(2, 3), "scale": positive(3)}),
    ("OneHotCategorical", {"probs": unit(2, 4)}),
    ("OneHotCategoricalStraightThrough", {"logits": real(2, 4)}),
    ("Pareto", {"scale": positive(3), "alpha": positive(3, low=2.5, high=5)}),
    ("Poisson", {"rate": positive(3, high=20)}),
    ("RelaxedBernoulli", {"temperature": positive(), "probs": unit(3)}),
    ("RelaxedOneHotCategorical", {"temperature": positive(), "logits": real(2, 3)}),
    ("StudentT", {"df": positive(3, low=2.5, high=9), "loc": real(3), "scale": positive(2, 3)}),
    ("Uniform", {"low": real(3, high=0), "high": positive(3)}),
    ("VonMises", {"loc": real(3), "concentration": positive(3, high=6)}),
    ("Weibull", {"scale": positive(3), "concentration": positive(3)}),
    ("Wishart", {"df": positive(2, low=4, high=9), "covariance_matrix": lambda seed: spd(seed, 3, (2,))}),
    ("LKJCholesky", {"concentration": positive(2)}),
]
FIXED = {"Multinomial": {"total_count": 6}, "LKJCholesky": {"dim": 3}}
NAMES = [f"{name}-{'-'.join(keywords)}" for name, keywords in CASES]


def parameters(module, case, seed=0, dtype="float64", requires_grad=False):
    name, keywords = case
    made = {key: module.tensor(make(seed + i), dtype=getattr(module, dtype)) for i, (key, make) in enumerate(keywords.items())}
    differentiable = [key for key in made if not (key == "total_count")]
    for key in differentiable if requires_grad else ():
        made[key].requires_grad_()
    return made


def build(module, case, **options):
    """Returns (the distribution of `case`, {name: parameter tensor})."""
    made = parameters(module, case, **options)
    return getattr(module.distributions, case[0])(**FIXED.get(case[0], {}), **made), made


# The tests compare these attributes, these functions without an argument, and these functions of a value of the distribution.
FACTS = ["mean", "mode", "variance", "stddev"]
FUNCTIONS = ["entropy", "perplexity"]
OF_VALUES = ["log_prob", "cdf"]
