"""The multinomial distribution."""
import gradus
from gradus.distributions import constraints
from gradus.distributions.binomial import Binomial
from gradus.distributions.categorical import Categorical
from gradus.distributions.one_hot_categorical import _OfCategorical
from gradus.distributions.utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(_OfCategorical):
    """The number of times that each index occurs among `total_count` samples of Categorical(probs, logits), as a vector (..., K).

    Raises NotImplementedError if total_count is not an int.
    """

    _batched = {"_categorical": 0, "_binomial": 1}
    _shared = ("total_count",)

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count, probs=self.probs)  # the distribution of a single element of the vector of counts
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def mean(self):
        return self.probs * self.total_count

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=gradus.Size()):
        drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
        counts = gradus.zeros(self._extended_shape(sample_shape), dtype=drawn.dtype, device=drawn.device)
        return counts.scatter_add_(-1, drawn, gradus.ones_like(drawn)).type_as(self.probs)

    def entropy(self):
        n = gradus.tensor(self.total_count)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        doubles = (gradus.exp(self._binomial.log_prob(counts)) * gradus.lgamma(counts + 1)).sum([0, -1])
        return n * self._categorical.entropy() - gradus.lgamma(n + 1) + doubles

    def log_prob(self, value):
        self._validate_value(value)
        logits, value = broadcast_all(self.logits, value)
        logits = gradus.where((value == 0) & (logits == -gradus.inf), 0.0, logits)
        return gradus.lgamma(value.sum(-1) + 1) - gradus.lgamma(value + 1).sum(-1) + (logits * value).sum(-1)
