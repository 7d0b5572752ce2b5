"""The inverse gamma distribution."""
import gradus
from gradus.distributions import constraints
from gradus.distributions.gamma import Gamma
from gradus.distributions.transformed_distribution import TransformedDistribution
from gradus.distributions.transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """The distribution of 1 / x, where x has the distribution Gamma(concentration, rate)."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    @property
    def concentration(self):
        """The concentration of the gamma distribution of 1 / y, where y is a random value of this distribution."""
        return self.base_dist.concentration

    @property
    def rate(self):
        """The rate of the gamma distribution of 1 / y, where y is a random value of this distribution."""
        return self.base_dist.rate

    @property
    def mean(self):
        return gradus.where(self.concentration > 1, self.rate / (self.concentration - 1), gradus.inf)

    @property
    def mode(self):
        return self.rate / (self.concentration + 1)

    @property
    def variance(self):
        a = self.concentration
        return gradus.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), gradus.inf)

    def entropy(self):
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
