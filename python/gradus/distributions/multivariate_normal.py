"""The multivariate normal distribution."""
import math

import gradus
from gradus.distributions import constraints
from gradus.distributions.distribution import Distribution
from gradus.distributions.utils import _batch_mv, _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mahalanobis(factors, vectors):
    """Returns x^T (L L^T)^-1 x for each lower triangular matrix L in `factors` and vector x in `vectors`.

    The batch dimensions of `factors` are broadcast to the last batch dimensions of `vectors`.
    """
    n, batch = vectors.size(-1), vectors.shape[:-1]
    outer, inner = vectors.dim() - factors.dim() + 1, factors.dim() - 2
    sizes = [size for of_factors, of_vectors in zip(factors.shape[:-2], batch[outer:]) for size in (of_vectors // of_factors, of_factors)]
    repeats, places = range(outer, outer + 2 * inner, 2), range(outer + 1, outer + 2 * inner, 2)
    # A permutation of the batch dimensions of `vectors`: first the dimensions along which vectors share a matrix, last the dimensions that select the
    # matrix.
    order = [*range(outer), *repeats, *places]
    split = vectors.reshape(*batch[:outer], *sizes, n).permute(*order, outer + 2 * inner)
    triangles = factors.reshape(-1, n, n)
    columns = split.reshape(-1, triangles.size(0), n).permute(1, 2, 0)
    squares = gradus.linalg.solve_triangular(triangles, columns, upper=False).pow(2).sum(-2).t()
    back = sorted(range(len(order)), key=order.__getitem__)
    return squares.reshape(split.shape[:-1]).permute(back).reshape(batch)


def _half_log_det(factors):
    """Returns log(det(L L^T)) / 2 for each lower triangular matrix L in `factors`."""
    return factors.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _precision_to_scale_tril(precision):
    """Returns the lower triangular matrix L with L L^T = precision^-1.

    Reverses the rows and columns of the precision matrix, because the Cholesky factor of the reversed matrix is L^-T with reversed rows and columns.
    """
    flipped = gradus.linalg.cholesky(gradus.flip(precision, (-2, -1)))
    identity = gradus.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return gradus.linalg.solve_triangular(gradus.flip(flipped, (-2, -1)).transpose(-2, -1), identity, upper=False)


class _OfMatrix(Distribution):
    """Base of distributions with a covariance matrix. One of scale_tril, covariance_matrix and precision_matrix is given; the others are computed."""

    _matrices = ("scale_tril", "covariance_matrix", "precision_matrix")

    def _set_matrix(self, batch_shape, scale_tril, covariance_matrix, precision_matrix):
        """Sets the attribute scale_tril, covariance_matrix or precision_matrix to the one matrix that is not None, expanded to batch_shape."""
        for name, matrix in zip(self._matrices, (scale_tril, covariance_matrix, precision_matrix)):
            if matrix is not None:
                setattr(self, name, matrix.expand(batch_shape + (-1, -1)))

    @staticmethod
    def _factor(scale_tril, covariance_matrix, precision_matrix):
        """Returns the Cholesky factor of the covariance matrix, computed from the one argument that is not None."""
        if scale_tril is not None:
            return scale_tril
        return gradus.linalg.cholesky(covariance_matrix) if covariance_matrix is not None else _precision_to_scale_tril(precision_matrix)


class MultivariateNormal(_OfMatrix):
    """Normal vectors with mean `loc` (..., n) and covariance matrix L L^T, where L is scale_tril (..., n, n).

    Exactly one of covariance_matrix, precision_matrix and scale_tril must be given, otherwise ValueError is raised.

    >>> from gradus.distributions import MultivariateNormal
    >>> MultivariateNormal(gradus.zeros(2), gradus.eye(2)).log_prob(gradus.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {"loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
                       "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True
    _batched = {"loc": 1, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}
    _shared = ("_unbroadcasted_scale_tril",)

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = [(name, m) for name, m in zip(self._matrices, (scale_tril, covariance_matrix, precision_matrix)) if m is not None]
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, matrix = given[0]
        if matrix.dim() < 2:
            raise ValueError(f"{'scale_tril matrix' if name == 'scale_tril' else name} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = gradus.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self._set_matrix(batch_shape, scale_tril, covariance_matrix, precision_matrix)
        self.loc = loc.expand(batch_shape + (-1,))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = self._factor(scale_tril, covariance_matrix, precision_matrix)

    def _expand_matrix(self, matrix):
        """Returns `matrix`, which has n x n matrices in its last two dimensions, expanded to the shape batch_shape + (n, n)."""
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        """The Cholesky factor of the covariance matrix, a lower triangular matrix (..., n, n)."""
        return self._expand_matrix(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self):
        """The covariance matrix L L^T (..., n, n), where L is scale_tril."""
        return self._expand_matrix(gradus.matmul(self._unbroadcasted_scale_tril, self._unbroadcasted_scale_tril.mT))

    @lazy_property
    def precision_matrix(self):
        """The precision matrix (L L^T)^-1 (..., n, n), i.e. the inverse of the covariance matrix, where L is scale_tril."""
        return self._expand_matrix(gradus.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self):
        return self.loc

    mode = mean

    @property
    def variance(self):
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape=gradus.Size()):
        normal = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, normal)

    def log_prob(self, value):
        self._validate_value(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - _half_log_det(self._unbroadcasted_scale_tril)

    def entropy(self):
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + _half_log_det(self._unbroadcasted_scale_tril)
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
