"""Invertible transforms of tensors, with the logarithm of the absolute value of their Jacobian determinant."""
import functools
import math
import operator

import gradus
from gradus.distributions import constraints
from gradus.distributions.utils import _Number, _sum_rightmost, broadcast_all, lazy_property, tril_matrix_to_vec, vec_to_tril_matrix
from gradus.nn.functional import logsigmoid, pad, softplus

__all__ = ["AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform", "CumulativeDistributionTransform", "ExpTransform",
           "IndependentTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform",
           "SoftmaxTransform", "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform"]


class Transform:
    """Base class of transforms from values that satisfy the constraint `domain` to values that satisfy `codomain`.

    bijective: True if the transform has an inverse. sign: for a function of one number, 1 if it is increasing and -1 if it is decreasing. cache_size:
    if it is 1, the last pair (x, y) is stored, so that inverting y returns x exactly and without computation.
    """

    bijective = False

    def __init__(self, cache_size=0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv = None
        if cache_size == 1:
            self._cached_x_y = None, None
        super().__init__()

    def __getstate__(self):
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self):
        """The number of dimensions of an event. Raises ValueError if events of the domain and of the codomain have different numbers of
        dimensions."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return self.domain.event_dim

    @property
    def inv(self):
        """The inverse transform, whose `inv` is this transform."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self):
        """1 if the function is increasing, -1 if it is decreasing."""
        raise NotImplementedError

    def _arguments(self):
        """Returns the arguments of this class's __init__ without cache_size. Used to copy the transform."""
        if type(self).__init__ is Transform.__init__:
            return ()
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def with_cache(self, cache_size=1):
        """Returns this transform if it has the given cache size, otherwise a copy with that cache size."""
        return self if self._cache_size == cache_size else type(self)(*self._arguments(), cache_size=cache_size)

    def __eq__(self, other):
        return self is other

    def __ne__(self, other):
        return not self == other

    def __call__(self, x):
        """Returns the transformed value y of x."""
        if self._cache_size == 0:
            return self._call(x)
        if x is not self._cached_x_y[0]:
            self._cached_x_y = x, self._call(x)
        return self._cached_x_y[1]

    def _inv_call(self, y):
        """Returns the value x whose transformed value is y, from the cache if possible."""
        if self._cache_size == 0:
            return self._inverse(y)
        if y is not self._cached_x_y[1]:
            self._cached_x_y = self._inverse(y), y
        return self._cached_x_y[0]

    def _call(self, x):
        """Returns the transformed value of x. Subclasses define it; __call__ adds the cache."""
        raise NotImplementedError

    def _inverse(self, y):
        """Returns the value x whose transformed value is y. Subclasses define it; _inv_call adds the cache."""
        raise NotImplementedError

    def log_abs_det_jacobian(self, x, y):
        """Returns log(abs(det(dy / dx))) for each event of x, where y = self(x)."""
        raise NotImplementedError

    def __repr__(self):
        return type(self).__name__ + "()"

    def forward_shape(self, shape):
        """Returns the shape of y for an x of shape `shape`."""
        return shape

    def inverse_shape(self, shape):
        """Returns the shape of x for a y of shape `shape`."""
        return shape


class _SameForAll(Transform):
    """Base of transforms without parameters. All instances of such a class are equal."""

    def __eq__(self, other):
        return isinstance(other, type(self))


# ---- Transforms composed of other transforms --------------------------------------------------------------------------------


class _InverseTransform(Transform):
    """The inverse of another transform."""

    def __init__(self, transform):
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    def __getstate__(self):
        return self.__dict__.copy()

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return self._inv.domain

    @property
    def bijective(self):
        return self._inv.bijective

    @property
    def sign(self):
        return self._inv.sign

    @property
    def inv(self):
        return self._inv

    def with_cache(self, cache_size=1):
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other):
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __repr__(self):
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x):
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x, y):
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._inv.forward_shape(shape)


def _with_event_dim(constraint, event_dim):
    """Returns `constraint` with its last batch dimensions reinterpreted as event dimensions, so that events have event_dim dimensions."""
    return constraints.independent(constraint, event_dim - constraint.event_dim) if event_dim > constraint.event_dim else constraint


