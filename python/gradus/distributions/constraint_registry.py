"""Registries that map a constraint to a transform from unconstrained real numbers to the constrained values.

`biject_to` returns bijections, which Hamiltonian Monte Carlo needs. `transform_to` returns any transform, which is sufficient for optimization.
"""
from gradus.distributions import constraints, transforms
from gradus.distributions.utils import _Number

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Maps the class of a constraint to a function that returns a transform for a constraint of that class.

    >>> from gradus.distributions import constraints, transform_to
    >>> transform_to(constraints.simplex)
    SoftmaxTransform()
    """

    def __init__(self):
        self._registry = {}
        super().__init__()

    def register(self, constraint, factory=None):
        """Registers `factory`, a function from a constraint to a transform, for the class of `constraint`. Without `factory`, returns a decorator
        that registers a function.

        Raises TypeError if `constraint` is neither a Constraint nor a subclass of it.
        """
        if factory is None:
            return lambda function: self.register(constraint, function)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint):
        """Returns a transform to the values that satisfy `constraint`. Raises NotImplementedError if none is registered for the constraint's
        class."""
        if type(constraint) not in self._registry:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return self._registry[type(constraint)](constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _to_interval(constraint):
    """Returns a transform to the interval of the constraint: a sigmoid, scaled and shifted."""
    lower, upper = constraint.lower_bound, constraint.upper_bound
    if isinstance(lower, _Number) and isinstance(upper, _Number) and (lower, upper) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(lower, upper - lower)])


def _above(constraint):
    """Returns a transform to numbers above the constraint's lower bound: lower + exp(x)."""
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)])


def _below(constraint):
    """Returns a transform to numbers below the constraint's upper bound: upper - exp(x)."""
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)])


def _register_by_parts(registry):
    """Registers transforms for the constraints independent, cat and stack, which are composed of other constraints. The transforms of those other
    constraints are looked up in `registry`."""
    registry.register(constraints.independent, lambda c: transforms.IndependentTransform(registry(c.base_constraint), c.reinterpreted_batch_ndims))
    registry.register(constraints.cat, lambda c: transforms.CatTransform([registry(part) for part in c.cseq], c.dim, c.lengths))
    registry.register(constraints.stack, lambda c: transforms.StackTransform([registry(part) for part in c.cseq], c.dim))


for _registry in (biject_to, transform_to):
    _register_by_parts(_registry)
    _registry.register(constraints.real, lambda c: transforms.identity_transform)
    _registry.register(constraints.greater_than, _above)
    _registry.register(constraints.greater_than_eq, _above)
    _registry.register(constraints.less_than, _below)
    _registry.register(constraints.interval, _to_interval)
    _registry.register(constraints.half_open_interval, _to_interval)
    _registry.register(constraints.corr_cholesky, lambda c: transforms.CorrCholeskyTransform())
biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda c: transforms.PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda c: transforms.PositiveDefiniteTransform())
