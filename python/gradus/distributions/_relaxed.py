"""The parameters of relaxed discrete distributions, which are those of the distribution that they transform."""
from gradus.distributions.transformed_distribution import TransformedDistribution


class Relaxed(TransformedDistribution):
    """A transformed distribution whose parameters are those of the first one."""

    @property
    def temperature(self):
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self):
        """The log odds, or the logarithms of the probabilities of several classes."""
        return self.base_dist.logits

    @property
    def probs(self):
        """The probabilities."""
        return self.base_dist.probs
