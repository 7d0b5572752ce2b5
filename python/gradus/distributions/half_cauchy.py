"""The half-Cauchy distribution."""
import math

import gradus
from gradus.distributions._half import Half
from gradus.distributions.cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """The distribution of abs(x), where x has the distribution Cauchy(0, scale)."""

    def __init__(self, scale, validate_args=None):
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    @property
    def mean(self):
        return gradus.full(self._extended_shape(), math.inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def variance(self):
        return self.base_dist.variance

    def log_prob(self, value):
        self._validate_value(value)
        value = gradus.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return gradus.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -gradus.inf)
