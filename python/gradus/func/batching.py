"""Implements vmap. It calls a function once for all elements of a batch, although the function is written for one element."""
import functools

import gradus
from gradus import _C
from gradus.random import get_rng_state, set_rng_state
from gradus.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_leaves, tree_unflatten

__all__ = ["vmap"]


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """Returns a function that applies `func` to each element along a dimension of its arguments, all at once, and stacks the results.

    Args:
        func: a function whose arguments and results are tensors, or nested tuples, lists and dicts of tensors.
        in_dims: the batch dimension: an int for all tensors, or a tuple with one item for each argument. An item is an int, None, or a nested
            structure of these that matches the argument. None means that all elements of the batch share the value.
        out_dims: for each result, the dimension along which the elements of the batch are stacked. None means that the result is equal for all
            elements and is returned once.
        randomness: the behaviour of random functions. They raise an error ("error"), return different numbers for each element ("different"), or
            return the same numbers for all elements ("same").
        chunk_size: the number of elements that are processed at once; None means all.

    Inside `func`, tensors have the sizes of one element. Operations that depend on values of elements, such as item() or nonzero(), raise an error.
    If a vmap runs inside another vmap, only the outer one is computed as a batch. The inner vmap calls its function once for each of its elements,
    and uses the randomness of the outer vmap.

    >>> a, b = gradus.tensor([[1.0, 2.0], [3.0, 4.0]]), gradus.tensor([10.0, 100.0])
    >>> gradus.func.vmap(gradus.dot, in_dims=(0, None))(a, b)
    tensor([210., 430.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        _check_out_dims(func, out_dims)
        batch_size, dims, leaves, spec = _batched_inputs(func, in_dims, args)

        if _C._batch_size() >= 0:
            return _one_by_one(functools.partial(func, **kwargs), out_dims, randomness, batch_size, dims, leaves, spec)

        def run(size, leaves):
            _C._batch_begin(size, randomness)
            try:
                inputs = tree_unflatten([leaf if dim is None else _C._batch(leaf, dim) for leaf, dim in zip(leaves, dims)], spec)
                return _results(func, out_dims, func(*inputs, **kwargs))
            finally:
                _C._batch_end()

        if chunk_size is None or chunk_size >= batch_size:
            return run(batch_size, leaves)[0]
        return _chunked(run, batch_size, chunk_size, dims, leaves, randomness)

    return wrapped


def _name(func):
    if hasattr(func, "__name__"):
        return func.__name__
    return f"functools.partial({_name(func.func)}, ...)" if isinstance(func, functools.partial) else repr(func)


# ---- Arguments ------------------------------------------------------------------------------------------------------------------------------------


def _batched_inputs(func, in_dims, args):
    """Returns (batch size, batch dimensions, leaves, spec). `spec` is the nested structure of the arguments, and `leaves` are the
    values in it. A leaf's batch dimension is None if all batch elements share the leaf. Raises ValueError if in_dims do not fit the arguments."""
    call = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(f"{call}expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: {type(in_dims)}.")
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with no inputs. "
            "The latter is unsupported."
        )
    leaves, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{call}in_dims is not compatible with the structure of `inputs`. in_dims has structure {tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    dims = [_batch_dim(call, leaf, dim) for leaf, dim in zip(leaves, dims)]
    sizes = [leaf.size(dim) for leaf, dim in zip(leaves, dims) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension")
    return sizes[0], dims, leaves, spec


def _batch_dim(call, leaf, dim):
    """Returns `dim` as a non-negative dimension of the tensor `leaf`, or None if `dim` is None. `call` begins the error texts. ValueError: `dim` is
    not valid."""
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ValueError(f"{call}Got in_dim={dim} for an input but in_dim must be either an integer dimension or None.")
    if not isinstance(leaf, gradus.Tensor):
        raise ValueError(
            f"{call}Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over non-Tensor arguments, "
            "please use None as the respective in_dim"
        )
    n = leaf.dim()
    if not -n <= dim < n:
        raise ValueError(
            f"{call}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {n} so expected in_dim to satisfy -{n} <= in_dim < {n}."
        )
    return dim % n


# ---- Results --------------------------------------------------------------------------------------------------------------------------------------


def _check_out_dims(func, out_dims):
    if not all(dim is None or isinstance(dim, int) for dim in tree_leaves(out_dims)):
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints representing where in the outputs the "
            "vmapped dimension should appear."
        )


def _results(func, out_dims, outputs):
    """Returns (results, leaves, dims, spec). `results` are the outputs with the batch in dimension out_dims. `leaves`, `dims` and
    `spec` are the tensors in `results`, their batch dimensions and their nested structure. _chunked needs them to join the results of chunks."""
    leaves, dims, spec = _with_out_dims(func, out_dims, outputs)
    leaves = [_result(_name(func), leaf, dim) for leaf, dim in zip(leaves, dims)]
    return tree_unflatten(leaves, spec), leaves, dims, spec


def _with_out_dims(func, out_dims, outputs):
    """Returns (leaves, dims, spec). `leaves` are the values in the nested structure `outputs`, `dims` are their batch dimensions or None, and
    `spec` is the TreeSpec of the structure. ValueError: the structure of out_dims does not match."""
    leaves, spec = tree_flatten(outputs)
    single = isinstance(outputs, gradus.Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1
    dims = list(out_dims) if single else _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. "
            f"out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    return leaves, dims, spec


def _result(name, leaf, dim):
    if dim is None:
        if isinstance(leaf, gradus.Tensor) and _C._is_batched(leaf):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return leaf
    if not isinstance(leaf, gradus.Tensor):
        raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(leaf)}. Did you mean to set out_dims= to None for output?")
    return _C._unbatch(leaf, dim)


def _one_by_one(func, out_dims, randomness, size, dims, leaves, spec):
    """Returns the results of a vmap inside of another vmap. `func` is called for one element after another, because only one vmap at a time can
    process its elements as a batch."""
    if size == 0:
        raise RuntimeError("vmap: a vmap inside of another one needs an element")
    state, calls = get_rng_state() if randomness == "same" else None, []
    for i in range(size):
        if state is not None:
            set_rng_state(state)
        inputs = [leaf if dim is None else leaf.select(dim, i) for leaf, dim in zip(leaves, dims)]
        calls.append(_with_out_dims(func, out_dims, func(*tree_unflatten(inputs, spec))))
    _, out_dims, spec = calls[0]
    columns = zip(*(call[0] for call in calls))
    return tree_unflatten([column[0] if dim is None else gradus.stack(column, dim) for column, dim in zip(columns, out_dims)], spec)


def _chunked(run, batch_size, chunk_size, dims, leaves, randomness):
    state = get_rng_state() if randomness == "same" else None
    chunks = []
    for start in range(0, batch_size, chunk_size):
        size = min(chunk_size, batch_size - start)
        if state is not None:
            set_rng_state(state)
        chunks.append(run(size, [leaf if dim is None else leaf.narrow(dim, start, size) for leaf, dim in zip(leaves, dims)]))
    _, _, out_dims, spec = chunks[0]
    return tree_unflatten([gradus.cat([chunk[1][i] for chunk in chunks], dim=dim) for i, dim in enumerate(out_dims)], spec)


def grad_of_batch(outputs, inputs, grad_outputs, create_graph, allow_unused, materialize_grads):
    """Implements autograd.grad(is_grads_batched=True): returns the gradients for each element of the batch in grad_outputs. The graph is retained."""
    inputs = (inputs,) if isinstance(inputs, gradus.Tensor) else tuple(inputs)
    vectors = (grad_outputs,) if isinstance(grad_outputs, (gradus.Tensor, type(None))) else tuple(grad_outputs)
    found = {}

    def product(*vectors):
        grads = gradus.autograd.grad(
            outputs, inputs, vectors, retain_graph=True, create_graph=create_graph, allow_unused=allow_unused, materialize_grads=materialize_grads
        )
        found.update(enumerate(grads))
        return [grad for grad in grads if grad is not None]

    batches = iter(vmap(product, in_dims=tuple(None if v is None else 0 for v in vectors))(*vectors))
    return tuple(None if found[i] is None else next(batches) for i in range(len(inputs)))
