"""The multivariate normal distribution whose covariance matrix is a low-rank matrix plus a diagonal matrix."""
import math

import gradus
from gradus.distributions import constraints
from gradus.distributions.distribution import Distribution
from gradus.distributions.multivariate_normal import _batch_mahalanobis, _half_log_det
from gradus.distributions.utils import _batch_mv, _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _identity_plus(matrix):
    """Returns I + matrix."""
    return matrix + gradus.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


def _batch_capacitance_tril(factor, diagonal):
    """Returns the Cholesky factor of the capacitance matrix I + W^T D^-1 W, where W = `factor` and D = diag(diagonal)."""
    return gradus.linalg.cholesky(_identity_plus(gradus.matmul(factor.mT / diagonal.unsqueeze(-2), factor)))


def _batch_lowrank_logdet(factor, diagonal, capacitance_tril):
    """Returns log(det(W W^T + D)) by the matrix determinant lemma, where W = `factor` and D = diag(diagonal). capacitance_tril: the Cholesky factor
    of I + W^T D^-1 W."""
    return 2 * _half_log_det(capacitance_tril) + diagonal.log().sum(-1)


def _batch_lowrank_mahalanobis(factor, diagonal, x, capacitance_tril):
    """Returns x^T (W W^T + D)^-1 x by Woodbury's identity, where W = `factor` and D = diag(diagonal). capacitance_tril: the Cholesky factor of I +
    W^T D^-1 W."""
    inner = _batch_mv(factor.mT / diagonal.unsqueeze(-2), x)
    return (x.pow(2) / diagonal).sum(-1) - _batch_mahalanobis(capacitance_tril, inner)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors (..., n) with mean `loc` and covariance matrix W W^T + D, where W is cov_factor and D = diag(cov_diag).

    cov_factor: (..., n, k). cov_diag: (..., n). The constructor costs O(n k^2). Raises ValueError for shapes that do not match.
    """

    arg_constraints = {"loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
                       "cov_diag": constraints.independent(constraints.positive, 1)}
    support = constraints.real_vector
    has_rsample = True
    _batched = {"loc": 1, "cov_factor": 2, "cov_diag": 1}
    _shared = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            locs, self.cov_factor, diagonals = gradus.broadcast_tensors(loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1))
        except RuntimeError as error:
            raise ValueError(f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}") from error
        self.loc, self.cov_diag = locs[..., 0], diagonals[..., 0]
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(self.loc.shape[:-1], event_shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.loc

    mode = mean

    def _covariance(self):
        """Returns (W, the diagonal of D, the Cholesky factor of the capacitance matrix I + W^T D^-1 W), where W W^T + D is the covariance matrix.
        They are not expanded to batch_shape."""
        return self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril

    def _expand_matrix(self, matrix):
        """Returns `matrix`, which has n x n matrices in its last two dimensions, expanded to the shape batch_shape + (n, n)."""
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def variance(self):
        """The variances of the vector's elements, (..., n)."""
        return (self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        """The Cholesky factor of the covariance matrix W W^T + D, where W is cov_factor and D = diag(cov_diag)."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        return self._expand_matrix(root * gradus.linalg.cholesky(_identity_plus(gradus.matmul(scaled, scaled.mT))))

    @lazy_property
    def covariance_matrix(self):
        """The covariance matrix W W^T + D, where W is cov_factor and D = diag(cov_diag)."""
        factor = self._unbroadcasted_cov_factor
        return self._expand_matrix(gradus.matmul(factor, factor.mT) + gradus.diag_embed(self._unbroadcasted_cov_diag))

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance matrix W W^T + D, where W is cov_factor and D = diag(cov_diag)."""
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        solved = gradus.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self._expand_matrix(gradus.diag_embed(self._unbroadcasted_cov_diag.reciprocal()) - solved.mT @ solved)

    def rsample(self, sample_shape=gradus.Size()):
        shape = self._extended_shape(sample_shape)
        of_factor = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], self.loc.dtype, self.loc.device)
        of_diagonal = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_cov_factor, of_factor) + self._unbroadcasted_cov_diag.sqrt() * of_diagonal

    def log_prob(self, value):
        self._validate_value(value)
        factor, diagonal, tril = self._covariance()
        distance = _batch_lowrank_mahalanobis(factor, diagonal, value - self.loc, tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + _batch_lowrank_logdet(factor, diagonal, tril) + distance)

    def entropy(self):
        entropy = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + _batch_lowrank_logdet(*self._covariance()))
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
