"""Functions of the module whose arguments or results have a form that no operator has: any number of tensors, results that options add. What is
computed is computed by operators.
"""
import itertools

from gradus import _C
from gradus._C import Tensor, broadcast_tensors, cdist, meshgrid, norm, split

__all__ = ["addbmm", "addr", "argwhere", "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_tensors", "cartesian_prod", "cdist",
           "combinations", "detach_", "diagflat", "digamma", "dist", "dsplit", "einsum", "get_device", "hsplit", "is_conj", "is_inference", "is_neg",
           "matrix_power", "meshgrid", "msort", "nonzero", "norm", "polygamma", "resize_as_", "resolve_conj", "resolve_neg", "split", "tensordot",
           "tril_indices", "triu_indices", "unique", "unique_consecutive", "unravel_index", "vsplit"]


detach_, get_device, is_conj, is_inference, is_neg, resolve_conj, resolve_neg = (
    Tensor.detach_, Tensor.get_device, Tensor.is_conj, Tensor.is_inference, Tensor.is_neg, Tensor.resolve_conj, Tensor.resolve_neg)


def _kind(tensor):
    return tensor.type().split(".")[-1].removesuffix("Tensor")


EXPECTED = "Expected out tensor to have dtype {result}, but got {out} instead"


def _into_all(outs, results, texts):
    """The outs, which have taken the results. Of the results that have a text for it, an out= of another dtype raises it, before anything is written."""
    for out, result, text in zip(outs, results, texts):
        if text and out.dtype != result.dtype:
            raise RuntimeError(text.format(out=_kind(out), result=_kind(result)))
    return [_C.clone(result, out=out) for out, result in zip(outs, results)]


def _into(out, result, text=EXPECTED):
    """The result, or out= that has taken it; without a text its dtype may be any that the result can be cast to."""
    return result if out is None else _into_all([out], [result], [text])[0]


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


def diagflat(input, offset=0):
    """A matrix with the elements of a tensor, in row-major order, on a diagonal."""
    return _C.diag(input.reshape(-1), offset)


def _split(name, input, least, dim, indices_or_sections, sections, indices):
    """PyTorch takes the parts by any of three names."""
    named = [given for given in (indices_or_sections, sections, indices) if given is not None]
    if len(named) != 1:
        raise TypeError(f"{name}() takes one of the arguments indices_or_sections, sections and indices, {len(named)} were given")
    given = named[0]
    if input.dim() < least:
        raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {input.dim()} dimensions!")
    if isinstance(given, int) and (given == 0 or input.size(dim) % given):
        raise RuntimeError(f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {input.size(dim)} "
                           f"is not divisible by the split_size {given}!")
    return _C.tensor_split(input, given, dim)


def hsplit(input, indices_or_sections=None, *, sections=None, indices=None):
    """Equal parts along dimension 1, of a vector along 0, or what lies between indices."""
    return _split("hsplit", input, 1, 0 if input.dim() == 1 else 1, indices_or_sections, sections, indices)


def vsplit(input, indices_or_sections=None, *, sections=None, indices=None):
    """Equal parts along dimension 0, or what lies between indices."""
    return _split("vsplit", input, 2, 0, indices_or_sections, sections, indices)


def dsplit(input, indices_or_sections=None, *, sections=None, indices=None):
    """Equal parts along dimension 2, or what lies between indices."""
    return _split("dsplit", input, 3, 2, indices_or_sections, sections, indices)


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
    return _C.tensordot(a, b, of_a, of_b, out=out)


def _check_factors(dtype, **factors):
    for name, factor in factors.items():
        if isinstance(factor, complex) and not dtype.is_complex:
            raise RuntimeError(f"For non-complex input tensors, argument {name} must not be a complex number.")
        if isinstance(factor, float) and not (dtype.is_complex or dtype.is_floating_point):
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")


