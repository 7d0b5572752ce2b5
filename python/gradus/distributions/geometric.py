"""The geometric distribution."""
import gradus
from gradus.distributions import constraints
from gradus.distributions.distribution import Distribution, _WithProbs
from gradus.distributions.utils import broadcast_all
from gradus.nn.functional import binary_cross_entropy_with_logits

__all__ = ["Geometric"]


class Geometric(_WithProbs, Distribution):
    """The number of failures before the first success, if trials have the success probability `probs` or log odds `logits`.

    Raises ValueError unless exactly one of `probs` and `logits` is given, and for `probs` outside (0, 1].
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _batched = {"probs": 0, "logits": 0, "_given": 0}

    def __init__(self, probs=None, logits=None, validate_args=None):
        super().__init__(self._set_given(probs, logits), validate_args=validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            raise ValueError(f"Expected parameter probs ({type(self.probs).__name__} of shape {tuple(self.probs.shape)}) of distribution {self!r} "
                             f"to be positive but found invalid values:\n{self.probs.detach()[~(self.probs > 0)]}")

    @property
    def mean(self):
        return 1.0 / self.probs - 1.0

    @property
    def mode(self):
        return gradus.zeros_like(self.probs)

    @property
    def variance(self):
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape=gradus.Size()):
        with gradus.no_grad():
            drawn = gradus.empty(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device)
            return (drawn.uniform_(gradus.finfo(self.probs.dtype).tiny, 1).log() / (-self.probs).log1p()).floor()

    def log_prob(self, value):
        self._validate_value(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.clone(memory_format=gradus.contiguous_format)
        probs[(probs == 1) & (value == 0)] = 0  # so that value * log(1 - probs) is 0 instead of 0 * -inf = NaN
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
