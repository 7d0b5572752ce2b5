"""The exponential distribution."""
import gradus
from gradus.distributions import constraints
from gradus.distributions.exp_family import ExponentialFamily
from gradus.distributions.utils import broadcast_all

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """The exponential distribution. Its density is rate * exp(-rate * x) for x >= 0."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _batched = {"rate": 0}

    def __init__(self, rate, validate_args=None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    @property
    def mean(self):
        return self.rate.reciprocal()

    stddev = mean

    @property
    def mode(self):
        return gradus.zeros_like(self.rate)

    @property
    def variance(self):
        return self.rate.pow(-2)

    def rsample(self, sample_shape=gradus.Size()):
        return gradus.empty(self._extended_shape(sample_shape), dtype=self.rate.dtype, device=self.rate.device).exponential_() / self.rate

    def log_prob(self, value):
        self._validate_value(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value):
        self._validate_value(value)
        return 1 - gradus.exp(-self.rate * value)

    def icdf(self, value):
        return -gradus.log1p(-value) / self.rate

    def entropy(self):
        return 1.0 - gradus.log(self.rate)

    @property
    def _natural_params(self):
        return (-self.rate,)

    def _log_normalizer(self, x):
        return -gradus.log(-x)
