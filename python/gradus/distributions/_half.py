"""Half, the base class of distributions of the absolute value of a symmetric random variable."""
import math

import gradus
from gradus.distributions import constraints
from gradus.distributions.transformed_distribution import TransformedDistribution
from gradus.distributions.transforms import AbsTransform


class Half(TransformedDistribution):
    """The distribution of abs(x), where x has the distribution `symmetric`. `symmetric` must be symmetric around 0 and have a parameter
    `scale`."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, symmetric, validate_args):
        super().__init__(symmetric, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self):
        """The parameter `scale` of the distribution of x. This class is the distribution of abs(x)."""
        return self.base_dist.scale

    @property
    def mode(self):
        return gradus.zeros_like(self.scale)

    def log_prob(self, value):
        self._validate_value(value)
        return gradus.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -gradus.inf)

    def cdf(self, value):
        self._validate_value(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob):
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)
