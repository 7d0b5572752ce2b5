"""The Gumbel distribution."""
import math

import gradus
from gradus.distributions import constraints
from gradus.distributions.transformed_distribution import TransformedDistribution
from gradus.distributions.transforms import AffineTransform, ExpTransform
from gradus.distributions.uniform import Uniform
from gradus.distributions.utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The Gumbel distribution: loc - scale log(-log(u)) for u uniform in (0, 1)."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _expanded_too = ("loc", "scale")

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = gradus.finfo(self.loc.dtype)
        base = Uniform(gradus.full_like(self.loc, limits.tiny), gradus.full_like(self.loc, 1 - limits.eps), validate_args=validate_args)
        transforms = [ExpTransform().inv, AffineTransform(0, -gradus.ones_like(self.scale)), ExpTransform().inv, AffineTransform(loc, -self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self):
        return self.loc + self.scale * euler_constant

    @property
    def mode(self):
        return self.loc

    @property
    def stddev(self):
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self):
        return self.stddev.pow(2)

    def log_prob(self, value):
        self._validate_value(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    def entropy(self):
        return self.scale.log() + (1 + euler_constant)
