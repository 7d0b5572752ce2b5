"""Defines the functions that PyTorch has removed. Calling one of them raises an error that says what to call instead."""
from gradus._C import Tensor

__all__ = ["eig", "lstsq", "matrix_rank", "solve", "symeig"]

_SINCE = "This function was deprecated since version 1.9 and is now removed."


def matrix_rank(input, tol=None, symmetric=False, *, out=None):
    """Raises RuntimeError, because linalg.matrix_rank has replaced this function."""
    raise RuntimeError(f"{_SINCE}\nPlease use the `torch.linalg.matrix_rank` function instead. The parameter 'symmetric' was renamed in `torch.linalg.matrix_rank()` to 'hermitian'.")


def solve(input, A, *, out=None):
    """Raises RuntimeError, because linalg.solve has replaced this function."""
    raise RuntimeError(f"""{_SINCE} `torch.solve` is deprecated in favor of `torch.linalg.solve`. `torch.linalg.solve` has its arguments reversed and does not return the LU factorization.

To get the LU factorization see `torch.lu`, which can be used with `torch.lu_solve` or `torch.lu_unpack`.
X = torch.solve(B, A).solution should be replaced with:
X = torch.linalg.solve(A, B)""")


def lstsq(input, A, *, out=None):
    """Raises RuntimeError, because linalg.lstsq has replaced this function."""
    raise RuntimeError(f"""{_SINCE} `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.
`torch.linalg.lstsq` has reversed arguments and does not return the QR decomposition in the returned tuple (although it returns other information about the problem).

To get the QR decomposition consider using `torch.linalg.qr`.

The returned solution in `torch.lstsq` stored the residuals of the solution in the last m - n columns of the returned value whenever m > n. In torch.linalg.lstsq, the residuals are in the field 'residuals' of the returned named tuple.

The unpacking of the solution, as in
X, _ = torch.lstsq(B, A).solution[:A.size(1)]
should be replaced with:
X = torch.linalg.lstsq(A, B).solution""")


def symeig(input, eigenvectors=False, upper=True, *, out=None):
    """Raises RuntimeError, because linalg.eigh has replaced this function."""
    raise RuntimeError(f"""{_SINCE} The default behavior has changed from using the upper triangular portion of the matrix by default to using the lower triangular portion.

L, _ = torch.symeig(A, upper=upper) should be replaced with:
L = torch.linalg.eigvalsh(A, UPLO='U' if upper else 'L')

and

L, V = torch.symeig(A, eigenvectors=True) should be replaced with:
L, V = torch.linalg.eigh(A, UPLO='U' if upper else 'L')""")


def eig(self, eigenvectors=False, *, e=None, v=None):
    """Raises RuntimeError, because linalg.eig has replaced this function."""
    raise RuntimeError(f"""{_SINCE} `torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than real tensors mimicking complex tensors.

L, _ = torch.eig(A) should be replaced with:
L_complex = torch.linalg.eigvals(A)

and

L, V = torch.eig(A, eigenvectors=True) should be replaced with:
L_complex, V_complex = torch.linalg.eig(A)""")


for _method in (eig, lstsq, solve, symeig):
    setattr(Tensor, _method.__name__, _method)
