"""The Weibull distribution."""
import gradus
from gradus.distributions import constraints
from gradus.distributions.exponential import Exponential
from gradus.distributions.transformed_distribution import TransformedDistribution
from gradus.distributions.transforms import AffineTransform, PowerTransform
from gradus.distributions.utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The Weibull distribution, with P(X > x) = exp(-(x / scale)^concentration) for x >= 0."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _expanded_too = ("scale", "concentration", "concentration_reciprocal")

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(gradus.ones_like(self.scale), validate_args=validate_args)
        super().__init__(base, [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)], validate_args=validate_args)

    @property
    def mean(self):
        return self.scale * gradus.exp(gradus.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self):
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration.reciprocal()

    @property
    def variance(self):
        inverse = self.concentration_reciprocal
        return self.scale.pow(2) * (gradus.exp(gradus.lgamma(1 + 2 * inverse)) - gradus.exp(2 * gradus.lgamma(1 + inverse)))

    def entropy(self):
        return euler_constant * (1 - self.concentration_reciprocal) + gradus.log(self.scale * self.concentration_reciprocal) + 1
