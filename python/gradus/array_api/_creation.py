"""Implements the creation functions of the Python array API standard."""
import gradus

__all__ = ["arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like"]


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """Returns the vector [start, start + step, ...] of all values before `stop`. arange(n) is arange(0, n). The vector is empty if
    `step` leads away from `stop`."""
    if stop is None:
        start, stop = 0, start
    if (stop - start) * step <= 0:
        numbers = gradus.arange(0, 0, 1 if isinstance(start + stop + step, int) else 1.0, dtype=dtype, device=device)
        return numbers
    return gradus.arange(start, stop, step, dtype=dtype, device=device)


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """Returns an array for a number, a sequence, a buffer or an array. If `copy` is True, the data are always copied. If `copy` is None, they are
    copied only if necessary. If `copy` is False, they are never copied, and ValueError is raised if a copy is necessary."""
    return gradus.asarray(obj, dtype=dtype, device=device, copy=copy)


def empty(shape, *, dtype=None, device=None):
    """Returns an array of the given shape with uninitialized elements."""
    return gradus.empty(shape, dtype=dtype, device=device)


def empty_like(x, /, *, dtype=None, device=None):
    """Returns an array with the shape of `x` and uninitialized elements."""
    return gradus.empty_like(x, dtype=dtype, device=device)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """Returns an (n_rows, n_cols) matrix with ones on the k-th diagonal and zeros elsewhere. n_cols defaults to n_rows."""
    n_cols = n_rows if n_cols is None else n_cols
    made = gradus.zeros(n_rows, n_cols, dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        made.diagonal(k).fill_(1)
    return made


def from_dlpack(x, /, *, device=None, copy=None):
    """Returns an array for `x`, an array of another library that supports DLPack. Both arrays share memory, unless `copy` is True or `device` is
    another device."""
    return gradus.from_dlpack(x, device=device, copy=copy)


def full(shape, fill_value, *, dtype=None, device=None):
    """Returns an array of the given shape whose elements are all `fill_value`."""
    return gradus.full((shape,) if isinstance(shape, int) else shape, fill_value, dtype=dtype, device=device)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """Returns an array with the shape of `x` whose elements are all `fill_value`."""
    return gradus.full_like(x, fill_value, dtype=dtype, device=device)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """Returns a vector of `num` equally spaced numbers from `start` to `stop`. If `endpoint` is False, `stop` is not included."""
    if dtype is None and (isinstance(start, complex) or isinstance(stop, complex)):
        dtype = gradus.get_default_dtype().to_complex()
    return gradus.linspace(start, stop, num, dtype=dtype, device=device) if endpoint else gradus.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]


def meshgrid(*arrays, indexing="xy"):
    """Returns the coordinates of the points of the grid that the given vectors span. Array k of the result contains, for each point, the coordinate
    from arrays[k]. With indexing="ij", axis k of the grid belongs to arrays[k]. With "xy", the first two axes are swapped."""
    return tuple(gradus.meshgrid(*arrays, indexing=indexing))


def ones(shape, *, dtype=None, device=None):
    """Returns an array of the given shape filled with ones."""
    return gradus.ones(shape, dtype=dtype, device=device)


def ones_like(x, /, *, dtype=None, device=None):
    """Returns an array with the shape of `x` filled with ones."""
    return gradus.ones_like(x, dtype=dtype, device=device)


def tril(x, /, *, k=0):
    """Returns a copy of the matrices in `x`, of shape (..., M, N), with zeros above the k-th diagonal."""
    return gradus.tril(x, k)


def triu(x, /, *, k=0):
    """Returns a copy of the matrices in `x`, of shape (..., M, N), with zeros below the k-th diagonal."""
    return gradus.triu(x, k)


def zeros(shape, *, dtype=None, device=None):
    """Returns an array of the given shape filled with zeros."""
    return gradus.zeros(shape, dtype=dtype, device=device)


def zeros_like(x, /, *, dtype=None, device=None):
    """Returns an array with the shape of `x` filled with zeros."""
    return gradus.zeros_like(x, dtype=dtype, device=device)
