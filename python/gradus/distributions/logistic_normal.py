"""The logistic-normal distribution."""
from gradus.distributions import constraints
from gradus.distributions.normal import Normal
from gradus.distributions.transformed_distribution import TransformedDistribution
from gradus.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Vectors of n elements on the simplex, computed by StickBreakingTransform from n - 1 variables with the distribution Normal(loc, scale)."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base if base.batch_shape else base.expand([1]), StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self):
        """The means (..., n - 1) of the normal variables from which a vector of n elements is computed."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self):
        """The standard deviations (..., n - 1) of the normal variables from which a vector of n elements is computed."""
        return self.base_dist.base_dist.scale
