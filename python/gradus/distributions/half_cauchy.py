"""The half of a Cauchy distribution."""
import math

import gradus
from gradus.distributions import constraints
from gradus.distributions.cauchy import Cauchy
from gradus.distributions.transformed_distribution import TransformedDistribution
from gradus.distributions.transforms import AbsTransform

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """abs(x) for x of Cauchy(0, scale)."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale, validate_args=None):
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def scale(self):
        """The scale of the whole distribution."""
        return self.base_dist.scale

    @property
    def mean(self):
        return gradus.full(self._extended_shape(), math.inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def mode(self):
        return gradus.zeros_like(self.scale)

    @property
    def variance(self):
        return self.base_dist.variance

    def log_prob(self, value):
        self._validate_value(value)
        value = gradus.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return gradus.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -gradus.inf)

    def cdf(self, value):
        self._validate_value(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob):
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)
