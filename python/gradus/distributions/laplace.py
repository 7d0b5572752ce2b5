"""The Laplace distribution."""
import gradus
from gradus.distributions import constraints
from gradus.distributions.distribution import Distribution
from gradus.distributions.utils import broadcast_all

__all__ = ["Laplace"]


class Laplace(Distribution):
    """The Laplace distribution, with density exp(-abs(x - loc) / scale) / (2 scale)."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _batched = {"loc": 0, "scale": 0}

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @property
    def mean(self):
        return self.loc

    mode = mean

    @property
    def variance(self):
        return 2 * self.scale.pow(2)

    @property
    def stddev(self):
        return 2 ** 0.5 * self.scale

    def rsample(self, sample_shape=gradus.Size()):
        u = gradus.empty(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        u.uniform_(gradus.finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * gradus.log1p(-u.abs())

    def log_prob(self, value):
        self._validate_value(value)
        return -gradus.log(2 * self.scale) - gradus.abs(value - self.loc) / self.scale

    def cdf(self, value):
        self._validate_value(value)
        way = value - self.loc
        return 0.5 - 0.5 * way.sign() * gradus.expm1(-way.abs() / self.scale)

    def icdf(self, value):
        side = value - 0.5
        return self.loc - self.scale * side.sign() * gradus.log1p(-2 * side.abs())

    def entropy(self):
        return 1 + gradus.log(2 * self.scale)
