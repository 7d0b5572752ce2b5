"""Functions with signatures that operators cannot have, e.g. any number of tensors as arguments, or an option that changes the number of results.
Operators do the computation.
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
    """Returns function(tensor) for a single tensor, or a tuple of the results for several tensors or a list of tensors."""
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return function(tensors[0])
    if len(tensors) == 1:
        tensors = tensors[0]
    return tuple(function(tensor) for tensor in tensors)


@overridable
def atleast_1d(*tensors):
    """Returns each tensor with at least 1 dimension. A 0-d tensor gets the shape (1,). Several tensors give a tuple."""
    return _of_each(_C.atleast_1d, tensors)


@overridable
def atleast_2d(*tensors):
    """Returns each tensor with at least 2 dimensions. Dimensions of size 1 are added in front. Several tensors give a tuple."""
    return _of_each(_C.atleast_2d, tensors)


@overridable
def atleast_3d(*tensors):
    """Returns each tensor with at least 3 dimensions. A vector of n elements gets the shape (1, n, 1). An (n, m) matrix gets the shape (n, m, 1).
    Several tensors give a tuple."""
    return _of_each(_C.atleast_3d, tensors)


# ---- Products ------------------------------------------------------------------------------------------------------------------------------

@overridable
def tensordot(a, b, dims=2, out=None):
    """Returns the sum of products over dimensions of `a` and `b`. If `dims` is an int, the sum is over the last `dims` dimensions of `a` and
    the first `dims` dimensions of `b`. Otherwise `dims` holds two lists: the dimensions of `a` and those of `b`. The result has the
    remaining dimensions of `a`, then the remaining dimensions of `b`."""
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
    """Returns sums of products of the operands' elements in Einstein notation. In "ij,jk->ik", for example, letters name dimensions, and letters that
    are missing on the right are summed over. The operands may also be given as one list.

    >>> import gradus as torch
    >>> torch.einsum("ij,j->i", torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 10.0]))
    tensor([21., 43.])
    """
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    return _C.einsum(equation, list(operands))


@overridable
def chain_matmul(*matrices, out=None):
    """Returns the product of one or more matrices, as linalg.multi_dot does."""
    return _C.chain_matmul(list(matrices), out=out)


@overridable
def lobpcg(A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None, tracker=None, ortho_iparams=None, ortho_fparams=None, ortho_bparams=None):
    """Returns (eigenvalues, eigenvectors) of the generalized problem A x = lambda B x, computed by the LOBPCG iteration (Knyazev 2001). The matrices
    A, of shape (..., m, m), are symmetric. The matrices B are positive definite, by default the identity. The k largest eigenvalues are returned, or
    the k smallest if `largest` is False. The results have the shapes (..., k) and (..., m, k). `method` has no effect. Raises NotImplementedError if
    `tracker` or an ortho_ parameter is given.

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
    """Returns the int64 indices of all elements that are not zero, as a matrix with a row for each element. If `as_tuple` is true, returns a tuple
    with a vector for each dimension instead."""
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
    """Returns the sorted distinct elements, or the distinct slices along `dim`. With return_inverse=True or return_counts=True the
    result is a tuple. `return_inverse` adds, for each input element or slice, its position among the distinct ones. `return_counts` adds the
    number of occurrences of each distinct one."""
    if dim is not None:
        return _results(*_C._unique_dim(input, dim, sorted, return_inverse, return_counts), return_inverse, return_counts)
    return _results(*_C._unique2(input, sorted, return_inverse, return_counts), return_inverse, return_counts)


@overridable
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """Returns the first element of each run of equal consecutive elements, or the first slice of each run along `dim`. With return_inverse=True
    or return_counts=True the result is a tuple. `return_inverse` adds, for each input element or slice, the index of its run. `return_counts` adds
    the length of each run."""
    return _results(*_C._unique_consecutive(input, return_inverse, return_counts, dim), return_inverse, return_counts)


# ---- Methods -----------------------------------------------------------------------------------------------------------------------------------

@overridable
def resize_as_(input, the_template, *, memory_format=None):
    """Calls input.resize_ with the sizes of `the_template`, and returns `input`."""
    return input.resize_(the_template.shape, memory_format=memory_format)


@overridable
def lu(A, pivot=True, get_infos=False, out=None):
    """Returns the LU decomposition of matrices as a tuple (LU, pivots) or, if `get_infos` is true, (LU, pivots, infos), as linalg.lu_factor_ex does.
    LU holds L below the diagonal and U on and above it. infos is 0, or i if U[i - 1, i - 1] is 0.

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
    """Implements Tensor.lu, which returns lu(self)."""
    return lu(self, pivot=pivot, get_infos=get_infos)


_lu.__name__ = "lu"
add_methods(nonzero, resize_as_, unique, unique_consecutive, _lu)
Tensor.__rdiv__ = Tensor.__rtruediv__
