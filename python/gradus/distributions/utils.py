"""Functions that distributions share: broadcasting of parameters, probabilities and logits, properties that are computed once, triangles as vectors."""
from functools import update_wrapper

import gradus

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec", "vec_to_tril_matrix"]

euler_constant = 0.57721566490153286060
_Number = (bool, int, float)


def _is_tensor_like(value):
    return isinstance(value, gradus.Tensor) or hasattr(type(value), "__torch_function__")


def broadcast_all(*values):
    """Returns the values broadcast to one shape. Numbers become tensors of the dtype and the device of the first tensor, or of the default dtype.

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
    return gradus.empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value, dim):
    """Returns the sum over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def _batch_mv(matrices, vectors):
    """Returns the product of each matrix with its vector; the batches broadcast."""
    return gradus.matmul(matrices, vectors.unsqueeze(-1)).squeeze(-1)


# ---- Probabilities ----------------------------------------------------------------------------------------------------------


def logits_to_probs(logits, is_binary=False):
    """Probabilities of logits: log odds where `is_binary`, otherwise log probabilities along the last dimension, which need not be normalised."""
    return gradus.sigmoid(logits) if is_binary else gradus.softmax(logits, -1)


def clamp_probs(probs):
    """Returns the probabilities in [eps, 1 - eps], with the eps of their dtype."""
    eps = gradus.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary=False):
    """Logits of probabilities, which are clamped before: log odds where `is_binary`, otherwise log probabilities."""
    probs = clamp_probs(probs)
    return gradus.log(probs) - gradus.log1p(-probs) if is_binary else gradus.log(probs)


# ---- Properties -------------------------------------------------------------------------------------------------------------


class lazy_property:
    """A property that is computed when it is first read, with gradients, and is an attribute of the object from then on."""

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
    """The property that a class returns for its lazy property."""

    def __init__(self, wrapped):
        property.__init__(self, wrapped)


# ---- Triangles --------------------------------------------------------------------------------------------------------------


def _below(n, diag, device):
    """True for the elements of an n x n matrix that lie below a diagonal, or on it."""
    places = gradus.arange(n, device=device)
    return places < places.view(-1, 1) + (diag + 1)


def tril_matrix_to_vec(mat, diag=0):
    """Returns the elements of square matrices on and below a diagonal, row by row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _below(n, diag, mat.device)]


def vec_to_tril_matrix(vec, diag=0):
    """Lower triangles, whose rows on and below a diagonal are those of tril_matrix_to_vec."""
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > gradus.finfo(vec.dtype).eps:
        raise ValueError(f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower triangular part of a square D x D matrix.")
    n = round(n)
    matrix = vec.new_zeros(vec.shape[:-1] + (n, n))
    matrix[..., _below(n, diag, vec.device)] = vec
    return matrix
