"""Probability distributions with the names and semantics of torch.distributions: sampling, probabilities, moments, and gradients of these.

    >>> from gradus.distributions import Normal
    >>> Normal(gradus.tensor(0.0), gradus.tensor(2.0)).cdf(gradus.tensor(0.0))
    tensor(0.5000)

Each distribution has its own file. constraints.py defines sets of valid values, and transforms.py defines invertible functions.
constraint_registry.py maps a constraint to a transform from real numbers to values that satisfy the constraint.
"""
from gradus.distributions import constraints as constraints
from gradus.distributions import transforms
from gradus.distributions.bernoulli import Bernoulli
from gradus.distributions.beta import Beta
from gradus.distributions.binomial import Binomial
from gradus.distributions.categorical import Categorical
from gradus.distributions.cauchy import Cauchy
from gradus.distributions.chi2 import Chi2
from gradus.distributions.constraint_registry import biject_to, transform_to
from gradus.distributions.continuous_bernoulli import ContinuousBernoulli
from gradus.distributions.dirichlet import Dirichlet
from gradus.distributions.distribution import Distribution
from gradus.distributions.exp_family import ExponentialFamily
from gradus.distributions.exponential import Exponential
from gradus.distributions.fishersnedecor import FisherSnedecor
from gradus.distributions.gamma import Gamma
from gradus.distributions.generalized_pareto import GeneralizedPareto
from gradus.distributions.geometric import Geometric
from gradus.distributions.gumbel import Gumbel
from gradus.distributions.half_cauchy import HalfCauchy
from gradus.distributions.half_normal import HalfNormal
from gradus.distributions.independent import Independent
from gradus.distributions.inverse_gamma import InverseGamma
from gradus.distributions.kl import kl_divergence, register_kl
from gradus.distributions.kumaraswamy import Kumaraswamy
from gradus.distributions.laplace import Laplace
from gradus.distributions.lkj_cholesky import LKJCholesky
from gradus.distributions.log_normal import LogNormal
from gradus.distributions.logistic_normal import LogisticNormal
from gradus.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from gradus.distributions.mixture_same_family import MixtureSameFamily
from gradus.distributions.multinomial import Multinomial
from gradus.distributions.multivariate_normal import MultivariateNormal
from gradus.distributions.negative_binomial import NegativeBinomial
from gradus.distributions.normal import Normal
from gradus.distributions.one_hot_categorical import OneHotCategorical, OneHotCategoricalStraightThrough
from gradus.distributions.pareto import Pareto
from gradus.distributions.poisson import Poisson
from gradus.distributions.relaxed_bernoulli import RelaxedBernoulli
from gradus.distributions.relaxed_categorical import RelaxedOneHotCategorical
from gradus.distributions.studentT import StudentT
from gradus.distributions.transformed_distribution import TransformedDistribution
from gradus.distributions.uniform import Uniform
from gradus.distributions.von_mises import VonMises
from gradus.distributions.weibull import Weibull
from gradus.distributions.wishart import Wishart
from gradus.distributions.transforms import *  # noqa: F403

__all__ = ["Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet", "Distribution", "Exponential",
           "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent",
           "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal", "LowRankMultivariateNormal", "MixtureSameFamily",
           "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson",
           "RelaxedBernoulli", "RelaxedOneHotCategorical", "StudentT", "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart", "biject_to",
           "kl_divergence", "register_kl", "transform_to", *transforms.__all__]
