"""Categorical distributions whose values are one-hot vectors."""
import gradus
from gradus.distributions import constraints
from gradus.distributions.categorical import Categorical
from gradus.distributions.distribution import Distribution
from gradus.nn.functional import one_hot

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class _OfCategorical(Distribution):
    """Base of distributions whose values are vectors (..., K) and whose parameters are those of a categorical distribution."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _batched = {"_categorical": 0}

    @property
    def logits(self):
        """The log-probabilities of the K classes, of shape (..., K)."""
        return self._categorical.logits

    @property
    def probs(self):
        """The probabilities of the K classes, of shape (..., K)."""
        return self._categorical.probs

    @property
    def param_shape(self):
        """The shape of `probs` or `logits`, whichever was given to the constructor."""
        return self._categorical.param_shape

    def _new(self, *args, **kwargs):
        """Returns param.new(*args, **kwargs), a new tensor with the dtype and device of the parameter that was given to the constructor."""
        return self._categorical._new(*args, **kwargs)

    @property
    def _param(self):
        """The tensor `probs` or `logits`, whichever was given to the constructor."""
        return self._categorical._param


class OneHotCategorical(_OfCategorical):
    """The distribution of one-hot vectors (..., K). The index of the element 1 has the distribution Categorical(probs, logits)."""

    support = constraints.one_hot
    has_enumerate_support = True
    _batched = {"_categorical": 0}

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        return one_hot(self.probs.argmax(dim=-1), num_classes=self.probs.shape[-1]).to(self.probs)

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=gradus.Size()):
        return one_hot(self._categorical.sample(sample_shape), self._categorical._num_events).to(self.probs)

    def log_prob(self, value):
        self._validate_value(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        n = self.event_shape[0]
        values = gradus.eye(n, dtype=self._param.dtype, device=self._param.device).view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n,) + self.batch_shape + (n,)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical with rsample. The gradient of a sample is passed to the probabilities unchanged, as the straight-through estimator does
    (Bengio et al., 2013)."""

    has_rsample = True

    def rsample(self, sample_shape=gradus.Size()):
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
