"""The Bernoulli distribution."""
import gradus
from gradus.distributions import constraints
from gradus.distributions.distribution import _WithProbs
from gradus.distributions.exp_family import ExponentialFamily
from gradus.distributions.utils import broadcast_all
from gradus.nn.functional import binary_cross_entropy_with_logits

__all__ = ["Bernoulli"]


class Bernoulli(_WithProbs, ExponentialFamily):
    """A value that is 1 with probability `probs` and 0 otherwise. `logits`, the log odds log(probs / (1 - probs)), may be given instead of `probs`.

    Raises ValueError unless exactly one of `probs` and `logits` is given, or if the given one violates its constraint.

    >>> from gradus.distributions import Bernoulli
    >>> Bernoulli(gradus.tensor([0.3])).mean
    tensor([0.3000])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _batched = {"probs": 0, "logits": 0, "_given": 0}

    def __init__(self, probs=None, logits=None, validate_args=None):
        super().__init__(self._set_given(probs, logits), validate_args=validate_args)

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        mode = (self.probs >= 0.5).to(self.probs)
        mode[self.probs == 0.5] = gradus.nan
        return mode

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=gradus.Size()):
        with gradus.no_grad():
            return gradus.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._validate_value(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand=True):
        values = gradus.arange(2, dtype=self._param.dtype, device=self._param.device).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values

    @property
    def _natural_params(self):
        return (gradus.logit(self.probs),)

    def _log_normalizer(self, x):
        return gradus.log1p(gradus.exp(x))
