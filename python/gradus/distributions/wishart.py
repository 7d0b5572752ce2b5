"""The Wishart distribution."""
import math
import warnings

import gradus
from gradus.distributions import constraints
from gradus.distributions.chi2 import Chi2
from gradus.distributions.exp_family import ExponentialFamily
from gradus.distributions.multivariate_normal import _half_log_det, _OfMatrix
from gradus.distributions.utils import _Number, lazy_property

__all__ = ["Wishart"]


def _log_det(matrix):
    """Returns log(det(M)) for each positive-definite matrix M."""
    return 2 * _half_log_det(gradus.linalg.cholesky(matrix))


def _mvdigamma(x, p):
    """Returns the derivative of mvlgamma(x, p) with respect to x. Raises AssertionError unless x > (p - 1) / 2."""
    if not x.gt((p - 1) / 2).all():
        raise AssertionError("Wrong domain for multivariate digamma function.")
    return gradus.digamma(x.unsqueeze(-1) - gradus.arange(p, dtype=x.dtype, device=x.device).div(2).expand(x.shape + (-1,))).sum(-1)


class Wishart(_OfMatrix, ExponentialFamily):
    """The distribution of X^T X, where X has `df` rows that are normal vectors with mean 0 and the given covariance matrix.

    The covariance matrix is given as covariance_matrix, precision_matrix or scale_tril (the Cholesky factor of the covariance matrix), of shape (...,
    p, p). Raises AssertionError unless exactly one of these arguments is given, and ValueError unless df > p - 1.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = [m for m in (covariance_matrix, precision_matrix, scale_tril) if m is not None]
        if len(given) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        matrix = given[0]
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        if isinstance(df, _Number):
            batch_shape = gradus.Size(matrix.shape[:-2])
            self.df = gradus.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch_shape = gradus.broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch_shape)
        event_shape = matrix.shape[-2:]
        if self.df.le(event_shape[-1] - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}.")
        self._set_matrix(batch_shape, scale_tril, covariance_matrix, precision_matrix)
        if self.df.lt(event_shape[-1]).any():
            warnings.warn("Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.", stacklevel=2)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._unbroadcasted_scale_tril = self._factor(scale_tril, covariance_matrix, precision_matrix)
        self._dist_chi2 = self._diagonal_squares()

    def _diagonal_squares(self):
        """Returns the distribution of the squared diagonal elements of A, the lower triangular matrix of random numbers in Bartlett's
        decomposition. Each sample is L A A^T L^T, where L is scale_tril."""
        tril, n = self._unbroadcasted_scale_tril, self._event_shape[-1]
        return Chi2(self.df.unsqueeze(-1) - gradus.arange(n, dtype=tril.dtype, device=tril.device).expand(self._batch_shape + (-1,)))

    @property
    def arg_constraints(self):
        return {"covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
                "df": constraints.greater_than(self.event_shape[-1] - 1)}

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = gradus.Size(batch_shape)
        new.df = self.df.expand(batch_shape)
        for name in ("_unbroadcasted_scale_tril", *self._matrices):
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand(batch_shape + self.event_shape)
        new._finish_expanded(self, batch_shape)
        new._dist_chi2 = new._diagonal_squares()
        return new

    def _expand_matrix(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        """The Cholesky factor of `covariance_matrix`."""
        return self._expand_matrix(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self):
        """The covariance matrix of each row of X, where X^T X is a sample of this distribution."""
        return self._expand_matrix(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self):
        """The inverse of `covariance_matrix`."""
        return self._expand_matrix(gradus.cholesky_inverse(self._unbroadcasted_scale_tril))

    def _times_covariance(self, factor):
        """Returns `factor` times covariance_matrix. `factor` has the shape batch_shape, i.e. one number for each matrix of the batch."""
        return factor.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def mean(self):
        return self._times_covariance(self.df)

    @property
    def mode(self):
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        return self._times_covariance(gradus.where(factor <= 0, gradus.nan, factor))

    @property
    def variance(self):
        matrix = self.covariance_matrix
        diagonal = matrix.diagonal(dim1=-2, dim2=-1)
        return self.df.view(self._batch_shape + (1, 1)) * (matrix.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape=gradus.Size()):
        """Returns samples L A A^T L^T by Bartlett's decomposition (Smith and Hocking, 1972).

        L is scale_tril. A is lower triangular, with standard normal numbers below the diagonal and square roots of chi-squared numbers on the
        diagonal.
        """
        n = self._event_shape[-1]
        roots = self._dist_chi2.rsample(sample_shape).sqrt()
        factor = roots.clamp(min=gradus.finfo(roots.dtype).eps).diag_embed(dim1=-2, dim2=-1)
        rows, columns = gradus.tril_indices(n, n, offset=-1)
        below = tuple(sample_shape) + tuple(self._batch_shape) + (n * (n - 1) // 2,)
        factor[..., rows, columns] = gradus.randn(below, dtype=factor.dtype, device=factor.device)
        product = self._unbroadcasted_scale_tril @ factor
        return product @ product.mT

    def _any_of_batch(self, flags):
        """Returns the bool tensor `flags` reduced by any() over the batch dimensions, with one element for each sample."""
        batch = tuple(range(-len(self._batch_shape), 0))
        return flags.amax(batch) if batch else flags

    def rsample(self, sample_shape=gradus.Size(), max_try_correction=None):
        tries = 10 if max_try_correction is None else max_try_correction
        sample = self._bartlett_sampling(gradus.Size(sample_shape))
        # By mistake PyTorch draws the valid samples again instead of the invalid ones. This code repeats the mistake, so that its samples and
        # all later random numbers are equal to those of PyTorch.
        again = self._any_of_batch(self.support.check(sample))
        for _ in range(tries):
            if not again.any():
                break
            drawn = self._bartlett_sampling(again[again].shape)
            sample[again] = drawn
            again[again.clone()] = self._any_of_batch(~self.support.check(drawn))
        return sample

    def log_prob(self, value):
        self._validate_value(value)
        df, p, tril = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        trace = gradus.cholesky_solve(value, tril).diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        return (-df * (p * math.log(2) / 2 + _half_log_det(tril)) - gradus.mvlgamma(df / 2, p=p) + (df - p - 1) / 2 * _log_det(value) - trace / 2)

    def entropy(self):
        df, p = self.df, self._event_shape[-1]
        return ((p + 1) * (p * math.log(2) / 2 + _half_log_det(self._unbroadcasted_scale_tril)) + gradus.mvlgamma(df / 2, p=p)
                - (df - p - 1) / 2 * _mvdigamma(df / 2, p=p) + df * p / 2)

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x, y):
        p = self._event_shape[-1]
        shape = y + (p + 1) / 2
        return shape * (-_log_det(-2 * x) + math.log(2) * p) + gradus.mvlgamma(shape, p=p)
