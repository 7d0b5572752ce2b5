"""Functions that distributions share: broadcasting, conversion of probabilities and logits, lazy properties, and triangular matrices as vectors."""
from functools import update_wrapper

import gradus

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec", "vec_to_tril_matrix"]

euler_constant = 0.57721566490153286060
_Number = (bool, int, float)


def _is_tensor_like(value):
    return isinstance(value, gradus.Tensor) or hasattr(type(value), "__torch_function__")


def broadcast_all(*values):
    """Returns the values broadcast to one shape. Numbers become tensors with the dtype and device of the first tensor. If there is no tensor, they
    get the default dtype.

    Raises ValueError for values that are neither numbers nor tensors.

    >>> from gradus.distributions.utils import broadcast_all
    >>> broadcast_all(gradus.zeros(2), 1.0)[1]
    tensor([1., 1.])
    """
    if not all(_is_tensor_like(v) or isinstance(v, _Number) for v in values):
        raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__.")
    if not all(map(_is_tensor_like, values)):
        first = next((v for v in values if isinstance(v, gradus.Tensor)), None)
        options = {"dtype": gradus.get_default_dtype()} if first is None else {"dtype": first.dtype, "device": first.device}
        values = [v if _is_tensor_like(v) else gradus.tensor(v, **options) for v in values]
    return gradus.broadcast_tensors(*values)


def _standard_normal(shape, dtype, device):
    """Returns a tensor of standard normal numbers."""
    return gradus.empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value, dim):
    """Returns the sum of `value` over its last `dim` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def _batch_mv(matrices, vectors):
    """Returns the product of each matrix with its vector. The batch dimensions are broadcast."""
    return gradus.matmul(matrices, vectors.unsqueeze(-1)).squeeze(-1)


# ---- Conversion of probabilities --------------------------------------------------------------------------------------------


def logits_to_probs(logits, is_binary=False):
    """Converts logits to probabilities: a sigmoid of log odds if `is_binary`, otherwise a softmax along the last dimension."""
    return gradus.sigmoid(logits) if is_binary else gradus.softmax(logits, -1)


def clamp_probs(probs):
    """Returns the probabilities clamped to [eps, 1 - eps], where eps is the epsilon of their dtype."""
    eps = gradus.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary=False):
    """Converts probabilities to logits: log odds if `is_binary`, otherwise log-probabilities. The probabilities are clamped first."""
    probs = clamp_probs(probs)
    return gradus.log(probs) - gradus.log1p(-probs) if is_binary else gradus.log(probs)


# ---- Lazy properties --------------------------------------------------------------------------------------------------------


class lazy_property:
    """A property that is computed when it is first read, and is then stored as an attribute of the instance. Gradients are enabled during the
    computation."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        update_wrapper(self, wrapped)

    def __get__(self, instance, obj_type=None):
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with gradus.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """The object that a lazy_property returns when it is read from the class instead of an instance. It is both a lazy_property and an ordinary
    property."""

    def __init__(self, wrapped):
        property.__init__(self, wrapped)


# ---- Triangular matrices ----------------------------------------------------------------------------------------------------


def _below(n, diag, device):
    """Returns an n x n bool tensor, True for elements on and below diagonal number `diag`."""
    places = gradus.arange(n, device=device)
    return places < places.view(-1, 1) + (diag + 1)


def tril_matrix_to_vec(mat, diag=0):
    """Returns the elements of square matrices (..., n, n) on and below diagonal number `diag`, row by row.

    Raises ValueError if the matrices have no diagonal with that number.
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _below(n, diag, mat.device)]


def vec_to_tril_matrix(vec, diag=0):
    """Inverts tril_matrix_to_vec: returns lower triangular matrices with the elements of `vec`. Raises ValueError if no square matrix has
    vec.shape[-1] elements on and below diagonal number `diag`."""
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > gradus.finfo(vec.dtype).eps:
        raise ValueError(f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower triangular part of a square D x D matrix.")
    n = round(n)
    matrix = vec.new_zeros(vec.shape[:-1] + (n, n))
    matrix[..., _below(n, diag, vec.device)] = vec
    return matrix
