"""The Dirichlet distribution."""
import gradus
from gradus.distributions import constraints
from gradus.distributions.exp_family import ExponentialFamily
from gradus.nn.functional import one_hot

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """Vectors x (..., K) on the simplex, with a density proportional to the product of x_i^(concentration_i - 1). concentration: (..., K)."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _batched = {"concentration": 1}

    def __init__(self, concentration, validate_args=None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape=()):
        return gradus._sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._validate_value(value)
        c = self.concentration
        return gradus.xlogy(c - 1.0, value).sum(-1) + gradus.lgamma(c.sum(-1)) - gradus.lgamma(c).sum(-1)

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self):
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        at_corner = (self.concentration < 1).all(dim=-1)
        mode[at_corner] = one_hot(mode[at_corner].argmax(dim=-1), above.shape[-1]).to(mode)
        return mode

    @property
    def variance(self):
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self):
        c, total = self.concentration, self.concentration.sum(-1)
        return (gradus.lgamma(c).sum(-1) - gradus.lgamma(total) - (c.size(-1) - total) * gradus.digamma(total)
                - ((c - 1.0) * gradus.digamma(c)).sum(-1))

    @property
    def _natural_params(self):
        return (self.concentration,)

    def _log_normalizer(self, x):
        return x.lgamma().sum(-1) - gradus.lgamma(x.sum(-1))
