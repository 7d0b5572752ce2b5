"""The beta distribution."""
import gradus
from gradus.distributions import constraints
from gradus.distributions.dirichlet import Dirichlet
from gradus.distributions.exp_family import ExponentialFamily
from gradus.distributions.utils import _Number, broadcast_all

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """The beta distribution, with density x^(concentration1 - 1) (1 - x)^(concentration0 - 1) / B(concentration1, concentration0) on [0, 1]."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _batched = {"_dirichlet": 0}

    def __init__(self, concentration1, concentration0, validate_args=None):
        if isinstance(concentration1, _Number) and isinstance(concentration0, _Number):
            both = gradus.tensor([float(concentration1), float(concentration0)])
        else:
            both = gradus.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    @property
    def concentration1(self):
        """The first parameter. The density is proportional to x^(concentration1 - 1)."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self):
        """The second parameter. The density is proportional to (1 - x)^(concentration0 - 1)."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self):
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self):
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self):
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape=()):
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value):
        self._validate_value(value)
        return self._dirichlet.log_prob(gradus.stack([value, 1.0 - value], -1))

    def entropy(self):
        return self._dirichlet.entropy()

    @property
    def _natural_params(self):
        return (self.concentration1, self.concentration0)

    def _log_normalizer(self, x, y):
        return gradus.lgamma(x) + gradus.lgamma(y) - gradus.lgamma(x + y)
