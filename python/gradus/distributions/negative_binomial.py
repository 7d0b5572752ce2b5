"""The negative binomial distribution."""
import gradus
from gradus.distributions import constraints
from gradus.distributions.distribution import Distribution, _WithProbs
from gradus.distributions.gamma import Gamma
from gradus.distributions.utils import lazy_property
from gradus.nn.functional import logsigmoid

__all__ = ["NegativeBinomial"]


class NegativeBinomial(_WithProbs, Distribution):
    """The distribution of the number of successes before `total_count` failures. Each trial succeeds with probability `probs` (log odds `logits`).

    Raises ValueError unless exactly one of `probs` and `logits` is given.
    """

    arg_constraints = {"total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0), "logits": constraints.real}
    support = constraints.nonnegative_integer
    _batched = {"total_count": 0, "probs": 0, "logits": 0, "_given": 0}

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        shape = self._set_given(probs, logits, total_count=total_count)
        self.total_count = self.total_count.type_as(self._given)
        super().__init__(shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.total_count * gradus.exp(self.logits)

    @property
    def mode(self):
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self):
        return self.mean / gradus.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self):
        """A gamma distribution. If a rate is drawn from it, a Poisson count with this rate has the negative binomial distribution."""
        return Gamma(self.total_count, gradus.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape=gradus.Size()):
        with gradus.no_grad():
            return gradus.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value):
        self._validate_value(value)
        n = self.total_count
        normalizer = -gradus.lgamma(n + value) + gradus.lgamma(1.0 + value) + gradus.lgamma(n)
        return n * logsigmoid(-self.logits) + value * logsigmoid(self.logits) - normalizer.masked_fill(n + value == 0.0, 0.0)
