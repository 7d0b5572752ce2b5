"""Creation functions of the standard."""
import gradus

__all__ = ["arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like"]


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """start, start + step, ... before stop; from 0 where there is no stop. Empty where the step leads away from stop."""
    if stop is None:
        start, stop = 0, start
    if (stop - start) * step <= 0:
        numbers = gradus.arange(0, 0, 1 if isinstance(start + stop + step, int) else 1.0, dtype=dtype, device=device)
        return numbers
    return gradus.arange(start, stop, step, dtype=dtype, device=device)


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """Returns an array of a number, a sequence, a buffer or an array. copy: True always copies, False never (ValueError where it must), None if it
    must."""
    return gradus.asarray(obj, dtype=dtype, device=device, copy=copy)


def empty(shape, *, dtype=None, device=None):
    """Returns an array whose elements are not set."""
    return gradus.empty(shape, dtype=dtype, device=device)


def empty_like(x, /, *, dtype=None, device=None):
    """Returns an array of x's shape whose elements are not set."""
    return gradus.empty_like(x, dtype=dtype, device=device)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """Returns a matrix with ones on its k-th diagonal, and zeros elsewhere."""
    n_cols = n_rows if n_cols is None else n_cols
    made = gradus.zeros(n_rows, n_cols, dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        made.diagonal(k).fill_(1)
    return made


def from_dlpack(x, /, *, device=None, copy=None):
    """Returns the array of another library that hands its memory over by DLPack; a copy, if copy says so."""
    return gradus.from_dlpack(x, device=device, copy=copy)


def full(shape, fill_value, *, dtype=None, device=None):
    """Returns an array of one value."""
    return gradus.full((shape,) if isinstance(shape, int) else shape, fill_value, dtype=dtype, device=device)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """Returns an array of x's shape, of one value."""
    return gradus.full_like(x, fill_value, dtype=dtype, device=device)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """num numbers from start to stop at equal distances; without the endpoint as many before it."""
    if dtype is None and (isinstance(start, complex) or isinstance(stop, complex)):
        dtype = gradus.get_default_dtype().to_complex()
    return gradus.linspace(start, stop, num, dtype=dtype, device=device) if endpoint else gradus.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]


def meshgrid(*arrays, indexing="xy"):
    """Returns the coordinates of a grid: one array for each vector."""
    return tuple(gradus.meshgrid(*arrays, indexing=indexing))


def ones(shape, *, dtype=None, device=None):
    """Returns an array of ones."""
    return gradus.ones(shape, dtype=dtype, device=device)


def ones_like(x, /, *, dtype=None, device=None):
    """Returns an array of x's shape, of ones."""
    return gradus.ones_like(x, dtype=dtype, device=device)


def tril(x, /, *, k=0):
    """Returns the matrices with zeros above the k-th diagonal."""
    return gradus.tril(x, k)


def triu(x, /, *, k=0):
    """Returns the matrices with zeros below the k-th diagonal."""
    return gradus.triu(x, k)


def zeros(shape, *, dtype=None, device=None):
    """Returns an array of zeros."""
    return gradus.zeros(shape, dtype=dtype, device=device)


def zeros_like(x, /, *, dtype=None, device=None):
    """Returns an array of x's shape, of zeros."""
    return gradus.zeros_like(x, dtype=dtype, device=device)
