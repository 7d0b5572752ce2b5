"""The half-normal distribution."""
import math

from gradus.distributions._half import Half
from gradus.distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """The distribution of abs(x), where x has the distribution Normal(0, scale)."""

    def __init__(self, scale, validate_args=None):
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    @property
    def mean(self):
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self):
        return self.scale.pow(2) * (1 - 2 / math.pi)
