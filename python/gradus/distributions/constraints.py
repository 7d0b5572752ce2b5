"""Regions in which parameters and values of distributions lie. `check` says of each event of a tensor if it lies inside."""
import gradus

__all__ = ["Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than", "greater_than_eq",
           "half_open_interval", "independent", "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial",
           "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector",
           "simplex", "square", "stack", "symmetric", "unit_interval"]


class Constraint:
    """A region. `event_dim` is how many of the last dimensions make an event, `is_discrete` is true for countable regions."""

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """True for each event of `value` that lies in the region."""
        raise NotImplementedError

    def __repr__(self):
        return type(self).__name__[1:] + "()"


# ---- Regions that depend on parameters --------------------------------------------------------------------------------------


class _Dependent(Constraint):
    """A region that depends on the parameters of a distribution, so that only the object knows it and not its class."""

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim
        super().__init__()

    def _known(self, name):
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
        """Returns the same with facts that are known for the class."""
        return _Dependent(is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
                          event_dim=self._event_dim if event_dim is NotImplemented else event_dim)

    def check(self, x):
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint):
    """True for a region that is known for an object alone."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that is a region. Read from the class it is a dependent region; read from an object it is the region that the function returns."""

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn):
        """Returns the property of a function: @dependent_property(event_dim=1)."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


# ---- Regions made of others -------------------------------------------------------------------------------------------------


def _expect(kind, name, value):
    if not isinstance(value, kind):
        raise AssertionError(f"{name} must be {'a' if kind is Constraint else 'an'} {kind.__name__}, got {type(value).__name__}")


def _all_of_last(valid, count, value, event_dim):
    """Reduces the last `count` dimensions of the result of a check by all(). ValueError: the value has fewer dimensions."""
    if valid.dim() < count:
        raise ValueError(f"Expected value.dim() >= {event_dim} but got {value.dim()}")
    return valid.reshape(valid.shape[:valid.dim() - count] + (-1,)).all(-1)


class _IndependentConstraint(Constraint):
    """Events whose entries all lie in another region."""

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
    """Values of a mixture: inside of the region for every component."""

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
    """A sequence of regions along a dimension."""

    def __init__(self, cseq, dim):
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self):
        return any(c.is_discrete for c in self.cseq)

    def _check_dim(self, value):
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for value with {value.dim()} dimensions")


class _Cat(_Parts):
    """Parts of the given lengths along a dimension, each in a region of its own."""

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
    """Slices along a dimension, each in a region of its own."""

    def __init__(self, cseq, dim=0):
        super().__init__(cseq, dim)

    @property
    def event_dim(self):
        most = max(c.event_dim for c in self.cseq)
        return most + 1 if self.dim + most < 0 else most

    def check(self, value):
        self._check_dim(value)
        return gradus.stack([c.check(part) for c, part in zip(self.cseq, value.unbind(self.dim))], self.dim)


# ---- Numbers ----------------------------------------------------------------------------------------------------------------


class _Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _Real(Constraint):
    """All numbers but NaN."""

    def check(self, value):
        return value == value


class _Bounded(Constraint):
    """Numbers between bounds, which are its attributes."""

    def __repr__(self):
        return f"{type(self).__name__[1:]}({', '.join(f'{name}={bound}' for name, bound in vars(self).items())})"


class _GreaterThan(_Bounded):
    """Above a bound."""

    def __init__(self, lower_bound):
        self.lower_bound = lower_bound

    def check(self, value):
        return self.lower_bound < value


class _GreaterThanEq(_GreaterThan):
    """At least a bound."""

    def check(self, value):
        return self.lower_bound <= value


class _IntegerGreaterThan(_GreaterThan):
    """Integers of at least a bound."""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound)


class _LessThan(_Bounded):
    """Below a bound."""

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        return value < self.upper_bound


class _IntegerLessThan(_LessThan):
    """Integers of at most a bound."""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value <= self.upper_bound)


class _Interval(_Bounded):
    """Between two bounds, both included."""

    def __init__(self, lower_bound, upper_bound):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value):
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Interval):
    """Between two bounds, the upper one excluded."""

    def check(self, value):
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _IntegerInterval(_Interval):
    """Integers between two bounds, both included."""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & super().check(value)


# ---- Vectors ----------------------------------------------------------------------------------------------------------------


class _OneHot(Constraint):
    """A 1 among zeros."""

    is_discrete = True
    event_dim = 1

    def check(self, value):
        return ((value == 0) | (value == 1)).all(-1) & value.sum(-1).eq(1)


class _Simplex(Constraint):
    """Numbers of at least 0 whose sum is 1, within 1e-6."""

    event_dim = 1

    def check(self, value):
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Counts with a sum of at most a bound."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, x):
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


# ---- Matrices ---------------------------------------------------------------------------------------------------------------


class _LowerTriangular(Constraint):
    """Square matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value):
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    """Lower triangles with a positive diagonal."""

    def check(self, value):
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Lower triangles with a positive diagonal and rows of length 1."""

    def check(self, value):
        tolerance = gradus.finfo(value.dtype).eps * value.size(-1) * 10
        lengths = gradus.linalg.vector_norm(value.detach(), dim=-1)
        return super().check(value) & ((lengths - 1).abs() <= tolerance).all(-1)


class _Square(Constraint):
    """Matrices with as many rows as columns."""

    event_dim = 2

    def check(self, value):
        return gradus.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=gradus.bool, device=value.device)


class _Symmetric(_Square):
    """Symmetric matrices, within 1e-6."""

    def check(self, value):
        square = super().check(value)
        return gradus.isclose(value, value.mT, atol=1e-6).flatten(-2).all(-1) if square.all() else square


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without a negative eigenvalue."""

    def check(self, value):
        symmetric = super().check(value)
        return gradus.linalg.eigvalsh(value).ge(0).all(-1) if symmetric.all() else symmetric


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices whose eigenvalues are positive."""

    def check(self, value):
        symmetric = super().check(value)
        return gradus.linalg.cholesky_ex(value).info.eq(0) if symmetric.all() else symmetric


# ---- The regions by name ----------------------------------------------------------------------------------------------------

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
