"""The relaxed one-hot categorical distribution, and the distribution of its logarithm."""
import gradus
from gradus.distributions import constraints
from gradus.distributions._relaxed import Relaxed
from gradus.distributions.categorical import Categorical
from gradus.distributions.one_hot_categorical import _OfCategorical
from gradus.distributions.transforms import ExpTransform
from gradus.distributions.utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(_OfCategorical):
    """The logarithm of a RelaxedOneHotCategorical variable: log_softmax((logits + Gumbel noise) / temperature) (Maddison, Mnih and Teh, 2017)."""

    support = constraints.real_vector
    has_rsample = True
    _batched = {"_categorical": 0}
    _shared = ("temperature",)

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape=gradus.Size()):
        shape = self._extended_shape(sample_shape)
        uniform = clamp_probs(gradus.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-uniform.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value):
        self._validate_value(value)
        k = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        scale = gradus.full_like(self.temperature, float(k)).lgamma() - self.temperature.log().mul(-(k - 1))
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(Relaxed):
    """The distribution of vectors on the simplex that approach one-hot vectors as `temperature` approaches 0 (Jang et al., 2017). `temperature` is
    a tensor."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