class ComposeTransform(Transform):
    """The composition of transforms, which are applied from first to last."""

    def __init__(self, parts, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts

    def _arguments(self):
        return (self.parts,)

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        if not self.parts:
            return constraints.real
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim = max(event_dim + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return _with_event_dim(self.parts[0].domain, event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        if not self.parts:
            return constraints.real
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim = max(event_dim + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _with_event_dim(self.parts[-1].codomain, event_dim)

    @lazy_property
    def bijective(self):
        """True if all transforms are bijective."""
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self):
        """1 if the composition is increasing, -1 if it is decreasing: the product of the transforms' signs."""
        return functools.reduce(operator.mul, [part.sign for part in self.parts], 1)

    @property
    def inv(self):
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return gradus.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        terms, event_dim = [], self.domain.event_dim
        for part, before, after in zip(self.parts, values, values[1:]):
            terms.append(_sum_rightmost(part.log_abs_det_jacobian(before, after), event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self):
        return type(self).__name__ + "(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """Reinterprets the last reinterpreted_batch_ndims batch dimensions of a transform as event dimensions. The log-determinant is summed over these
    dimensions."""

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.base_transform, self.reinterpreted_batch_ndims = base_transform.with_cache(cache_size), reinterpreted_batch_ndims

    def _arguments(self):
        return self.base_transform, self.reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self):
        """True if the base transform is bijective."""
        return self.base_transform.bijective

    @property
    def sign(self):
        return self.base_transform.sign

    def _call(self, x):
        _check_dims(x.shape, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y):
        _check_dims(y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)


def _check_dims(shape, least):
    """Raises ValueError if `shape` has fewer than `least` dimensions."""
    if len(shape) < least:
        raise ValueError("Too few dimensions on input")


class _PartsTransform(Transform):
    """Base of transforms that apply a sequence of transforms to sections of a tensor along dimension `dim`."""

    def __init__(self, tseq, dim, cache_size):
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    @property
    def bijective(self):
        """True if all transforms are bijective."""
        return all(t.bijective for t in self.transforms)

    def _split(self, x, name="tensor"):
        """Returns the sections of `x`. Raises AssertionError if `dim` is not a dimension of x; `name` is for the error text."""
        if not -x.dim() <= self.dim < x.dim():
            raise AssertionError(f"dim {self.dim} out of range for {name} with {x.dim()} dimensions")
        return self._parts(x)

    def _call(self, x):
        return self._join([t(part) for t, part in zip(self.transforms, self._split(x))])

    def _inverse(self, y):
        return self._join([t.inv(part) for t, part in zip(self.transforms, self._split(y))])


class CatTransform(_PartsTransform):
    """Splits a tensor along `dim` into sections of the given lengths, applies transform i to section i, and concatenates the results."""

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")

    def _arguments(self):
        return self.transforms, self.dim, self.lengths

    @lazy_property
    def event_dim(self):
        """The number of dimensions of an event: the largest event_dim of the transforms."""
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self):
        """The sum of the lengths of the sections along `dim`."""
        return sum(self.lengths)

    def _parts(self, x):
        if x.size(self.dim) != self.length:
            raise AssertionError(f"x.size({self.dim}) = {x.size(self.dim)} must equal length {self.length}")
        return x.split(self.lengths, self.dim)

    def _join(self, parts):
        return gradus.cat(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        terms = [_sum_rightmost(t.log_abs_det_jacobian(*parts), self.event_dim - t.event_dim)
                 for t, *parts in zip(self.transforms, self._split(x, "x"), self._split(y, "y"))]
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return gradus.cat(terms, dim=dim) if dim < 0 else sum(terms)

    @constraints.dependent_property
    def domain(self):
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_PartsTransform):
    """Splits a tensor along `dim` into slices, applies transform i to slice i, and stacks the results."""

    def __init__(self, tseq, dim=0, cache_size=0):
        super().__init__(tseq, dim, cache_size)

    def _arguments(self):
        return self.transforms, self.dim

    def _parts(self, x):
        if x.size(self.dim) != len(self.transforms):
            raise AssertionError(f"x.size({self.dim}) = {x.size(self.dim)} must equal len(transforms) {len(self.transforms)}")
        return x.unbind(self.dim)

    def _join(self, parts):
        return gradus.stack(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        return self._join([t.log_abs_det_jacobian(*parts) for t, *parts in zip(self.transforms, self._split(x, "x"), self._split(y, "y"))])

    @constraints.dependent_property
    def domain(self):
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class ReshapeTransform(Transform):
    """Reshapes events of shape in_shape to out_shape. Raises ValueError if their numbers of elements differ."""

    bijective = True

    def __init__(self, in_shape, out_shape, cache_size=0):
        self.in_shape, self.out_shape = gradus.Size(in_shape), gradus.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    def _arguments(self):
        return self.in_shape, self.out_shape

    @constraints.dependent_property
    def domain(self):
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self):
        return constraints.independent(constraints.real, len(self.out_shape))

    @staticmethod
    def _batch(x, shape):
        """Returns the batch shape of `x`, whose events have the shape `shape`."""
        return x.shape[:x.dim() - len(shape)]

    def _call(self, x):
        return x.reshape(self._batch(x, self.in_shape) + self.out_shape)

    def _inverse(self, y):
        return y.reshape(self._batch(y, self.out_shape) + self.in_shape)

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(self._batch(x, self.in_shape))

    @staticmethod
    def _exchange(shape, old, new):
        """Returns `shape` after replacing its last sizes, `old`, by `new`. Raises ValueError if `shape` does not end with `old`."""
        _check_dims(shape, len(old))
        cut = len(shape) - len(old)
        if shape[cut:] != old:
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
        return shape[:cut] + new

    def forward_shape(self, shape):
        return self._exchange(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return self._exchange(shape, self.out_shape, self.in_shape)


# ---- Transforms of numbers --------------------------------------------------------------------------------------------------


class ExpTransform(_SameForAll):
    """The transform y = exp(x)."""

    domain, codomain, bijective, sign = constraints.real, constraints.positive, True, 1

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class PowerTransform(Transform):
    """The transform y = x^exponent of positive numbers x."""

    domain, codomain, bijective = constraints.positive, constraints.positive, True

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def _arguments(self):
        return (self.exponent,)

    @lazy_property
    def sign(self):
        """1 where the exponent is positive, so that the transform is increasing; -1 where it is negative."""
        return self.exponent.sign()

    def __eq__(self, other):
        return isinstance(other, PowerTransform) and self.exponent.eq(other.exponent).all().item()

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape):
        return gradus.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


def _clamp_unit(x):
    """Returns x clamped to the open interval (0, 1)."""
    limits = gradus.finfo(x.dtype)
    return x.clamp(min=limits.tiny, max=1.0 - limits.eps)


class SigmoidTransform(_SameForAll):
    """The transform y = 1 / (1 + exp(-x)), clamped to the open interval (0, 1)."""

    domain, codomain, bijective, sign = constraints.real, constraints.unit_interval, True, 1

    def _call(self, x):
        return _clamp_unit(gradus.sigmoid(x))

    def _inverse(self, y):
        y = _clamp_unit(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_SameForAll):
    """The transform y = log(1 + exp(x))."""

    domain, codomain, bijective, sign = constraints.real, constraints.positive, True, 1

    def _call(self, x):
        return softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x)


class TanhTransform(_SameForAll):
    """The transform y = tanh(x)."""

    domain, codomain, bijective, sign = constraints.real, constraints.interval(-1.0, 1.0), True, 1

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return gradus.atanh(y)

    def log_abs_det_jacobian(self, x, y):
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(_SameForAll):
    """The transform y = abs(x). The function is not injective; the inverse returns the nonnegative x."""

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


def _equal_parameters(a, b):
    """Returns True if a and b are equal. Each of them is a number or a tensor."""
    if isinstance(a, _Number) and isinstance(b, _Number):
        return a == b
    return bool((a == b).all())


class AffineTransform(Transform):
    """The transform y = loc + scale * x of events with event_dim dimensions."""

    bijective = True

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    def _arguments(self):
        return self.loc, self.scale, self._event_dim

    @property
    def event_dim(self):
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return _with_event_dim(constraints.real, self.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return _with_event_dim(constraints.real, self.event_dim)

    def __eq__(self, other):
        return isinstance(other, AffineTransform) and _equal_parameters(self.loc, other.loc) and _equal_parameters(self.scale, other.scale)

    @property
    def sign(self):
        return (self.scale > 0) - (self.scale < 0) if isinstance(self.scale, _Number) else self.scale.sign()

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        shape = x.shape
        result = gradus.full_like(x, math.log(abs(self.scale))) if isinstance(self.scale, _Number) else gradus.abs(self.scale).log()
        if self.event_dim:
            result = result.view(result.size()[:-self.event_dim] + (-1,)).sum(-1)
            shape = shape[:-self.event_dim]
        return result.expand(shape)

    def forward_shape(self, shape):
        return gradus.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """The transform y = F(x), where F is the cumulative distribution function of `distribution`. A sample x of `distribution` gives a uniform y."""

    bijective, codomain, sign = True, constraints.unit_interval, 1

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    def _arguments(self):
        return (self.distribution,)

    @property
    def domain(self):
        """The support of the distribution."""
        return self.distribution.support

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)


# ---- Transforms of vectors and matrices -------------------------------------------------------------------------------------


class SoftmaxTransform(_SameForAll):
    """The transform y = softmax(x) along the last dimension. Adding a constant to x does not change y; the inverse returns x = log(y)."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x):
        probs = (x - x.max(-1, True)[0]).exp()
        return probs / probs.sum(-1, True)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        _check_dims(shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_SameForAll):
    """Maps vectors x of n numbers to the simplex with n + 1 elements by stick breaking.

    Element i < n of the result is sigmoid(x_i - log(n - i)) * (1 - the sum of the elements before i). The last element is the rest, so that the sum
    is 1.
    """

    domain, codomain, bijective = constraints.real_vector, constraints.simplex, True

    @staticmethod
    def _offset(x, n):
        """Returns the vector n - 1, n - 2, ..., with as many numbers as x has elements along the last dimension."""
        return n - x.new_ones(x.shape[-1]).cumsum(-1)

    def _call(self, x):
        share = _clamp_unit(gradus.sigmoid(x - self._offset(x, x.shape[-1] + 1).log()))
        return pad(share, [0, 1], value=1) * pad((1 - share).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y):
        broken = y[..., :-1]
        rest = gradus.clamp(1 - broken.cumsum(-1), min=gradus.finfo(y.dtype).tiny)  # clamped because a sum can exceed 1 by rounding
        return broken.log() - rest.log() + self._offset(broken, y.shape[-1]).log()

    def log_abs_det_jacobian(self, x, y):
        x = x - self._offset(x, x.shape[-1] + 1).log()
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        _check_dims(shape, 1)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape):
        _check_dims(shape, 1)
        return shape[:-1] + (shape[-1] - 1,)


class CorrCholeskyTransform(Transform):
    """Maps vectors of n (n - 1) / 2 numbers to Cholesky factors of n x n correlation matrices (Lewandowski, Kurowicka and Joe, 2009).

    The numbers tanh(x) are partial correlations. They determine how each row's sum of squares, which is 1, is divided among the row's elements.
    """

    domain, codomain, bijective = constraints.real_vector, constraints.corr_cholesky, True

    def _call(self, x):
        x = gradus.tanh(x)
        eps = gradus.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        rest = (1 - r ** 2).sqrt().cumprod(-1)
        return (r + gradus.eye(r.shape[-1], dtype=r.dtype, device=r.device)) * pad(rest[..., :-1], [1, 0], value=1)

    def _inverse(self, y):
        rest = pad((1 - gradus.cumsum(y * y, dim=-1))[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(rest, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        # The derivative of y[i, j] with respect to its partial correlation is sqrt(1 - sum of y[i, k]^2 over k < j), where j < i. The cumsum
        # has this sum at [i, j - 1], hence diag=-2 instead of -1. For j = 0 the derivative is 1 and its log is 0.
        rest = tril_matrix_to_vec(1 - (y * y).cumsum(dim=-1), diag=-2)
        return 0.5 * rest.log().sum(-1) + -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(dim=-1)

    def forward_shape(self, shape):
        _check_dims(shape, 1)
        n = shape[-1]
        side = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if side * (side - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (side, side)

    def inverse_shape(self, shape):
        _check_dims(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return shape[:-2] + (shape[-1] * (shape[-1] - 1) // 2,)


class LowerCholeskyTransform(_SameForAll):
    """Maps square matrices to lower triangular matrices with a positive diagonal: elements above the diagonal become 0, and exp() is applied to the
    diagonal."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_SameForAll):
    """Maps square matrices x to positive-definite matrices L L^T, where L = LowerCholeskyTransform()(x)."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(gradus.linalg.cholesky(y))
