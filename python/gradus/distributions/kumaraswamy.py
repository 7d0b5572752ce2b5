"""The Kumaraswamy distribution."""
import gradus
from gradus.distributions import constraints
from gradus.distributions.transformed_distribution import TransformedDistribution
from gradus.distributions.transforms import AffineTransform, PowerTransform
from gradus.distributions.uniform import Uniform
from gradus.distributions.utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """Values in [0, 1] with P(X <= x) = 1 - (1 - x^concentration1)^concentration0."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _expanded_too = ("concentration1", "concentration0")

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = a, b = broadcast_all(concentration1, concentration0)
        base = Uniform(gradus.full_like(b, 0), gradus.full_like(b, 1), validate_args=validate_args)
        transforms = [PowerTransform(b.reciprocal()), AffineTransform(1.0, -1.0), PowerTransform(a.reciprocal())]
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, n):
        """Returns E[x^n] = b B(1 + n / a, b), where a = concentration1, b = concentration0 and B is the beta function."""
        arg, b = 1 + n / self.concentration1, self.concentration0
        return b * gradus.exp(gradus.lgamma(arg) + gradus.lgamma(b) - gradus.lgamma(arg + b))

    @property
    def mean(self):
        return self._moment(1)

    @property
    def mode(self):
        a, b = self.concentration1, self.concentration0
        log_mode = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        return gradus.where((b < 1) | (a < 1), gradus.nan, log_mode).exp()

    @property
    def variance(self):
        return self._moment(2) - gradus.pow(self.mean, 2)

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        harmonic = gradus.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - gradus.log(a) - gradus.log(b)
