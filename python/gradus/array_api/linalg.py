"""Linear algebra functions of the Python array API standard. Matrices are in the last two dimensions. All earlier ones are batch dimensions."""
import gradus
from gradus import _C
from gradus.array_api._types import of_one_array, promoted
from gradus.array_api._reduction import sum as _sum

__all__ = ["cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet",
           "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm"]
globals().update({name: of_one_array(name, f"gradus.linalg.{name}", getattr(gradus.linalg, name))
                  for name in ("det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "slogdet", "svdvals")})


def matmul(x1, x2, /):
    """Returns the matrix product of `x1` and `x2`. A vector is multiplied as a row on the left and as a column on the right."""
    return gradus.matmul(*promoted(x1, x2))


def matrix_transpose(x, /):
    """Returns `x` with its last two axes swapped, i.e. with each matrix transposed."""
    return x.mT


def tensordot(x1, x2, /, *, axes=2):
    """Returns the sum of products over the axes axes[0] of `x1` and axes[1] of `x2`. If `axes` is an int n, sums over the last n axes of `x1` and the
    first n axes of `x2`."""
    return gradus.tensordot(*promoted(x1, x2), dims=axes if isinstance(axes, int) else [list(axis) for axis in axes])


def vecdot(x1, x2, /, *, axis=-1):
    """Returns the dot products sum(conj(x1) * x2) along an axis. ValueError: the axis does not have the same size in `x1` and `x2`."""
    x1, x2 = promoted(x1, x2)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: the axis {axis} has {x1.shape[axis]} elements in one array and {x2.shape[axis]} in the other")
    return _C._sum_of_products(x1, x2, axis, x1.dtype)


def cross(x1, x2, /, *, axis=-1):
    """Returns the cross products of the vectors of 3 elements along an axis. ValueError: the size of that axis is not 3."""
    x1, x2 = promoted(x1, x2)
    if not x1.shape[axis] == x2.shape[axis] == 3:
        raise ValueError(f"cross: the axis {axis} has 3 elements in both arrays, not {x1.shape[axis]} and {x2.shape[axis]}")
    return gradus.linalg.cross(*gradus.broadcast_tensors(x1, x2), dim=axis)


def outer(x1, x2, /):
    """Returns the outer product of two vectors, the matrix with elements x1[i] * x2[j]."""
    return gradus.outer(*promoted(x1, x2))


def diagonal(x, /, *, offset=0):
    """Returns the diagonal of each matrix. `offset` is above 0 for diagonals above the main one."""
    return gradus.diagonal(x, offset, -2, -1)


def trace(x, /, *, offset=0, dtype=None):
    """Returns the sum of the diagonal of each matrix. `offset` is above 0 for diagonals above the main one. `dtype` is the dtype of the sum. By
    default it is int64 for signed integers and bool, uint64 for unsigned integers, and the dtype of `x` for all other dtypes."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def cholesky(x, /, *, upper=False):
    """Returns the lower triangular L with x = L L^H, or the upper triangular U with x = U^H U if `upper` is true."""
    return gradus.linalg.cholesky(x, upper=upper)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """Returns the norm of each matrix. `ord` is "fro" (Frobenius norm), "nuc" (nuclear norm), or 1, -1, 2, -2, inf or -inf."""
    return gradus.linalg.matrix_norm(x, ord, keepdim=keepdims)


def matrix_power(x, n, /):
    """Returns the n-th power of each square matrix."""
    return gradus.linalg.matrix_power(x, n)


def matrix_rank(x, /, *, rtol=None):
    """Returns the rank of each matrix, which is the number of singular values greater than rtol times the largest one."""
    return gradus.linalg.matrix_rank(x, rtol=rtol)


def pinv(x, /, *, rtol=None):
    """Returns the Moore-Penrose pseudoinverse of each matrix. Singular values up to rtol times the largest one count as 0."""
    return gradus.linalg.pinv(x, rtol=rtol)


def qr(x, /, *, mode="reduced"):
    """Returns a named tuple (Q, R) with x = Q R, where Q has orthonormal columns and R is upper triangular. `mode` is "reduced" or "complete"."""
    return gradus.linalg.qr(x, mode)


def solve(x1, x2, /):
    """Returns the solution X of x1 X = x2. `x2` is a vector if it has one dimension, otherwise it contains matrices."""
    x1, x2 = promoted(x1, x2)
    if x2.ndim == 1:
        return solve(x1, x2.unsqueeze(-1)).squeeze(-1)
    batch = gradus.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return gradus.linalg.solve(x1.expand(*batch, *x1.shape[-2:]), x2.expand(*batch, *x2.shape[-2:]))


def svd(x, /, *, full_matrices=True):
    """Returns a named tuple (U, S, Vh) with x = U diag(S) Vh. If `full_matrices` is true, U and Vh are square."""
    return gradus.linalg.svd(x, full_matrices)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """Returns the vector norm of order `ord` along axes, or of all elements if `axis` is None."""
    return gradus.linalg.vector_norm(x, ord, axis, keepdims) if axis != () else gradus.abs(x)
