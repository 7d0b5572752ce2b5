"""The categorical distribution."""
import gradus
from gradus.distributions import constraints
from gradus.distributions.distribution import Distribution, _WithProbs

__all__ = ["Categorical"]


class Categorical(_WithProbs, Distribution):
    """The categorical distribution: an index in [0, K).

    `probs` (..., K) are the probabilities, which are normalized along the last dimension. `logits` (..., K) are their logarithms up to a constant.
    Raises ValueError unless exactly one of `probs` and `logits` is given.

    >>> from gradus.distributions import Categorical
    >>> Categorical(gradus.tensor([1.0, 1.0])).probs
    tensor([0.5000, 0.5000])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _binary = False
    _batched = {"probs": 1, "logits": 1, "_given": 1}
    _shared = ("_num_events",)

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._check_one_given(probs, logits)
        given, name = (probs, "probs") if probs is not None else (logits, "logits")
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self._given = self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self._given = self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = self._given.size(-1)
        super().__init__(self._given.size()[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self):
        return gradus.full(self._extended_shape(), gradus.nan, dtype=self.probs.dtype, device=self.probs.device)

    variance = mean

    @property
    def mode(self):
        return self.probs.argmax(dim=-1)

    def sample(self, sample_shape=gradus.Size()):
        sample_shape = gradus.Size(sample_shape)
        samples = gradus.multinomial(self.probs.reshape(-1, self._num_events), sample_shape.numel(), True)
        return samples.T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        self._validate_value(value)
        value, logits = gradus.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        logits = gradus.clamp(self.logits, min=gradus.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        values = gradus.arange(self._num_events, dtype=gradus.long, device=self._param.device).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values
