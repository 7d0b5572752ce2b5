"""Linear algebra under PyTorch's names: products, sums, and the Cholesky and QR decompositions with what they solve."""
from operator import index

from gradus import _C
from gradus._C import _LinAlgError as LinAlgError
from gradus._C import matmul
from gradus._C.linalg import cholesky, cholesky_ex, householder_product, matrix_exp, qr, solve_triangular
from gradus.functional import _into

__all__ = ["LinAlgError", "cholesky", "cholesky_ex", "cross", "diagonal", "householder_product", "matmul", "matrix_exp", "matrix_power", "multi_dot", "qr", "solve_triangular", "vecdot", "vector_norm"]


def cross(input, other, *, dim=-1, out=None):
    """The cross products of vectors of three elements along a dimension.

    >>> import gradus as torch
    >>> torch.linalg.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    return _C.cross(input, other, dim=dim, out=out)


def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """The diagonals of matrices: a view."""
    return _C.diagonal(A, offset=offset, dim1=dim1, dim2=dim2)


def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):
    """The vector norm of all elements, or of those along dimensions.

    >>> import gradus as torch
    >>> torch.linalg.vector_norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    options = {} if dtype is None else {"dtype": dtype}
    return _C.norm(x, ord, dim, keepdim, out=out, **options)


def vecdot(x, y, *, dim=-1, out=None):
    """The sums of conj(x) * y along a dimension."""
    return _into(out, (x.conj() * y).sum(dim), "linalg.vecdot: Expected out of dtype{result} but found {out}")


def _cheapest_split(sizes):
    """Where each product of matrices i to j is best divided (the matrix chain problem); sizes[i] by sizes[i + 1] is matrix i."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], split[i][j] = min((cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))
    return split


def multi_dot(tensors, *, out=None):
    """The product of two or more matrices, in the order that takes the fewest multiplications. The first may be a row, the last a column: a vector."""
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    first, last = tensors[0], tensors[-1]
    matrices = [first.unsqueeze(0) if first.dim() == 1 else first, *tensors[1:-1], last.unsqueeze(1) if last.dim() == 1 else last]
    for i, matrix in enumerate(matrices):
        if matrix.dim() != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be {'2D' if 0 < i < len(matrices) - 1 else '1D or 2D'} but got {tensors[i].dim()}D")
        if i and matrices[i - 1].size(1) != matrix.size(0):
            raise RuntimeError(f"multi_dot(): tensors {i - 1} and {i} with shapes {list(matrices[i - 1].shape)} and {list(matrix.shape)} cannot be multiplied")
    split = _cheapest_split([matrix.size(0) for matrix in matrices] + [matrices[-1].size(1)])

    def product(i, j):
        return matrices[i] if i == j else _C.mm(product(i, split[i][j]), product(split[i][j] + 1, j))

    result = product(0, len(matrices) - 1)
    shape = [size for size, tensor in zip(result.shape, (first, last)) if tensor.dim() == 2]
    return _into(out, result.reshape(shape), "multi_dot(): expected out tensor to have dtype {result} but got {out}")


def matrix_power(A, n, *, out=None):
    """Square matrices to an integer power, by squaring. NotImplementedError: a negative power, which needs the inverse.

    >>> import gradus as torch
    >>> torch.linalg.matrix_power(torch.tensor([[1, 1], [1, 0]]), 10)
    tensor([[89, 55],
            [55, 34]])
    """
    if A.dim() < 2:
        raise RuntimeError("linalg.matrix_power: The input tensor A must have at least 2 dimensions.")
    if A.size(-1) != A.size(-2):
        raise RuntimeError(f"linalg.matrix_power: A must be batches of square matrices, but they are {A.size(-2)} by {A.size(-1)} matrices")
    try:
        n = index(n)
    except TypeError:
        raise TypeError(f"linalg_matrix_power(): argument 'n' (position 2) must be int, not {type(n).__name__}") from None
    if n < 0:
        raise NotImplementedError("linalg.matrix_power: negative powers need the inverse, which is not available")
    if n == 0:
        return _into(out, _C.eye(A.size(-1), dtype=A.dtype, device=A.device).expand(A.shape).clone(), text=None)
    result, square = None, A
    while n:
        if n % 2:
            result = square if result is None else result @ square
        n //= 2
        square = square @ square if n else square
    return _into(out, result.clone() if result is A else result)
