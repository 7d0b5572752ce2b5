"""Parametrizations that keep a weight orthogonal, give it unit spectral norm, or split it into norms and directions."""
from __future__ import annotations

from enum import Enum, auto

import gradus
from gradus._C import Tensor

from .. import functional as F
from ..modules.module import Module
from . import parametrize
from .spectral_norm import normalized_noise, output_dim

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _tensor_of(module, name):
    """Returns the tensor attribute `name` of `module`. Raises ValueError if there is none."""
    tensor = getattr(module, name, None)
    if not isinstance(tensor, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return tensor


# ---- Orthogonal matrices ------------------------------------------------------------------------------------------------------


def _is_orthogonal(matrix, eps=None):
    """Returns True if the columns of each matrix are orthonormal up to rounding errors.

    The absolute tolerance is eps * n * (epsilon of the dtype), where n is the smaller size of a matrix. eps is 10 when None, as in PyTorch.
    """
    n = min(matrix.size(-2), matrix.size(-1))
    identity = gradus.eye(n, dtype=matrix.dtype, device=matrix.device)
    return gradus.allclose(matrix.mH @ matrix, identity, atol=(10.0 if eps is None else eps) * n * gradus.finfo(matrix.dtype).eps)


def _make_orthogonal(matrix):
    """Returns Q of the QR decomposition of `matrix` (rows >= columns), with the signs for which the diagonal of R is positive."""
    q, r = gradus.linalg.qr(matrix)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


class _Orthogonal(Module):
    """Maps an unconstrained matrix to an orthogonal matrix Q (Lezcano-Casado and Martinez-Rubio, 2019).

    With use_trivialization the result is base @ Q. Assigning a matrix to the weight stores this matrix, orthonormalized, in `base` and makes Q the
    identity.
    """

    base: Tensor

    def __init__(self, weight, orthogonal_map, *, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X):
        wide = X.size(-2) < X.size(-1)
        tall = X.mT if wide else X
        result = self._reflected(tall) if self.orthogonal_map == _OrthMaps.householder else self._rotated(tall)
        if hasattr(self, "base"):
            result = self.base @ result
        return result.mT if wide else result

    def _rotated(self, X):
        """Returns the first k columns of an orthogonal n x n matrix computed from X, which has the shape (n, k).

        L is the lower triangle of X, padded to n x n by zeros, and A = L - L^H. The orthogonal matrix is exp(A). With the
        Cayley map it is (I - A / 2)^-1 (I + A / 2).
        """
        n, k = X.shape[-2:]
        X = X.tril()
        if n != k:
            X = gradus.cat([X, X.new_zeros(n, n - k).expand(*X.shape[:-2], -1, -1)], dim=-1)
        skew = X - X.mH
        if self.orthogonal_map == _OrthMaps.matrix_exp:
            return gradus.matrix_exp(skew)[..., :k]
        identity = gradus.eye(n, dtype=skew.dtype, device=skew.device)
        q, r = gradus.linalg.qr(gradus.add(identity, skew, alpha=-0.5))
        return gradus.linalg.solve_triangular(r, q.mH @ gradus.add(identity, skew, alpha=0.5), upper=True)[..., :k]

    def _reflected(self, X):
        """Returns the product of Householder reflections, with column j of the product multiplied by X[j, j], which is 1 or -1.

        The vector of reflection j is the part of column j of X below the diagonal.
        """
        vectors = X.tril(diagonal=-1)
        tau = 2.0 / (1.0 + (vectors * vectors).sum(dim=-2))
        return gradus.linalg.householder_product(vectors, tau) * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    @gradus.no_grad()
    def right_inverse(self, Q):
        """Returns the X for which forward(X) is the orthogonal matrix Q. First sets `base`, if it exists, to _base_of(Q).

        Raises ValueError if Q has another shape than the weight.
        """
        if Q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}.")
        wide = Q.size(-2) < Q.size(-1)
        tall = Q.mT if wide else Q
        if hasattr(self, "base"):
            self.base = self._base_of(tall)
            start = gradus.zeros_like(Q)
            start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return start
        if self.orthogonal_map != _OrthMaps.householder:
            raise NotImplementedError("It is not possible to assign to the matrix exponential or the Cayley parametrizations when use_trivialization=False.")
        reflectors, tau = gradus.geqrf(tall)
        reflectors.diagonal(dim1=-2, dim2=-1).sign_()
        # For tau = 0 geqrf does not reflect, but `_reflected` changes the sign of one axis. The factor -1 cancels this sign change.
        reflectors.diagonal(dim1=-2, dim2=-1)[tau == 0.0] *= -1
        return reflectors.mT if wide else reflectors

    def _base_of(self, tall):
        """Returns a square orthogonal matrix. Its first columns are the columns of `tall`, orthonormalized; the other columns are random."""
        n, k = tall.shape[-2:]
        if n == k:
            return tall.clone() if _is_orthogonal(tall) else _make_orthogonal(tall)
        return _make_orthogonal(gradus.cat([tall, gradus.randn(*tall.shape[:-2], n, n - k, dtype=tall.dtype, device=tall.device)], dim=-1))


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Parametrizes a matrix, or a batch of matrices, so that it is orthogonal (unitary if complex). Returns the module.

    orthogonal_map: "matrix_exp", "cayley" or "householder". When None it is "matrix_exp" for square and complex matrices, "householder" for all
    others. use_trivialization: if true, the weight is base @ Q. Q is the orthogonal matrix computed from the trained tensor `original`. The buffer
    `base` is initially the current weight, orthonormalized. If false, values can be assigned to the weight only with "householder". Raises ValueError
    for an unknown map, a weight of less than two dimensions, or "householder" with a complex weight.
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.size(-2) == weight.size(-1) or weight.is_complex() else "householder"
    found = getattr(_OrthMaps, orthogonal_map, None)
    if found is None:
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}')
    return parametrize.register_parametrization(module, name, _Orthogonal(weight, found, use_trivialization=use_trivialization), unsafe=True)