def addr(input, vec1, vec2, *, beta=1, alpha=1, out=None):
    """beta * input + alpha * outer(vec1, vec2), with input broadcast to the product's shape. With beta 0 input is not read.

    >>> import gradus as torch
    >>> torch.addr(torch.zeros(2, 2), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    for name, vector in (("vec1", vec1), ("vec2", vec2)):
        if vector.dim() != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {vector.dim()}-D")
    product = _C.outer(vec1, vec2)
    dtype = _C.result_type(input, product)
    _check_factors(dtype, beta=beta, alpha=alpha)
    if dtype == _C.bool:
        beta, alpha = bool(beta), bool(alpha)
    input, product = input.expand(product.shape), product if alpha == 1 else product * alpha
    return _into(out, product.to(dtype) if beta == 0 else (input if beta == 1 else input * beta) + product, text=None)


def addbmm(input, batch1, batch2, *, beta=1, alpha=1, out=None):
    """beta * input + alpha * (the sum of bmm(batch1, batch2) over the batch), with input broadcast to the product's shape."""
    for name, batch in (("batch1", batch1), ("batch2", batch2)):
        if batch.dim() != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if batch1.size(0) != batch2.size(0) or batch1.size(2) != batch2.size(1):
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({batch1.size(1)}x{batch1.size(2)} and {batch2.size(1)}x{batch2.size(2)})")
    # The sum of products is one product: the first matrices side by side, the second ones below each other.
    wide = batch1.transpose(0, 1).reshape(batch1.size(1), batch1.size(0) * batch1.size(2))
    tall = batch2.reshape(batch2.size(0) * batch2.size(1), batch2.size(2))
    return _C.addmm(input, wide, tall, beta=beta, alpha=alpha, out=out)


def einsum(equation, *operands):
    """Sums of products of the operands' elements, as the equation says: "ij,jk->ik" is a matrix product. The operands may be given in one list.

    >>> import gradus as torch
    >>> torch.einsum("ij,j->i", torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 10.0]))
    tensor([21., 43.])
    """
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    return _C.einsum(equation, list(operands))


def dist(input, other, p=2):
    """The p-norm of input - other."""
    return (input - other).norm(p)


# ---- Functions of each element ----------------------------------------------------------------------------------------------------------------

def digamma(input, *, out=None):
    """The derivative of lgamma: NaN at the negative integers, infinite at 0.

    >>> import gradus as torch
    >>> torch.digamma(torch.tensor([0.5, 1.0]))
    tensor([-1.9635, -0.5772])
    """
    return _into(out, input.polygamma(0), text=None)


def polygamma(n, input, *, out=None):
    """The n-th derivative of digamma.

    >>> import gradus as torch
    >>> torch.polygamma(1, torch.tensor([1.0, 2.0]))
    tensor([1.6449, 0.6449])
    """
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return _into(out, input.polygamma(n), text=None)


# ---- Triangles ----------------------------------------------------------------------------------------------------------------------------------

def _triangle(rows, columns, offset, cut, dtype, device):
    if rows < 0 or columns < 0:
        raise RuntimeError(f"{'row' if rows < 0 else 'col'} must be non-negative, got{rows if rows < 0 else columns}")
    indices = cut(_C.ones(rows, columns, dtype=_C.bool, device="cpu"), offset).nonzero().t().contiguous()
    return indices.to(dtype=dtype, device=_C.get_default_device() if device is None else device)


def tril_indices(row, col, offset=0, *, dtype=_C.int64, device=None, layout=None, pin_memory=False):
    """The rows and columns of the elements of the lower triangle of a matrix, up to diagonal `offset`, in row-major order: (2, n)."""
    return _triangle(row, col, offset, _C.tril, dtype, device)


def triu_indices(row, col, offset=0, *, dtype=_C.int64, device=None, layout=None, pin_memory=False):
    """The rows and columns of the elements of the upper triangle of a matrix, from diagonal `offset` on, in row-major order: (2, n)."""
    return _triangle(row, col, offset, _C.triu, dtype, device)


