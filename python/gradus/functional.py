"""Functions whose arguments or results have a form that no operator has: any number of tensors, or results that depend on options. Operators do the
computation.
"""
from gradus import _C
from gradus._C import Tensor, block_diag, broadcast_tensors, cartesian_prod, cdist, istft, meshgrid, norm, split, stft, unravel_index
from gradus._overridable import add_methods, overridable

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_tensors", "cartesian_prod", "cdist", "chain_matmul", "detach_", "einsum", "get_device", "is_conj",
           "is_inference", "is_neg", "istft", "lobpcg", "lu", "meshgrid", "nonzero", "norm", "resize_as_", "split", "stft",
           "tensordot", "unique", "unique_consecutive", "unravel_index"]


detach_, get_device, is_conj, is_inference, is_neg = Tensor.detach_, Tensor.get_device, Tensor.is_conj, Tensor.is_inference, Tensor.is_neg


# ---- Shapes ------------------------------------------------------------------------------------------------------------------------------

def _of_each(function, tensors):
    """Returns a tensor for one tensor, a tuple for several or for a list of them."""
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return function(tensors[0])
    if len(tensors) == 1:
        tensors = tensors[0]
    return tuple(function(tensor) for tensor in tensors)


@overridable
def atleast_1d(*tensors):
    """Returns each tensor with at least 1 dimension: a 0-d tensor becomes (1). A tuple for several tensors."""
    return _of_each(_C.atleast_1d, tensors)


@overridable
def atleast_2d(*tensors):
    """Returns each tensor with at least 2 dimensions: dimensions of size 1 are added in front. A tuple for several tensors."""
    return _of_each(_C.atleast_2d, tensors)


@overridable
def atleast_3d(*tensors):
    """Returns each tensor with at least 3 dimensions: a vector becomes (1, n, 1), a matrix (n, m, 1). A tuple for several tensors."""
    return _of_each(_C.atleast_3d, tensors)


# ---- Products ------------------------------------------------------------------------------------------------------------------------------

@overridable
def tensordot(a, b, dims=2, out=None):
    """Returns the sum of products over dimensions of a and b: the last `dims` of a and the first ones of b, or two lists of them."""
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


@overridable
def einsum(equation, *operands):
    """Returns sums of products of the operands' elements, as the equation says: "ij,jk->ik" is a matrix product. The operands may be given in one
    list.

    >>> import gradus as torch
    >>> torch.einsum("ij,j->i", torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 10.0]))
    tensor([21., 43.])
    """
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    return _C.einsum(equation, list(operands))


@overridable
def chain_matmul(*matrices, out=None):
    """Returns linalg.multi_dot of one or more matrices."""
    return _C.chain_matmul(list(matrices), out=out)


@overridable
def lobpcg(A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None, tracker=None, ortho_iparams=None, ortho_fparams=None, ortho_bparams=None):
    """Returns the k largest eigenvalues of symmetric matrices A, or smallest ones unless `largest`, and their vectors, by iteration. Both methods
    are the same here. NotImplementedError: a tracker, or
    parameters of the orthogonalization.

    >>> import gradus as torch
    >>> torch.lobpcg(torch.diag(torch.arange(6.0)), k=2)[0].round(decimals=3)
    tensor([5., 4.])
    """
    given = {"tracker": tracker, "ortho_iparams": ortho_iparams, "ortho_fparams": ortho_fparams, "ortho_bparams": ortho_bparams}
    for name, value in given.items():
        if value is not None:
            raise NotImplementedError(f"lobpcg: {name} is not supported")
    return _C.lobpcg(A, k, B, X, n, iK, niter, tol, largest)


# ---- Distinct and nonzero elements -----------------------------------------------------------------------------------------------------------

@overridable
def nonzero(input, *, out=None, as_tuple=False):
    """Returns the indices of elements that are not zero: a row for each, or with as_tuple a vector for each dimension."""
    if not isinstance(as_tuple, bool):
        raise TypeError(f"nonzero(): argument 'as_tuple' must be bool, not {type(as_tuple).__name__}")
    if as_tuple:
        return _C.where(input)
    return _C.nonzero(input, out=out)


def _results(values, inverse, counts, return_inverse, return_counts):
    chosen = [values, *([inverse] if return_inverse else []), *([counts] if return_counts else [])]
    return tuple(chosen) if len(chosen) > 1 else values


@overridable
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """Returns the distinct elements in order, or with dim the distinct slices; then, as asked for, which of them each element is and how often each occurs."""
    if dim is not None:
        return _results(*_C._unique_dim(input, dim, sorted, return_inverse, return_counts), return_inverse, return_counts)
    return _results(*_C._unique2(input, sorted, return_inverse, return_counts), return_inverse, return_counts)


@overridable
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """Returns the first of each run of equal elements, or with dim slices; then, as asked for, the run of each element and how long each is."""
    return _results(*_C._unique_consecutive(input, return_inverse, return_counts, dim), return_inverse, return_counts)


# ---- Methods -----------------------------------------------------------------------------------------------------------------------------------

@overridable
def resize_as_(input, the_template, *, memory_format=None):
    """resize_ to the sizes of another tensor."""
    return input.resize_(the_template.shape, memory_format=memory_format)


@overridable
def lu(A, pivot=True, get_infos=False, out=None):
    """linalg.lu_factor_ex, as a tuple: L and U in one matrix, pivots and, if get_infos, the place of a zero in each matrix.

    >>> import gradus as torch
    >>> torch.lu(torch.eye(2))[1]
    tensor([1, 2], dtype=torch.int32)
    """
    results = tuple(_C._lu_with_info(A, pivot=pivot, check_errors=not get_infos))[:3 if get_infos else 2]
    if out is None:
        return results
    for given, result in zip(out, results):
        if given.dtype != result.dtype:
            given, wanted = (t.type().split(".")[-1].removesuffix("Tensor") for t in (given, result))
            raise RuntimeError(f"Expected out tensor to have dtype {wanted}, but got {given} instead")
    return tuple(_C.clone(result, out=given) for given, result in zip(out, results))


def _lu(self, pivot=True, get_infos=False):
    """Returns the LU decomposition of the tensor: Tensor.lu."""
    return lu(self, pivot=pivot, get_infos=get_infos)


_lu.__name__ = "lu"
add_methods(nonzero, resize_as_, unique, unique_consecutive, _lu)
Tensor.__rdiv__ = Tensor.__rtruediv__
