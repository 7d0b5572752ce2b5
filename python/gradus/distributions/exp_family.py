"""ExponentialFamily, the base class of exponential families."""
import gradus
from gradus.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Distributions with density exp(<t(x), theta> - F(theta) + k(x)).

    theta are the natural parameters, F is the log normalizer, t(x) the sufficient statistic and k the carrier measure.
    """

    @property
    def _natural_params(self):
        """The tuple of natural parameters theta. They are factors in the term <t(x), theta> of the log density, where t(x) is the sufficient
        statistic."""
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        """Returns the log normalizer F(theta), which is subtracted in the log density so that the density integrates to 1."""
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self):
        """The mean E[k(x)], where k(x) is the term of the log density that does not depend on the parameters (the carrier measure)."""
        raise NotImplementedError

    def entropy(self):
        """Returns the entropy F(theta) - <theta, grad F(theta)> - E[k(x)] (Nielsen and Nock, 2010), of shape batch_shape.

        theta are the natural parameters, F is the log normalizer and k the carrier measure.
        """
        params = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*params)
        result = normalizer - self._mean_carrier_measure
        for param, grad in zip(params, gradus.autograd.grad(normalizer.sum(), params, create_graph=True)):
            result = result - (param * grad).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
