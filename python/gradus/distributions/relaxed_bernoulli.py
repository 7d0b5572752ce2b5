"""The relaxed Bernoulli distribution (concrete distribution), and the distribution of its log odds."""
import gradus
from gradus.distributions import constraints
from gradus.distributions._relaxed import Relaxed
from gradus.distributions.distribution import Distribution, _WithProbs
from gradus.distributions.transforms import SigmoidTransform
from gradus.distributions.utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(_WithProbs, Distribution):
    """The log odds of a RelaxedBernoulli variable: (logits + logistic noise) / temperature (Maddison, Mnih and Teh, 2017)."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    _batched = {"probs": 0, "logits": 0, "_given": 0}
    _shared = ("temperature",)

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        super().__init__(self._set_given(probs, logits), validate_args=validate_args)

    def rsample(self, sample_shape=gradus.Size()):
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        uniform = clamp_probs(gradus.rand(shape, dtype=probs.dtype, device=probs.device))
        return (uniform.log() - (-uniform).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value):
        self._validate_value(value)
        logits, value = broadcast_all(self.logits, value)
        way = logits - value.mul(self.temperature)
        return self.temperature.log() + way - 2 * way.exp().log1p()


class RelaxedBernoulli(Relaxed):
    """The distribution of values in (0, 1) that approach samples of Bernoulli(probs, logits) as `temperature` approaches 0.
    `temperature` is a tensor."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args=validate_args)
