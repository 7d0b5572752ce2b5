"""The gamma distribution."""
import gradus
from gradus.distributions import constraints
from gradus.distributions.exp_family import ExponentialFamily
from gradus.distributions.utils import broadcast_all

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """The gamma distribution, with density rate^concentration x^(concentration - 1) exp(-rate x) / gamma(concentration) for x >= 0."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _batched = {"concentration": 0, "rate": 0}

    def __init__(self, concentration, rate, validate_args=None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    @property
    def mean(self):
        return self.concentration / self.rate

    @property
    def mode(self):
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self):
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape=gradus.Size()):
        shape = self._extended_shape(sample_shape)
        value = gradus._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=gradus.finfo(value.dtype).tiny)  # outside autograd, because clamp's gradient is 0 at clamped elements
        return value

    def log_prob(self, value):
        value = gradus.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._validate_value(value)
        a, rate = self.concentration, self.rate
        return gradus.xlogy(a, rate) + gradus.xlogy(a - 1, value) - rate * value - gradus.lgamma(a)

    def entropy(self):
        a = self.concentration
        return a - gradus.log(self.rate) + gradus.lgamma(a) + (1.0 - a) * gradus.digamma(a)

    def cdf(self, value):
        self._validate_value(value)
        return gradus.special.gammainc(self.concentration, self.rate * value)

    @property
    def _natural_params(self):
        return (self.concentration - 1, -self.rate)

    def _log_normalizer(self, x, y):
        return gradus.lgamma(x + 1) + (x + 1) * gradus.log(-y.reciprocal())