# ---- Weight normalization -----------------------------------------------------------------------------------------------------


class _WeightNorm(Module):
    """Computes a weight from norms weight_g and directions weight_v."""

    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return gradus._weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        return gradus.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Makes a weight the product of trained norms `original0` and directions `original1` (Salimans and Kingma, 2016). Returns the module.

    dim: the slice at each index of this dimension has its own norm. If dim is None, the whole weight has one norm. State dicts of the older
    nn.utils.weight_norm can be loaded.

    >>> nn.utils.parametrizations.weight_norm(nn.Linear(3, 4))
    ParametrizedLinear(
      in_features=3, out_features=4, bias=True
      (parametrizations): ModuleDict(
        (weight): ParametrizationList(
          (0): _WeightNorm()
        )
      )
    )
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """A load_state_dict pre-hook that renames the keys of the older nn.utils.weight_norm."""
        old = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


# ---- Spectral normalization ---------------------------------------------------------------------------------------------------


class _SpectralNorm(Module):
    """Divides the weight by its largest singular value. Power iterations estimate the singular vectors and update the buffers _u and _v in place."""

    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.dim, self.eps = dim % ndim, eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            for buffer, size in zip(("_u", "_v"), matrix.shape):
                self.register_buffer(buffer, normalized_noise(matrix, size, eps))
            self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight):
        """Returns the weight as a matrix with one row for each index of dimension `dim`."""
        return weight.movedim(self.dim, 0).flatten(1)

    @gradus.no_grad()
    def _power_method(self, matrix, n_power_iterations):
        """Does power iterations, which update the estimates _u and _v of the singular vectors in place."""
        for _ in range(n_power_iterations):
            F.normalize(gradus.mv(matrix, self._v), dim=0, eps=self.eps, out=self._u)
            F.normalize(gradus.mv(matrix.H, self._u), dim=0, eps=self.eps, out=self._v)

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # Copies, because the next power iteration would change the tensors that autograd saved.
        return weight / gradus.vdot(u, gradus.mv(matrix, v))

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Parametrizes a weight so that it is divided by its largest singular value (Miyato et al., 2018). Returns the module.

    n_power_iterations: the number of power iterations at each access in training mode. dim: the dimension of the layer's outputs; when None it is 1
    for transposed convolutions and 0 for other layers. Raises ValueError if n_power_iterations is not positive, IndexError if dim is out of range.

    >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 4), n_power_iterations=20)
    >>> list(layer.state_dict())
    ['bias', 'parametrizations.weight.original', 'parametrizations.weight.0._u', 'parametrizations.weight.0._v']
    """
    weight = _tensor_of(module, name)
    dim = output_dim(module) if dim is None else dim
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
