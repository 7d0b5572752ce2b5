"""The chi-squared distribution."""
from gradus.distributions import constraints
from gradus.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of the squares of `df` independent standard normal numbers."""

    arg_constraints = {"df": constraints.positive}
    _batched = Gamma._batched

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self):
        """Degrees of freedom."""
        return self.concentration * 2
