"""The continuous Bernoulli distribution."""
import math

import gradus
from gradus.distributions import constraints
from gradus.distributions.distribution import _WithProbs
from gradus.distributions.exp_family import ExponentialFamily
from gradus.distributions.utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs
from gradus.nn.functional import binary_cross_entropy_with_logits

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(_WithProbs, ExponentialFamily):
    """The continuous Bernoulli distribution, with density C probs^x (1 - probs)^(1 - x) on [0, 1] (Loaiza-Ganem and Cunningham, 2019).

    `logits`, the log odds, may be given instead of `probs`. At probs = 1/2 the formula of the normalizing constant C is 0 / 0. For probs between
    lims[0] and lims[1], C and the moments are computed with power series around 1/2. Raises ValueError unless exactly one of `probs` and `logits` is
    given.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _batched = {"probs": 0, "logits": 0, "_given": 0}
    _shared = ("_lims",)

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        self._check_one_given(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
            if validate_args is not None and not self.arg_constraints["probs"].check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self._given = self.probs = clamp_probs(self.probs)
        else:
            (self.logits,) = broadcast_all(logits)
            self._given = self.logits
        self._lims = lims
        super().__init__(self._given.size(), validate_args=validate_args)

    @lazy_property
    def probs(self):
        """The parameter `probs`, computed from `logits` and clamped to the open interval (0, 1)."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _far_from_half(self):
        """Returns a mask that is True for the elements of probs outside the interval from lims[0] to lims[1], which contains 1/2."""
        return gradus.max(gradus.le(self.probs, self._lims[0]), gradus.gt(self.probs, self._lims[1]))

    def _choose(self, formula, series):
        """Returns the elements of `formula` where probs is outside the interval from lims[0] to lims[1], which contains 1/2, and the elements of
        `series` elsewhere."""
        return gradus.where(self._far_from_half(), formula, series)

    def _cut_probs(self):
        """Returns probs with the elements between lims[0] and lims[1] replaced by lims[0]. Some formulas are 0 / 0 at 1/2, which lies in this
        interval. For the returned probs these formulas and their gradients are finite."""
        return self._choose(self.probs, self._lims[0] * gradus.ones_like(self.probs))

    def _cont_bern_log_norm(self):
        """Returns log(C), where C is the normalizing constant of the density C probs^x (1 - probs)^(1 - x)."""
        p = self._cut_probs()
        below, above = gradus.where(p <= 0.5, p, gradus.zeros_like(p)), gradus.where(p >= 0.5, p, gradus.ones_like(p))
        width = gradus.where(p <= 0.5, gradus.log1p(-2.0 * below), gradus.log(2.0 * above - 1.0))
        x = gradus.pow(self.probs - 0.5, 2)
        return self._choose(gradus.log(gradus.abs(gradus.log1p(-p) - gradus.log(p))) - width, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self):
        p, x = self._cut_probs(), self.probs - 0.5
        return self._choose(p / (2.0 * p - 1.0) + 1.0 / (gradus.log1p(-p) - gradus.log(p)), 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * gradus.pow(x, 2)) * x)

    @property
    def variance(self):
        p, x = self._cut_probs(), gradus.pow(self.probs - 0.5, 2)
        formula = p * (p - 1.0) / gradus.pow(1.0 - 2.0 * p, 2) + 1.0 / gradus.pow(gradus.log1p(-p) - gradus.log(p), 2)
        return self._choose(formula, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape=gradus.Size()):
        return self.icdf(gradus.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value):
        self._validate_value(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value):
        self._validate_value(value)
        p = self._cut_probs()
        inside = self._choose((gradus.pow(p, value) * gradus.pow(1.0 - p, 1.0 - value) + p - 1.0) / (2.0 * p - 1.0), value)
        return gradus.where(value <= 0.0, gradus.zeros_like(value), gradus.where(value >= 1.0, gradus.ones_like(value), inside))

    def icdf(self, value):
        p = self._cut_probs()
        return self._choose((gradus.log1p(-p + value * (2.0 * p - 1.0)) - gradus.log1p(-p)) / (gradus.log(p) - gradus.log1p(-p)), value)

    def entropy(self):
        of_zero, of_one = gradus.log1p(-self.probs), gradus.log(self.probs)
        return self.mean * (of_zero - of_one) - self._cont_bern_log_norm() - of_zero

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        far = gradus.max(gradus.le(x, self._lims[0] - 0.5), gradus.gt(x, self._lims[1] - 0.5))
        cut = gradus.where(far, x, (self._lims[0] - 0.5) * gradus.ones_like(x))
        formula = gradus.log(gradus.abs(gradus.expm1(cut))) - gradus.log(gradus.abs(cut))
        return gradus.where(far, formula, 0.5 * x + gradus.pow(x, 2) / 24.0 - gradus.pow(x, 4) / 2880.0)
