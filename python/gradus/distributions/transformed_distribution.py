"""TransformedDistribution, the distribution of transformed values of another distribution."""
import functools
import operator

import gradus
from gradus.distributions import constraints
from gradus.distributions.distribution import Distribution
from gradus.distributions.independent import Independent
from gradus.distributions.transforms import ComposeTransform, Transform
from gradus.distributions.utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of y = t(x), where x has the base distribution and t is a transform or the composition of a list of transforms.

    The density is p(y) = p(x) / abs(det(dy / dx)). Raises ValueError if `transforms` is neither a Transform nor a list of Transforms, or if samples
    of the base distribution have fewer dimensions than the domain.

    >>> from gradus.distributions import ExpTransform, Normal, TransformedDistribution
    >>> TransformedDistribution(Normal(0.0, 1.0), ExpTransform()).log_prob(gradus.tensor(1.0))
    tensor(-0.9189)
    """

    arg_constraints = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        if not isinstance(transforms, (Transform, list)):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        whole = ComposeTransform(self.transforms)
        shape, event_dim = base_distribution.batch_shape + base_distribution.event_shape, len(base_distribution.event_shape)
        domain_dim, codomain_dim = whole.domain.event_dim, whole.codomain.event_dim
        if len(shape) < domain_dim:
            raise ValueError(f"base_distribution needs to have shape with size at least {domain_dim}, but got {shape}.")
        forward_shape = whole.forward_shape(shape)
        wanted = whole.inverse_shape(forward_shape)
        if shape != wanted:
            base_distribution = base_distribution.expand(wanted[:len(wanted) - event_dim])
        if domain_dim > event_dim:
            base_distribution = Independent(base_distribution, domain_dim - event_dim)
        self.base_dist = base_distribution
        cut = len(forward_shape) - max(codomain_dim, event_dim + codomain_dim - domain_dim)
        super().__init__(forward_shape[:cut], forward_shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(self._own_class(), _instance)
        batch_shape = gradus.Size(batch_shape)
        shape = batch_shape + self.event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[:len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        for name in self._expanded_too:
            setattr(new, name, getattr(self, name).expand(batch_shape))
        return new._finish_expanded(self, batch_shape)

    _expanded_too = ()  # names of the tensor attributes that a subclass adds; `expand` expands them too

    def _own_class(self):
        """Returns the most derived class of gradus.distributions that `self` is an instance of.

        `self` may be an instance of a user's subclass of that class. `expand` passes the returned class to _get_checked_instance, which raises
        NotImplementedError if the user's subclass overrides __init__.
        """
        return next(cls for cls in type(self).__mro__ if cls.__module__.startswith(__package__ + "."))

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        last, event_dim = self.transforms[-1].codomain, len(self.event_shape)
        return constraints.independent(last, event_dim - last.event_dim) if event_dim > last.event_dim else last

    @property
    def has_rsample(self):
        """True if the base distribution implements rsample."""
        return self.base_dist.has_rsample

    def _transformed(self, x):
        """Returns `x` with all transforms applied to it, from first to last."""
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape=gradus.Size()):
        with gradus.no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=gradus.Size()):
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        self._validate_value(value)
        event_dim, log_prob = len(self.event_shape), 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(value)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            log_prob = log_prob - _sum_rightmost(transform.log_abs_det_jacobian(x, value), event_dim - transform.domain.event_dim)
            value = x
        return log_prob + _sum_rightmost(self.base_dist.log_prob(value), event_dim - len(self.base_dist.event_shape))

    def _turned(self, probability):
        """Converts P(X <= x) to P(Y <= y) or back, where Y = f(X), y = f(x) and f is the composed transform. If f is increasing, the two
        probabilities are equal. If f is decreasing, Y <= y means X >= x, so the result is 1 - probability."""
        sign = functools.reduce(operator.mul, [t.sign for t in self.transforms], 1)
        return probability if isinstance(sign, int) and sign == 1 else sign * (probability - 0.5) + 0.5

    def cdf(self, value):
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        self.base_dist._validate_value(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value):
        return self._transformed(self.base_dist.icdf(self._turned(value)))
