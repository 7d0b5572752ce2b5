"""The generalized Pareto distribution."""
import gradus
from gradus.distributions import constraints
from gradus.distributions.distribution import Distribution
from gradus.distributions.utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution, with P(X > x) = (1 + concentration (x - loc) / scale)^(-1 / concentration) for x >= loc.

    For concentration 0 it is P(X > x) = exp((loc - x) / scale).
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True
    _batched = {"loc": 0, "scale": 0, "concentration": 0}

    def __init__(self, loc, scale, concentration, validate_args=None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        end = gradus.where(self.concentration < 0, self.loc - self.scale / self.concentration, gradus.inf)
        return constraints.interval(self.loc, end)

    def _without_zero(self):
        """Returns (mask, concentration). The mask is True where the concentration is 0. The returned concentration has 1 in place of 0, so that
        formulas can divide by it."""
        is_zero = gradus.isclose(self.concentration, gradus.zeros_like(self.concentration))
        return is_zero, gradus.where(is_zero, gradus.ones_like(self.concentration), self.concentration)

    @property
    def mean(self):
        finite = self.concentration < 1
        return gradus.where(finite, self.loc + self.scale / (1 - gradus.where(finite, self.concentration, 0.5)), gradus.nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        finite = self.concentration < 0.5
        c = gradus.where(finite, self.concentration, 0.25)
        return gradus.where(finite, self.scale ** 2 / ((1 - c) ** 2 * (1 - 2 * c)), gradus.nan)

    def rsample(self, sample_shape=gradus.Size()):
        return self.icdf(gradus.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value):
        self._validate_value(value)
        z = (value - self.loc) / self.scale
        is_zero, c = self._without_zero()
        power = 1 / c + gradus.ones_like(z)
        return -self.scale.log() - gradus.where(is_zero, z, gradus.where(power == 0, power, power * gradus.log1p(c * z)))

    def log_survival_function(self, value):
        """Returns log(1 - cdf(value))."""
        self._validate_value(value)
        z = (value - self.loc) / self.scale
        is_zero, c = self._without_zero()
        return gradus.where(is_zero, -z, -gradus.log1p(c * z) / c)

    def log_cdf(self, value):
        """Returns log(cdf(value))."""
        return gradus.log1p(-gradus.exp(self.log_survival_function(value)))

    def cdf(self, value):
        return gradus.exp(self.log_cdf(value))

    def icdf(self, value):
        is_zero, c = self._without_zero()
        log_survival = gradus.log1p(-value)
        return gradus.where(is_zero, self.loc - self.scale * log_survival, self.loc + self.scale / c * gradus.expm1(-c * log_survival))

    def entropy(self):
        return gradus.broadcast_to(gradus.log(self.scale) + self.concentration + 1, self._batch_shape)
