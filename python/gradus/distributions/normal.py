"""The normal distribution."""
import math

import gradus
from gradus.distributions import constraints
from gradus.distributions.exp_family import ExponentialFamily
from gradus.distributions.utils import _standard_normal, broadcast_all

__all__ = ["Normal"]


class Normal(ExponentialFamily):
    """The normal distribution, with density exp(-(x - loc)^2 / (2 scale^2)) / (scale sqrt(2 pi)).

    >>> from gradus.distributions import Normal
    >>> Normal(gradus.tensor(0.0), gradus.tensor(1.0)).log_prob(gradus.tensor(0.0))
    tensor(-0.9189)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0
    _batched = {"loc": 0, "scale": 0}

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @property
    def mean(self):
        return self.loc

    mode = mean

    @property
    def stddev(self):
        return self.scale

    @property
    def variance(self):
        return self.stddev.pow(2)

    def sample(self, sample_shape=gradus.Size()):
        shape = self._extended_shape(sample_shape)
        with gradus.no_grad():
            return gradus.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape=gradus.Size()):
        drawn = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + drawn * self.scale

    def log_prob(self, value):
        self._validate_value(value)
        return -((value - self.loc) ** 2) / (2 * self.scale ** 2) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value):
        self._validate_value(value)
        return 0.5 * (1 + gradus.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value):
        return self.loc + self.scale * gradus.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self):
        return 0.5 + 0.5 * math.log(2 * math.pi) + gradus.log(self.scale)

    @property
    def _natural_params(self):
        return (self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal())

    def _log_normalizer(self, x, y):
        return -0.25 * x.pow(2) / y + 0.5 * gradus.log(-math.pi / y)
