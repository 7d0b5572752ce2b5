"""Linear algebra of the standard."""
import gradus
from gradus import _C
from gradus.array_api._types import of_one_array, promoted
from gradus.array_api._reduction import sum as _sum

__all__ = ["cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet",
           "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm"]
globals().update({name: of_one_array(name, f"gradus.linalg.{name}", getattr(gradus.linalg, name))
                  for name in ("det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "slogdet", "svdvals")})


def matmul(x1, x2, /):
    """Returns the product of matrices or vectors."""
    return gradus.matmul(*promoted(x1, x2))


def matrix_transpose(x, /):
    """Returns every matrix transposed."""
    return x.mT


def tensordot(x1, x2, /, *, axes=2):
    """Returns the sums of products over axes of both, or over the last and first of them."""
    return gradus.tensordot(*promoted(x1, x2), dims=axes if isinstance(axes, int) else [list(axis) for axis in axes])


def vecdot(x1, x2, /, *, axis=-1):
    """Returns the products of vectors along an axis, of which the first is conjugated."""
    x1, x2 = promoted(x1, x2)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: the axis {axis} has {x1.shape[axis]} elements in one array and {x2.shape[axis]} in the other")
    return _C._sum_of_products(x1, x2, axis, x1.dtype)


def cross(x1, x2, /, *, axis=-1):
    """Returns the cross products of vectors of 3 elements."""
    x1, x2 = promoted(x1, x2)
    if not x1.shape[axis] == x2.shape[axis] == 3:
        raise ValueError(f"cross: the axis {axis} has 3 elements in both arrays, not {x1.shape[axis]} and {x2.shape[axis]}")
    return gradus.linalg.cross(*gradus.broadcast_tensors(x1, x2), dim=axis)


def outer(x1, x2, /):
    """Returns the products of each element of one vector with each of another."""
    return gradus.outer(*promoted(x1, x2))


def diagonal(x, /, *, offset=0):
    """Returns a diagonal of each matrix."""
    return gradus.diagonal(x, offset, -2, -1)


def trace(x, /, *, offset=0, dtype=None):
    """Returns the sum of a diagonal of each matrix."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def cholesky(x, /, *, upper=False):
    """Returns the triangle L of x = L L^H, or that of x = U^H U."""
    return gradus.linalg.cholesky(x, upper=upper)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """Returns a norm of each matrix."""
    return gradus.linalg.matrix_norm(x, ord, keepdim=keepdims)


def matrix_power(x, n, /):
    """Returns the n-th power of each matrix."""
    return gradus.linalg.matrix_power(x, n)


def matrix_rank(x, /, *, rtol=None):
    """Returns the number of singular values above rtol times the greatest."""
    return gradus.linalg.matrix_rank(x, rtol=rtol)


def pinv(x, /, *, rtol=None):
    """Returns the pseudoinverse."""
    return gradus.linalg.pinv(x, rtol=rtol)


def qr(x, /, *, mode="reduced"):
    """Returns x = Q R."""
    return gradus.linalg.qr(x, mode)


def solve(x1, x2, /):
    """X of x1 X = x2; x2 is a vector where it has one dimension, and matrices otherwise."""
    x1, x2 = promoted(x1, x2)
    if x2.ndim == 1:
        return solve(x1, x2.unsqueeze(-1)).squeeze(-1)
    batch = gradus.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return gradus.linalg.solve(x1.expand(*batch, *x1.shape[-2:]), x2.expand(*batch, *x2.shape[-2:]))


def svd(x, /, *, full_matrices=True):
    """Returns x = U S V^H."""
    return gradus.linalg.svd(x, full_matrices)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """Returns a norm along axes, or of all elements."""
    return gradus.linalg.vector_norm(x, ord, axis, keepdims) if axis != () else gradus.abs(x)
