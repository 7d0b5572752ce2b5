"""Functions of the module whose arguments or results have a form that no operator has: any number of tensors, results that options add. What is
computed is computed by operators.
"""
import itertools

from gradus import _C
from gradus._C import Tensor

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "cartesian_prod", "combinations", "cdist", "einsum", "nonzero", "resize_as_",
           "tensordot", "tril_indices", "triu_indices", "unique", "unique_consecutive", "unravel_index"]


# ---- Shapes ------------------------------------------------------------------------------------------------------------------------------

def _of_each(function, tensors):
    """A tensor for one tensor, a tuple for several or for a list of them."""
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return function(tensors[0])
    if len(tensors) == 1:
        tensors = tensors[0]
    return tuple(function(tensor) for tensor in tensors)


def atleast_1d(*tensors):
    """Each tensor, a 0-d one as one of 1 element; a tuple of several."""
    return _of_each(_C.atleast_1d, tensors)


def atleast_2d(*tensors):
    """Each tensor with at least 2 dimensions, new ones of size 1 in front; a tuple of several."""
    return _of_each(_C.atleast_2d, tensors)


def atleast_3d(*tensors):
    """Each tensor with at least 3 dimensions: a vector becomes (1, n, 1), a matrix (n, m, 1); a tuple of several."""
    return _of_each(_C.atleast_3d, tensors)


def block_diag(*tensors):
    """Matrices, vectors as rows and numbers as (1, 1), along the diagonal of a matrix of zeros."""
    dtype = tensors[0].dtype if tensors else _C.get_default_dtype()
    for tensor in tensors:
        if tensor.dim() > 2:
            raise RuntimeError(f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {_place(tensors, tensor)} has {tensor.dim()} dimensions")
        dtype = _C.promote_types(dtype, tensor.dtype)
    blocks = [_C.atleast_2d(tensor).to(dtype) for tensor in tensors] or [_C.empty(1, 0, dtype=dtype)]
    width, left, rows = sum(block.size(1) for block in blocks), 0, []
    for block in blocks:
        rows.append(_C.constant_pad_nd(block, (left, width - left - block.size(1))))
        left += block.size(1)
    return _C.cat(rows)


def _place(tensors, wanted):
    return next(i for i, tensor in enumerate(tensors) if tensor is wanted)


# ---- Products ------------------------------------------------------------------------------------------------------------------------------

def cartesian_prod(*tensors):
    """Every choice of one element from each vector, a row each; of one vector its copy."""
    if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
        tensors = tensors[0]
    for tensor in tensors:
        if tensor.dim() != 1:
            raise RuntimeError("Expect a 1D vector, but got shape " + str(list(tensor.shape)))
    if len(tensors) == 1:
        return tensors[0]
    return _C.stack([grid.flatten() for grid in _C.meshgrid(*tensors, indexing="ij")], dim=1)


def combinations(input, r=2, with_replacement=False):
    """Every choice of r elements of a vector, a row each, in the order of itertools.combinations (or _with_replacement)."""
    if input.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty(0)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = list(choose(range(input.numel()), r))
    return input[_C.tensor(chosen, dtype=_C.int64, device=input.device).reshape(len(chosen), r)]


def tensordot(a, b, dims=2, out=None):
    """The sum of products over dimensions of a and b: the last `dims` of a and the first ones of b, or two lists of them."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, (list, tuple)) and len(dims) > 1:
        of_a, of_b = (list(one) if isinstance(one, (list, tuple)) else [one] for one in dims)
    else:
        count = dims[0] if isinstance(dims, (list, tuple)) else dims
        if count < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={count}")
        if count > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={count}")
        of_a, of_b = list(range(-count, 0)), list(range(count))
    result = _C.tensordot(a, b, of_a, of_b)
    return result if out is None else out.resize_(result.shape).copy_(result)


def einsum(equation, *operands):
    """Sums of products of the operands' elements, as the equation says: "ij,jk->ik" is a matrix product. The operands may be given in one list.

    >>> import gradus as torch
    >>> torch.einsum("ij,j->i", torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 10.0]))
    tensor([21., 43.])
    """
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    return _C.einsum(equation, list(operands))


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The p-norm of the difference of every row of x1, (…, P, M), with every row of x2, (…, R, M): (…, P, R)."""
    for name, x in (("X1", x1), ("X2", x2)):
        if x.dim() < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.dim()}D")
    if x1.size(-1) != x2.size(-1):
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.size(-1)} X2: {x2.size(-1)}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).norm(p, dim=-1)


