"""Constraints on parameters and values of distributions. `check` tells for each event in a tensor whether it satisfies the constraint."""
import gradus

__all__ = ["Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than", "greater_than_eq",
           "half_open_interval", "independent", "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial",
           "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector",
           "simplex", "square", "stack", "symmetric", "unit_interval"]


class Constraint:
    """Base class of constraints.

    event_dim: the number of last dimensions of a tensor that form one event, i.e. one random value. is_discrete: True if the set of valid values is
    countable.
    """

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """Returns a bool tensor with the shape of `value` without the event dimensions, True for each event that satisfies the constraint."""
        raise NotImplementedError

    def __repr__(self):
        return type(self).__name__[1:] + "()"


# ---- Constraints that depend on parameters ----------------------------------------------------------------------------------


class _Dependent(Constraint):
    """A constraint that depends on the parameters of a distribution. It is known for an instance, but not for the class of the distribution."""

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim
        super().__init__()

    def _known(self, name):
        """Returns the attribute `name`, which is "is_discrete" or "event_dim". Raises NotImplementedError if its value was not given to the
        constructor."""
        value = getattr(self, "_" + name)
        if value is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return value

    @property
    def is_discrete(self):
        return self._known("is_discrete")

    @property
    def event_dim(self):
        return self._known("event_dim")

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        """Returns a copy in which is_discrete and event_dim have the given values."""
        return _Dependent(is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
                          event_dim=self._event_dim if event_dim is NotImplemented else event_dim)

    def check(self, x):
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint):
    """Returns True if `constraint` depends on the parameters of a distribution. In that case it is known for an instance, but not for the class of
    the distribution."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property whose value is a constraint. Reading it from an instance returns fn(instance). Reading it from the class returns the property
    itself, which is a dependent constraint."""

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn):
        """Returns the property for the function `fn`, so that @dependent_property(event_dim=1) can be used as a decorator."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


# ---- Constraints composed of other constraints ------------------------------------------------------------------------------


def _expect(kind, name, value):
    """Raises AssertionError if the argument `value`, named `name`, is not of the class `kind`."""
    if not isinstance(value, kind):
        raise AssertionError(f"{name} must be {'a' if kind is Constraint else 'an'} {kind.__name__}, got {type(value).__name__}")


def _all_of_last(valid, count, value, event_dim):
    """Returns `valid`, the result of a check, reduced by all() over the last `count` dimensions.

    Raises ValueError if `valid` has fewer than `count` dimensions; value and event_dim are for the error text.
    """
    if valid.dim() < count:
        raise ValueError(f"Expected value.dim() >= {event_dim} but got {value.dim()}")
    return valid.reshape(valid.shape[:valid.dim() - count] + (-1,)).all(-1)


class _IndependentConstraint(Constraint):
    """Requires that all elements of an event satisfy base_constraint. An event has the event dimensions of base_constraint and, before them,
    reinterpreted_batch_ndims more dimensions."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        _expect(Constraint, "base_constraint", base_constraint)
        _expect(int, "reinterpreted_batch_ndims", reinterpreted_batch_ndims)
        if reinterpreted_batch_ndims < 0:
            raise AssertionError(f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}")
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value):
        return _all_of_last(self.base_constraint.check(value), self.reinterpreted_batch_ndims, value, self.event_dim)

    def __repr__(self):
        return f"{type(self).__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """Requires that a value of a mixture satisfies base_constraint for every component of the mixture."""

    def __init__(self, base_constraint):
        _expect(Constraint, "base_constraint", base_constraint)
        self.base_constraint = base_constraint

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim

    def check(self, value):
        valid = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return valid.reshape(valid.shape[:value.dim() - self.event_dim] + (-1,)).all(-1)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_constraint!r})"


class _Parts(Constraint):
    """Base of constraints on tensors that are divided along dimension `dim`. `cseq` has one constraint for each part of the tensor."""

    def __init__(self, cseq, dim):
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self):
        return any(c.is_discrete for c in self.cseq)

    def _check_dim(self, value):
        """Raises AssertionError if `dim` is not a dimension of `value`."""
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for value with {value.dim()} dimensions")


class _Cat(_Parts):
    """Splits a value along `dim` into sections of the given lengths. Section i must satisfy the constraint cseq[i]."""

    def __init__(self, cseq, dim=0, lengths=None):
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})")

    @property
    def event_dim(self):
        return max(c.event_dim for c in self.cseq)

    def check(self, value):
        self._check_dim(value)
        starts = [sum(self.lengths[:i]) for i in range(len(self.lengths))]
        return gradus.cat([c.check(value.narrow(self.dim, *part)) for c, *part in zip(self.cseq, starts, self.lengths)], self.dim)


class _Stack(_Parts):
    """Splits a value along `dim` into slices. Slice i must satisfy the constraint cseq[i]."""

    def __init__(self, cseq, dim=0):
        super().__init__(cseq, dim)

    @property
    def event_dim(self):
        most = max(c.event_dim for c in self.cseq)
        return most + 1 if self.dim + most < 0 else most

    def check(self, value):
        self._check_dim(value)
        return gradus.stack([c.check(part) for c, part in zip(self.cseq, value.unbind(self.dim))], self.dim)


# ---- Constraints on numbers -------------------------------------------------------------------------------------------------


class _Boolean(Constraint):
    """The numbers 0 and 1."""

    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _Real(Constraint):
    """All numbers except NaN."""

    def check(self, value):
        return value == value


class _Bounded(Constraint):
    """Base of constraints that have bounds as attributes. repr() shows these bounds."""

    def __repr__(self):
        return f"{type(self).__name__[1:]}({', '.join(f'{name}={bound}' for name, bound in vars(self).items())})"


class _GreaterThan(_Bounded):
    """Numbers greater than a bound."""

    def __init__(self, lower_bound):
        self.lower_bound = lower_bound

    def check(self, value):
        return self.lower_bound < value


class _GreaterThanEq(_GreaterThan):
    """Numbers greater than or equal to a bound."""

    def check(self, value):
        return self.lower_bound <= value


class _IntegerGreaterThan(_GreaterThan):
    """Integers greater than or equal to a bound."""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound)


class _LessThan(_Bounded):
    """Numbers less than a bound."""

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        return value < self.upper_bound


class _IntegerLessThan(_LessThan):
    """Integers less than or equal to a bound."""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value <= self.upper_bound)


class _Interval(_Bounded):
    """Numbers between two bounds, inclusive."""

    def __init__(self, lower_bound, upper_bound):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value):
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Interval):
    """Numbers between two bounds, including the lower and excluding the upper one."""

    def check(self, value):
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _IntegerInterval(_Interval):
    """Integers between two bounds, inclusive."""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & super().check(value)


# ---- Constraints on vectors -------------------------------------------------------------------------------------------------


class _OneHot(Constraint):
    """One-hot vectors: one element is 1, all others are 0."""

    is_discrete = True
    event_dim = 1

    def check(self, value):
        return ((value == 0) | (value == 1)).all(-1) & value.sum(-1).eq(1)


class _Simplex(Constraint):
    """Vectors of nonnegative numbers whose sum is 1, with a tolerance of 1e-6."""

    event_dim = 1

    def check(self, value):
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Vectors of nonnegative counts whose sum is at most a bound."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, x):
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


# ---- Constraints on matrices ------------------------------------------------------------------------------------------------


class _LowerTriangular(Constraint):
    """Square matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value):
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value):
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Cholesky factors of correlation matrices: lower triangular, with a positive diagonal and rows of norm 1."""

    def check(self, value):
        tolerance = gradus.finfo(value.dtype).eps * value.size(-1) * 10
        lengths = gradus.linalg.vector_norm(value.detach(), dim=-1)
        return super().check(value) & ((lengths - 1).abs() <= tolerance).all(-1)


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value):
        return gradus.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=gradus.bool, device=value.device)


class _Symmetric(_Square):
    """Symmetric matrices, with a tolerance of 1e-6."""

    def check(self, value):
        square = super().check(value)
        return gradus.isclose(value, value.mT, atol=1e-6).flatten(-2).all(-1) if square.all() else square


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value):
        symmetric = super().check(value)
        return gradus.linalg.eigvalsh(value).ge(0).all(-1) if symmetric.all() else symmetric


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices with positive eigenvalues."""

    def check(self, value):
        symmetric = super().check(value)
        return gradus.linalg.cholesky_ex(value).info.eq(0) if symmetric.all() else symmetric


# ---- Public names of the constraints ----------------------------------------------------------------------------------------

dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
