"""Mixtures whose components are distributions of the same class."""
import gradus
from gradus.distributions import constraints
from gradus.distributions.categorical import Categorical
from gradus.distributions.distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture of distributions. mixture_distribution, a Categorical, draws the index of a component. component_distribution is a
    batch of distributions. Index i of its last batch dimension is component i.

    Raises ValueError if mixture_distribution is not a Categorical, component_distribution is not a Distribution, or the batch shapes do not match.
    """

    arg_constraints = {}

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        mixtures, batch_shape = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        if any(1 not in sizes and sizes[0] != sizes[1] for sizes in zip(reversed(mixtures), reversed(batch_shape))):
            raise ValueError(f"`mixture_distribution.batch_shape` ({mixtures}) is not compatible with `component_distribution.batch_shape`({batch_shape})")
        count, components = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if count != components:
            raise ValueError(f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` ({components})")
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        self._num_component, self._event_ndims = count, len(component_distribution.event_shape)
        super().__init__(batch_shape, component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = gradus.Size(batch_shape)
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._component_distribution = self._component_distribution.expand(batch_shape + (self._num_component,))
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        return new._finish_expanded(self, batch_shape)

    @constraints.dependent_property
    def support(self):
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self):
        """The categorical distribution that selects a component."""
        return self._mixture_distribution

    @property
    def component_distribution(self):
        """A batch of distributions. Component i of the mixture is at index i of the last batch dimension."""
        return self._component_distribution

    def _pad(self, x):
        """Returns `x` with a dimension of size 1 inserted before the event dimensions, so that it broadcasts over the components."""
        return x.unsqueeze(-1 - self._event_ndims)

    def _mean_over_components(self, x):
        """Returns the mean of `x` over the components, weighted by the probabilities of the components. The components are the last dimension of `x`
        before the event dimensions."""
        probs = self._mixture_distribution.probs
        mixtures = len(self._mixture_distribution.batch_shape)
        missing = 0 if mixtures == 1 else len(self.batch_shape) - mixtures
        probs = probs.reshape(probs.shape[:-1] + (1,) * missing + probs.shape[-1:] + (1,) * self._event_ndims)
        return gradus.sum(probs * x, dim=-1 - self._event_ndims)

    @property
    def mean(self):
        return self._mean_over_components(self._component_distribution.mean)

    @property
    def variance(self):
        components = self._component_distribution
        return self._mean_over_components(components.variance) + self._mean_over_components((components.mean - self._pad(self.mean)).pow(2.0))

    def cdf(self, x):
        return gradus.sum(self._component_distribution.cdf(self._pad(x)) * self._mixture_distribution.probs, dim=-1)

    def log_prob(self, x):
        self._validate_value(x)
        log_prob = self._component_distribution.log_prob(self._pad(x))
        return gradus.logsumexp(log_prob + gradus.log_softmax(self._mixture_distribution.logits, dim=-1), dim=-1)

    def sample(self, sample_shape=gradus.Size()):
        with gradus.no_grad():
            dim = len(sample_shape) + len(self.batch_shape)
            chosen = self._mixture_distribution.sample(sample_shape)
            values = self._component_distribution.sample(sample_shape)
            index = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1)).repeat((1,) * (chosen.dim() + 1) + tuple(self.event_shape))
            return gradus.gather(values, dim, index).squeeze(dim)

    def __repr__(self):
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