def _triangle(rows, columns, offset, cut, dtype, device):
    if rows < 0 or columns < 0:
        raise RuntimeError(f"{'row' if rows < 0 else 'col'} must be non-negative, got{rows if rows < 0 else columns}")
    return cut(_C.ones(rows, columns, dtype=_C.bool), offset).nonzero().t().contiguous().to(dtype=dtype, device=device)


def tril_indices(row, col, offset=0, *, dtype=_C.int64, device="cpu", layout=None):
    """The rows and columns of the elements of the lower triangle of a matrix, up to diagonal `offset`, in row-major order: (2, n)."""
    return _triangle(row, col, offset, _C.tril, dtype, device)


def triu_indices(row, col, offset=0, *, dtype=_C.int64, device="cpu", layout=None):
    """The rows and columns of the elements of the upper triangle of a matrix, from diagonal `offset` on, in row-major order: (2, n)."""
    return _triangle(row, col, offset, _C.triu, dtype, device)


# ---- Distinct and nonzero elements -----------------------------------------------------------------------------------------------------------

def nonzero(input, *, out=None, as_tuple=False):
    """The indices of elements that are not zero: a row for each, or with as_tuple a vector for each dimension."""
    if as_tuple:
        return _C.where(input)
    result = _C.nonzero(input)
    return result if out is None else out.resize_(result.shape).copy_(result)


def _runs(rows):
    """The number of the run of equal rows that each row of a matrix is in; and how many there are."""
    if rows.size(0) == 0:
        return _C.zeros(0, dtype=_C.int64), 0
    begins = _C.constant_pad_nd((rows[1:] != rows[:-1]).any(1), (1, 0), False) if rows.size(1) else _C.zeros(rows.size(0), dtype=_C.bool)
    number = begins.cumsum(0)
    return number, int(number[-1]) + 1


def _results(values, inverse, counts, return_inverse, return_counts):
    chosen = (values,) + (inverse,) * return_inverse + (counts,) * return_counts
    return chosen if len(chosen) > 1 else values


def _distinct_rows(input, dim, in_order, return_inverse, return_counts):
    """Distinct slices along dim: all of them in order, or (in_order) one for each run."""
    if input.dim() == 0:
        dim, input = (0, input.reshape(1)) if dim in (0, -1) else (dim, input)
    moved = input.movedim(dim, 0)
    rows = moved.reshape(moved.size(0), moved.numel() // moved.size(0) if moved.size(0) else 0)
    order = _C.arange(rows.size(0))
    if not in_order:
        for column in range(rows.size(1) - 1, -1, -1):
            order = order[rows[order, column].argsort(stable=True)]
    number, count = _runs(rows[order])
    counts = _C.bincount(number, minlength=count)
    first = counts.cumsum(0) - counts
    inverse = _C.empty_like(order).scatter_(0, order, number)
    return _results(moved[order[first]].movedim(0, dim), inverse, counts, return_inverse, return_counts)


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct elements in order, or with dim the distinct slices; then, as asked for, which of them each element is and how often each occurs."""
    if dim is not None:
        return _distinct_rows(input, dim, False, return_inverse, return_counts)
    return _results(*_C._unique2(input, sorted, return_inverse, return_counts), return_inverse, return_counts)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The first of each run of equal elements, or with dim slices; then, as asked for, the run of each element and how long each is."""
    if dim is not None:
        return _distinct_rows(input, dim, True, return_inverse, return_counts)
    number, count = _runs(input.reshape(-1, 1))
    counts = _C.bincount(number, minlength=count)
    return _results(input.flatten()[counts.cumsum(0) - counts], number.reshape(input.shape), counts, return_inverse, return_counts)


def unravel_index(indices, shape):
    """The index along each dimension of a tensor of sizes `shape` of elements that are numbered in row-major order."""
    if indices.dtype.is_floating_point or indices.dtype.is_complex or indices.dtype == _C.bool:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    result = []
    for size in reversed(sizes):
        result.append(indices % size)
        indices = indices.div(size, rounding_mode="floor")
    return tuple(reversed(result))


# ---- Methods -----------------------------------------------------------------------------------------------------------------------------------

def resize_as_(self, other):
    """resize_ to the sizes of another tensor."""
    return self.resize_(other.shape)


for _method in (nonzero, resize_as_, unique, unique_consecutive):
    setattr(Tensor, _method.__name__, _method)
Tensor.__rdiv__ = Tensor.__rtruediv__