# ---- Distinct and nonzero elements -----------------------------------------------------------------------------------------------------------

def nonzero(input, *, out=None, as_tuple=False):
    """The indices of elements that are not zero: a row for each, or with as_tuple a vector for each dimension."""
    if as_tuple:
        return _C.where(input)
    return _C.nonzero(input, out=out)


def argwhere(input):
    """The indices of elements that are not zero, a row for each."""
    return _C.nonzero(input)


def msort(input, *, out=None):
    """The elements along dimension 0 in order."""
    return _C.sort(input, 0, out=None if out is None else (out, _C.empty(0, dtype=_C.int64))).values


def _results(values, inverse, counts, return_inverse, return_counts):
    chosen = [values, *([inverse] if return_inverse else []), *([counts] if return_counts else [])]
    return tuple(chosen) if len(chosen) > 1 else values


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct elements in order, or with dim the distinct slices; then, as asked for, which of them each element is and how often each occurs."""
    if dim is not None:
        return _results(*_C._unique_dim(input, dim, sorted, return_inverse, return_counts), return_inverse, return_counts)
    return _results(*_C._unique2(input, sorted, return_inverse, return_counts), return_inverse, return_counts)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The first of each run of equal elements, or with dim slices; then, as asked for, the run of each element and how long each is."""
    return _results(*_C._unique_consecutive(input, return_inverse, return_counts, dim), return_inverse, return_counts)


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

def resize_as_(input, the_template, *, memory_format=None):
    """resize_ to the sizes of another tensor."""
    return input.resize_(the_template.shape, memory_format=memory_format)


def _unwritten(self):
    """What a function reads in place of self while a gradient is recorded: what it is made of saves that, and self is written."""
    return self.clone() if _C.is_grad_enabled() and self.requires_grad else self


def addr_(self, vec1, vec2, *, beta=1, alpha=1):
    """addr, in place."""
    return self.copy_(addr(_unwritten(self), vec1, vec2, beta=beta, alpha=alpha))


def addbmm_(self, batch1, batch2, *, beta=1, alpha=1):
    """addbmm, in place."""
    return self.copy_(addbmm(_unwritten(self), batch1, batch2, beta=beta, alpha=alpha))


def digamma_(self):
    """digamma, in place."""
    return self.copy_(digamma(_unwritten(self)))


def cumprod_(self, dim, *, dtype=None):
    """cumprod, in place."""
    return self.copy_(_unwritten(self).cumprod(dim, dtype=dtype))


def cumsum_(self, dim, *, dtype=None):
    """cumsum, in place."""
    return self.copy_(_unwritten(self).cumsum(dim, dtype=dtype))


def float_power_(self, exponent):
    """float_power, in place. RuntimeError unless self is float64 or complex128."""
    wide = _C.complex128 if self.is_complex() or isinstance(exponent, complex) or (isinstance(exponent, Tensor) and exponent.is_complex()) else _C.float64
    if self.dtype is not wide:
        raise RuntimeError(f"the base given to float_power_ has dtype {self.type().split('.')[1].removesuffix('Tensor')} but the operation's result requires "
                           f"dtype {'ComplexDouble' if wide is _C.complex128 else 'Double'}")
    return self.copy_(_C.float_power(_unwritten(self), exponent))


def where(self, condition, other):
    """The elements of self where the condition holds, and those of other elsewhere."""
    return _C.where(condition, self, other)


def matrix_power(input, n, *, out=None):
    """linalg.matrix_power."""
    from gradus import linalg  # a module that few programs need

    return linalg.matrix_power(input, n, out=out)


for _method in (addbmm, addbmm_, addr, addr_, argwhere, cumprod_, cumsum_, diagflat, digamma, digamma_, dist, dsplit, float_power_, hsplit, matrix_power, msort,
                nonzero, resize_as_, unique, unique_consecutive, vsplit, where):
    setattr(Tensor, _method.__name__, _method)
Tensor.__rdiv__ = Tensor.__rtruediv__
