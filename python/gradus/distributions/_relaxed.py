"""Relaxed, the base class of distributions that are continuous relaxations of a discrete distribution."""
from gradus.distributions.transformed_distribution import TransformedDistribution


class Relaxed(TransformedDistribution):
    """A transformed distribution that reads its temperature, logits and probs from its base distribution."""

    @property
    def temperature(self):
        """The temperature. As the temperature approaches 0, the distribution approaches the discrete distribution that it relaxes."""
        return self.base_dist.temperature

    @property
    def logits(self):
        """The log odds of a binary distribution, or the log-probabilities of several classes."""
        return self.base_dist.logits

    @property
    def probs(self):
        """For a binary distribution, the probability of the value 1; for a categorical one, the probabilities of the classes."""
        return self.base_dist.probs
