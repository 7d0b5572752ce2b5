"""The LKJ distribution of Cholesky factors of correlation matrices."""
import math

import gradus
from gradus.distributions import constraints
from gradus.distributions.beta import Beta
from gradus.distributions.distribution import Distribution
from gradus.distributions.utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors L of dim x dim correlation matrices R = L L^T, where R has a density proportional to det(R)^(concentration - 1).

    Source: Lewandowski, Kurowicka and Joe, 2009. Raises ValueError if dim < 2.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        last = self.concentration + 0.5 * (dim - 2)
        offset = gradus.arange(dim - 1, dtype=last.dtype, device=last.device)
        offset = gradus.cat([offset.new_zeros((1,)), offset])
        self._beta = Beta(offset + 0.5, last.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.size(), gradus.Size((dim, dim)), validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LKJCholesky, _instance)
        batch_shape = gradus.Size(batch_shape)
        new.dim, new.concentration = self.dim, self.concentration.expand(batch_shape)
        new._beta = self._beta.expand(batch_shape + (self.dim,))
        return new._finish_expanded(self, batch_shape)

    def sample(self, sample_shape=gradus.Size()):
        """Returns random Cholesky factors of shape sample_shape + batch_shape + (dim, dim), drawn by the onion method.

        Each row has norm 1. A beta-distributed share of its squared norm is off the diagonal, in a random direction; the remaining share is on the
        diagonal.
        """
        with gradus.no_grad():
            share = self._beta.sample(sample_shape).unsqueeze(-1)
            normal = gradus.randn(self._extended_shape(sample_shape), dtype=share.dtype, device=share.device).tril(-1)
            direction = normal / normal.norm(dim=-1, keepdim=True)
            direction[..., 0, :].fill_(0.0)
            rows = gradus.sqrt(share) * direction
            rest = gradus.clamp(1 - gradus.sum(rows ** 2, dim=-1), min=gradus.finfo(rows.dtype).tiny)
            return rows + gradus.diag_embed(rest.sqrt())

    def log_prob(self, value):
        self._validate_value(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - gradus.arange(2, self.dim + 1, device=self.concentration.device)
        less = self.dim - 1
        alpha = self.concentration + 0.5 * less
        normalizer = 0.5 * less * math.log(math.pi) + gradus.mvlgamma(alpha - 0.5, less) - gradus.lgamma(alpha) * less
        return gradus.sum(order * diagonal.log(), dim=-1) - normalizer
