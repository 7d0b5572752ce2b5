"""The class of exponential families."""
import gradus
from gradus.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Distributions with density exp(<t(x), theta> - F(theta) + k(x)): natural parameters theta, log normalizer F, carrier measure k."""

    @property
    def _natural_params(self):
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self):
        raise NotImplementedError

    def entropy(self):
        """Returns the entropy F(theta) - <theta, grad F(theta)> - E[k(x)] (Nielsen and Nock, 2010)."""
        params = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*params)
        result = normalizer - self._mean_carrier_measure
        for param, grad in zip(params, gradus.autograd.grad(normalizer.sum(), params, create_graph=True)):
            result = result - (param * grad).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
