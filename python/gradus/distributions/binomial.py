"""The binomial distribution."""
import gradus
from gradus.distributions import constraints
from gradus.distributions.distribution import Distribution, _WithProbs

__all__ = ["Binomial"]


def _clamp_by_zero(x):
    """Returns max(x, 0), whose gradient at 0 is 1/2."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(_WithProbs, Distribution):
    """The number of successes among `total_count` trials, each with success probability `probs` or log odds `logits`.

    Raises ValueError unless exactly one of `probs` and `logits` is given.
    """

    arg_constraints = {"total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real}
    has_enumerate_support = True
    _batched = {"total_count": 0, "probs": 0, "logits": 0, "_given": 0}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        shape = self._set_given(probs, logits, total_count=total_count)
        self.total_count = self.total_count.type_as(self._given)
        super().__init__(shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=gradus.Size()):
        shape = self._extended_shape(sample_shape)
        with gradus.no_grad():
            return gradus.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        self._validate_value(value)
        n = self.total_count
        normalizer = n * _clamp_by_zero(self.logits) + n * gradus.log1p(gradus.exp(-gradus.abs(self.logits))) - gradus.lgamma(n + 1)
        return value * self.logits - gradus.lgamma(value + 1) - gradus.lgamma(n - value + 1) - normalizer

    def entropy(self):
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(gradus.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        count = self._one_count("enumerate_support")
        values = gradus.arange(1 + count, dtype=self._param.dtype, device=self._param.device).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values

    def _one_count(self, function):
        """Returns total_count as an int. Raises NotImplementedError if total_count differs within the batch; `function` is named in the error
        text."""
        count = int(self.total_count.max())
        if self.total_count.min() != count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{function}`.")
        return count
