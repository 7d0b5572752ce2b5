"""Student's t distribution."""
import math

import gradus
from gradus.distributions import constraints
from gradus.distributions.chi2 import Chi2
from gradus.distributions.distribution import Distribution
from gradus.distributions.utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t distribution: loc + scale * x / sqrt(z / df), where x is standard normal and z is chi-squared with `df` degrees of freedom."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _batched = {"df": 0, "loc": 0, "scale": 0, "_chi2": 0}

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    @property
    def mean(self):
        return gradus.where(self.df <= 1, gradus.nan, self.loc)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        finite = self.df > 2
        df = gradus.where(finite, self.df, 3.0)
        return gradus.where(finite, self.scale.pow(2) * df / (df - 2), gradus.where(self.df > 1, gradus.inf, gradus.nan).to(self.df.dtype))

    def rsample(self, sample_shape=gradus.Size()):
        normal = _standard_normal(self._extended_shape(sample_shape), self.df.dtype, self.df.device)
        return self.loc + self.scale * (normal * gradus.rsqrt(self._chi2.rsample(sample_shape) / self.df))

    def log_prob(self, value):
        self._validate_value(value)
        y, half = (value - self.loc) / self.scale, 0.5 * (self.df + 1.0)
        normalizer = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + gradus.lgamma(0.5 * self.df) - gradus.lgamma(half)
        return -half * gradus.log1p(y ** 2.0 / self.df) - normalizer

    def entropy(self):
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = gradus.lgamma(half) + math.lgamma(0.5) - gradus.lgamma(more)
        return self.scale.log() + more * (gradus.digamma(more) - gradus.digamma(half)) + 0.5 * self.df.log() + log_beta
