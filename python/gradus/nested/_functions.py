"""The tensor functions and methods that support nested tensors.

All functions here run with __torch_function__ disabled for nested tensors, so that a nested tensor behaves as the tensor of its values. Dimension d
of the nested tensor is dimension d - 1 of the values, because the values have no batch dimension 0. `func` is the library function that the user
called.
"""
import gradus
from gradus import _C
from gradus._C import Size, Tensor
from gradus._overridable import HAND_WRITTEN, by_name

from ._size import SymInt
from ._tensor import Jagged, NestedTensor, nested

__all__ = ["call", "to_padded_tensor", "view"]


def call(func, args, kwargs):
    """Returns func(*args, **kwargs) for a library function `func` and nested tensors among the arguments. Raises NotImplementedError if `func` does
    not support nested tensors."""
    func, args = by_name(func, args)
    name = func.__name__
    if name in ("__get__", "__set__"):
        get = _PROPERTIES.get(func.__self__.__name__)
        return get(*args) if get and name == "__get__" else _wrapped(func(*args), args[0])
    if "input" in kwargs and not args:
        args, kwargs = (kwargs["input"],), {k: v for k, v in kwargs.items() if k != "input"}
    if kwargs.get("out") is not None:
        raise NotImplementedError(f"{name}(): out= is not supported for nested tensors of layout torch.jagged")
    if name in _POINTWISE or name.startswith("special_"):
        return _pointwise(func, *args, **kwargs)
    function = _FUNCTIONS.get(name)
    if function is None and name in HAND_WRITTEN:
        return func(*args, **kwargs)
    if function is None:
        raise NotImplementedError(f"{name}(): not implemented for nested tensors of layout torch.jagged")
    return function(func, *args, **kwargs)


# ---- Sizes ------------------------------------------------------------------------------------------------------------------------


def _ndim(nt):
    return nt.ndim + 1


def _shape(nt):
    """Returns the shape of `nt`. If `nt` is a nested tensor, the shape starts with the number of sequences, and the ragged size is a SymInt."""
    if not isinstance(nt, NestedTensor):
        return nt.shape
    inner, ragged = nt.shape, nt._ragged_idx - 1
    return Size((len(nt._jagged), *inner[:ragged], nt._jagged.size, *inner[ragged + 1:]))


def _stride(func, nt, dim=None):
    strides = nt.stride()
    strides = (nt._jagged.size * strides[nt._ragged_idx - 1], *strides)
    return strides if dim is None else strides[_dim(dim, len(strides))]


def _dim(dim, ndim):
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    return dim % ndim


def _dense_dim(func, nt, dim, ndim=None):
    """Returns `dim` as a non-negative dimension. Raises RuntimeError if `dim` is the batch dimension 0 or the ragged dimension."""
    dim = _dim(dim, ndim or _ndim(nt))
    if dim in (0, nt._ragged_idx):
        raise RuntimeError(f"{func.__name__}(): not supported for NestedTensor on {'ragged dim' if dim else 'dim=0'}")
    return dim


# ---- Sequences --------------------------------------------------------------------------------------------------------------------


def _wrapped(result, like, ragged_idx=None):
    """Turns the tensors in `result`, in place, into nested tensors with the offsets and lengths of `like`. Returns `result`."""
    for t in result if isinstance(result, (tuple, list)) else (result,):
        if isinstance(t, Tensor):
            nested(t, like._jagged.to(t.device), ragged_idx or like._ragged_idx)
    return result


def _sequences(nt):
    """Returns a tuple of the sequences, which are views of the values."""
    dim, spans = nt._ragged_idx - 1, nt._jagged.spans
    if nt._jagged.lengths is None and sum(length for _, length in spans) == nt.shape[dim] and min((length for _, length in spans), default=0) >= 0:
        return nt.split([length for _, length in spans], dim) if spans else ()
    return tuple(nt.narrow(dim, start, length) for start, length in spans)


def _joined(sequences, like, ragged_idx=None):
    """Returns a nested tensor of the given sequences, which must have the same lengths as the sequences of `like`. In its values the sequences follow
    one another without gaps."""
    ragged_idx = ragged_idx or like._ragged_idx
    return nested(gradus.cat(sequences, ragged_idx - 1), _compact(like._jagged), ragged_idx)


def _compact(jagged):
    """Returns a Jagged with the same lengths as `jagged` and without gaps between the sequences."""
    return jagged if jagged.lengths is None else Jagged(gradus.nn.functional.pad(jagged.lengths.cumsum(0), (1, 0)))


def _padded(nt, padding, length=None):
    """Returns a tensor of sizes (sequences, ..., length, ...) in which shorter sequences are padded with `padding`. `length` defaults to the
    length of the longest sequence. RuntimeError: some rows belong to no sequence."""
    if nt._jagged.lengths is not None:
        raise RuntimeError("to_padded_tensor(): not supported for nested tensors with holes")
    length, ragged = nt._jagged.longest if length is None else length, nt._ragged_idx
    values = nt.movedim(ragged - 1, 0)
    exact = float(padding) == padding or padding != padding
    padded = _C._jagged_to_padded_dense_forward(values, [nt._jagged.offsets], [length], float(padding) if exact else 0.0)
    if not exact:  # `padding` is an integer that float64 cannot represent
        inside = gradus.arange(length, device=nt.device) < nt._jagged.offsets.diff().unsqueeze(1)
        padded = padded.masked_fill(inside.logical_not().reshape(*inside.shape, *[1] * (padded.ndim - 2)), padding)
    return padded.movedim(1, ragged)


def _unpadded(dense, like):
    """Returns a nested tensor with the lengths of `like`, from its padded form `dense`."""
    ragged = like._ragged_idx
    values = _C._padded_dense_to_jagged_forward(dense.movedim(ragged, 1), [like._jagged.offsets], like.shape[ragged - 1])
    return nested(values.movedim(0, ragged - 1), like._jagged, ragged)


def to_padded_tensor(nt, padding, output_size=None):
    """Returns the sequences of `nt` as an ordinary tensor, padded with `padding`. The padded length is output_size[ragged dimension], or the length
    of the longest sequence if `output_size` is None."""
    sizes, ragged = nt.shape, nt._ragged_idx
    if output_size is not None and (len(output_size) != len(sizes) or any(d != ragged and output_size[d] != sizes[d] for d in range(len(sizes)))):
        raise RuntimeError(f"to_padded_tensor(): output_size {tuple(output_size)} may differ from {tuple(sizes)} along the ragged dimension only")
    with _C.DisableTorchFunctionSubclass():
        return _padded(nt, padding, None if output_size is None else output_size[ragged])


# ---- Elementwise ------------------------------------------------------------------------------------------------------------------


def _mismatch(func, *tensors):
    shapes = " and ".join(str(tuple(_shape(t)) if all(isinstance(t, NestedTensor) for t in tensors) else _shape(t)) for t in tensors)
    return RuntimeError(f"cannot call binary pointwise function {func.__name__}.Tensor with inputs of shapes {shapes}")


def _spread(func, dense, nt, order):
    """Converts `dense`, an ordinary tensor that broadcasts with the nested tensor `nt`, to a tensor that broadcasts with the values of `nt`, which
    have no batch dimension 0. `order` lists the arguments of `func` for the error text."""
    if dense.ndim == 0:
        return dense
    if dense.ndim > _ndim(nt):
        raise NotImplementedError("NYI: broadcasting NT with T with larger dim")
    ragged = nt._ragged_idx
    dense = dense.reshape((1,) * (_ndim(nt) - dense.ndim) + dense.shape)
    sequences, rows = dense.shape[0], dense.shape[ragged]
    if (sequences, rows) == (1, 1):
        return dense.squeeze(0)
    if sequences == len(nt._jagged) and rows == 1:
        sequence = _C._sequence_of_rows(nt._jagged.offsets, nt.shape[ragged - 1], sequences)
        return dense.squeeze(ragged).index_select(0, sequence).movedim(0, ragged - 1)
    if sequences == len(nt._jagged) and rows == nt._jagged.longest and nt._jagged.lengths is None:
        return _unpadded(dense, nt)
    raise _mismatch(func, *order)


def _pointwise(func, *args, **kwargs):
    """Returns the result of an elementwise function as a nested tensor. All nested arguments must have the same offsets, and other tensors
    broadcast."""
    tensors = [t for t in (*args, *kwargs.values()) if isinstance(t, Tensor)]
    like = next(t for t in tensors if isinstance(t, NestedTensor))
    if func.__name__.endswith("_") and args[0] is not like:
        raise _mismatch(func, *tensors)

    def values(x):
        if isinstance(x, SymInt):
            raise RuntimeError(f"NestedTensor {func.__name__}: invalid argument {x}")
        if not isinstance(x, Tensor):
            return x
        if not isinstance(x, NestedTensor):
            return _spread(func, x, like, tensors)
        if (x._jagged.size, x._ragged_idx, x.ndim) != (like._jagged.size, like._ragged_idx, like.ndim):
            raise _mismatch(func, *tensors)
        return x

    return _wrapped(func(*map(values, args), **{name: values(x) for name, x in kwargs.items()}), like)


# ---- Reductions -------------------------------------------------------------------------------------------------------------------


def _lowest(dtype):
    return -gradus.inf if dtype.is_floating_point else 0 if dtype is gradus.bool else gradus.iinfo(dtype).min


def _highest(dtype):
    return gradus.inf if dtype.is_floating_point else 1 if dtype is gradus.bool else gradus.iinfo(dtype).max


_IDENTITIES = {"sum": lambda dtype: 0, "mean": lambda dtype: 0, "any": lambda dtype: 0, "prod": lambda dtype: 1, "all": lambda dtype: 1,
               "amax": _lowest, "max": _lowest, "argmax": _lowest, "amin": _highest, "min": _highest, "argmin": _highest}


def _reduction(func, nt, dim=None, keepdim=False, **options):
    if isinstance(dim, Tensor):  # called as max(a, b) or min(a, b): `dim` is b
        return _pointwise(func, nt, dim)
    ndim, ragged, name = _ndim(nt), nt._ragged_idx, func.__name__
    if dim is None or dim == () or dim == []:
        result = func(_joined(_sequences(nt), nt) if nt._jagged.lengths is not None else nt, **options)
        return result.reshape((1,) * ndim) if keepdim else result
    dims = {_dim(d, ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))}
    dense = dims - {0, ragged}
    if 0 in dims and ragged not in dims:
        raise RuntimeError(f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested tensors")
    if ragged in dims and nt._jagged.lengths is not None:
        raise RuntimeError(f"{name}(): reducing across the ragged dimension is not supported for non-contiguous nested tensors with holes")
    if ragged in dims and 0 not in dims and dense:
        raise RuntimeError(f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors")
    inner = [d - 1 for d in sorted(dims - {0})] if isinstance(dim, (tuple, list)) else _dim(dim, ndim) - 1
    if 0 in dims:
        result = func(nt, inner, keepdim, **options)
        return result.unsqueeze(0) if keepdim else result
    if ragged not in dims:
        return _wrapped(func(nt, inner, keepdim, **options), nt, ragged if keepdim else ragged - sum(d < ragged for d in dense))
    if name == "mean" and (nt.is_floating_point() or nt.is_complex() or options.get("dtype") is not None):
        return _C._padded_mean(_padded(nt, 0), nt._jagged.offsets.diff(), ragged, keepdim, **options)
    return func(_padded(nt, _IDENTITIES[name](nt.dtype)), [ragged] if isinstance(dim, (tuple, list)) else ragged, keepdim, **options)


def _softmax(func, nt, dim=None, *args, **kwargs):
    """Returns the softmax along `dim`, any dimension except the batch dimension 0, as a nested tensor."""
    if dim is None:
        raise RuntimeError(f"{func.__name__}(): a NestedTensor needs a dim")
    dim = _dim(dim, _ndim(nt))
    if dim == 0:
        raise RuntimeError(f"{func.__name__}(): not supported when reducing across the batch dimension for NestedTensor")
    if dim != nt._ragged_idx:
        return _wrapped(func(nt, dim - 1, *args, **kwargs), nt)
    if nt._jagged.lengths is not None:
        raise RuntimeError(f"{func.__name__}(): not supported where lengths is not None if reducing across the ragged dimension for NestedTensor")
    return _unpadded(func(_padded(nt, -gradus.inf), dim, *args, **kwargs), nt)


def _along(func, nt, dim, *args, **kwargs):
    """Returns the result of `func` along `dim`, which must be neither the batch dimension 0 nor the ragged dimension."""
    return _wrapped(func(nt, _dense_dim(func, nt, dim) - 1, *args, **kwargs), nt)


def _diff(func, nt, n=1, dim=-1, prepend=None, append=None):
    pieces = {name: piece for name, piece in (("prepend", prepend), ("append", append)) if piece is not None}
    if any(not isinstance(piece, NestedTensor) or piece._jagged.size != nt._jagged.size for piece in pieces.values()):
        raise _mismatch(func, nt, *pieces.values())
    return _wrapped(func(nt, n, _dense_dim(func, nt, dim) - 1, **pieces), nt)


# ---- Functions of neural networks -------------------------------------------------------------------------------------------------


def _linear(func, input, weight, bias=None):
    if not isinstance(input, NestedTensor) or input._ragged_idx == input.ndim:
        raise ValueError("NestedTensor linear_default(input: jt, weight: t, bias: t?): expected input to be a contiguous jagged layout NestedTensor")
    return _wrapped(func(input, weight, bias), input)


def _matmul(func, self, other):
    """Implements matmul. If `other` is a matrix, multiplies each sequence by it. If `other` has one matrix for each sequence, multiplies sequence b
    by other[b]. If both tensors are nested, multiplies sequence b of `self` by sequence b of `other`."""
    left = tuple(_shape(self)) if isinstance(self, NestedTensor) else self.shape
    wrong = RuntimeError(f"{func.__name__}(): not supported between inputs of shapes {left} and {_shape(other)}")
    if not isinstance(self, NestedTensor):
        raise wrong
    last = self.ndim
    if isinstance(other, NestedTensor):
        if self._jagged.size != other._jagged.size or self.ndim != other.ndim or (self._ragged_idx, other._ragged_idx) not in {(last, last - 1), (last - 2, last - 2)}:
            raise wrong
        products = [func(a, b) for a, b in zip(_sequences(self), _sequences(other))]
        return gradus.stack(products) if self._ragged_idx == last else _joined(products, self)
    if self._ragged_idx == last:
        raise wrong
    if other.ndim == 2:
        return _wrapped(self.matmul(other), self)
    if other.ndim != last + 1 or other.shape[0] != len(self._jagged) or self._ragged_idx != last - 1:
        raise wrong
    return _joined([a.matmul(b) for a, b in zip(_sequences(self), other)], self)


def _norm(func, input, normalized_shape, *args, **kwargs):
    if len(normalized_shape) >= _ndim(input) - input._ragged_idx:
        raise RuntimeError(f"{func.__name__}(): normalization over the ragged dimension is not supported for NestedTensor")
    return _wrapped(func(input, normalized_shape, *args, **kwargs), input)


def _embedding(func, weight, indices, *args, **kwargs):
    return _wrapped(func(weight, indices, *args, **kwargs), indices)


def _attention(func, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **kwargs):
    """Computes scaled_dot_product_attention, in which sequence b of `query` attends only to sequence b of `key` and `value`."""
    if not all(isinstance(t, NestedTensor) for t in (query, key, value)):
        raise ValueError("Expected query, key, and value to be nested tensors, but got "
                         f"query.is_nested: {isinstance(query, NestedTensor)}, key.is_nested: {isinstance(key, NestedTensor)}, "
                         f"and value.is_nested: {isinstance(value, NestedTensor)} instead.")
    if attn_mask is not None:
        raise ValueError("Masks are not yet supported!")
    if len(query._jagged) != len(key._jagged) or key._jagged.size != value._jagged.size:
        raise RuntimeError(f"scaled_dot_product_attention(): not supported between sequences of shapes {tuple(_shape(query))}, {tuple(_shape(key))} and {tuple(_shape(value))}")
    rows = [func(*qkv, None, dropout_p, is_causal, **kwargs) for qkv in zip(_sequences(query), _sequences(key), _sequences(value))]
    return _joined(rows, query)


# ---- Views ------------------------------------------------------------------------------------------------------------------------


def _sizes(args):
    return tuple(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else args


def view(func, nt, *sizes):
    """Implements view, reshape and expand. The sizes up to and including the ragged dimension must stay unchanged or be -1."""
    given, old, end = _sizes(sizes), _shape(nt), nt._ragged_idx + 1
    if len(given) < 2 or len(given) < end or any(new not in (size, -1) for new, size in zip(given[:end], old)):
        raise RuntimeError(f"view(): cannot view shape {tuple(old)} as {list(given)}")
    return _wrapped(func(nt, (*nt.shape[:end - 1], *given[end:])), nt)


def _like_other(func, nt, other):
    """Implements view_as, expand_as and reshape_as: returns `nt` viewed, expanded or reshaped to the sizes of `other`."""
    return view(getattr(Tensor, func.__name__.removesuffix("_as")), nt, *_shape(other))


def _is_same_size(func, nt, other):
    for name, t in (("self", nt), ("other", other)):
        if not isinstance(t, NestedTensor):
            raise ValueError(f"NestedTensor is_same_size_default(self: jt_all, other: jt_all): expected {name} to be a jagged layout NestedTensor")
    return _shape(nt) == _shape(other)


def _flatten(func, nt, start_dim=0, end_dim=-1):
    start, end = _dense_dim(func, nt, start_dim), _dense_dim(func, nt, end_dim)
    if start < nt._ragged_idx < end:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    return nt if start == end else _wrapped(func(nt, start - 1, end - 1), nt, nt._ragged_idx - (end - start if end < nt._ragged_idx else 0))


def _unflatten(func, nt, dim, sizes):
    dim = _dense_dim(func, nt, dim)
    return _wrapped(func(nt, dim - 1, sizes), nt, nt._ragged_idx + (len(sizes) - 1 if dim < nt._ragged_idx else 0))


def _transpose(func, nt, dim0, dim1):
    a, b = sorted((_dim(dim0, _ndim(nt)), _dim(dim1, _ndim(nt))))
    if a == 0 and a != b:
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    if a == 0:
        return nt
    return _wrapped(nt.transpose(a - 1, b - 1), nt, {a: b, b: a}.get(nt._ragged_idx))


def _permute(func, nt, *dims, **named):
    dims, ndim = _sizes(dims or tuple(named.values())), _ndim(nt)
    if len(dims) != ndim:
        raise ValueError(f"permute(): number of dimensions in the tensor input ({ndim}) does not match the length of the desired ordering of dimensions ({len(dims)}).")
    dims = [_dim(d, ndim) for d in dims]
    if len(set(dims)) != ndim:
        raise ValueError("permute(): duplicate dims are not allowed.")
    if nt._jagged.lengths is not None:
        raise ValueError("permute(): not supported on jagged layout nested tensor with holes")
    if dims[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    return _wrapped(func(nt, [d - 1 for d in dims[1:]]), nt, dims.index(nt._ragged_idx))


def _movedim(func, nt, source, destination):
    """Implements movedim. Dimensions that are not moved stay in their order."""
    ndim = _ndim(nt)
    sources, destinations = ([_dim(d, ndim) for d in (dims if isinstance(dims, (tuple, list)) else (dims,))] for dims in (source, destination))
    if len(sources) != len(destinations) or len(set(sources)) != len(sources) or len(set(destinations)) != len(destinations):
        raise RuntimeError(f"{func.__name__}(): source {source} and destination {destination} must be different dimensions, as many of each")
    order = [d for d in range(ndim) if d not in sources]
    for to, d in sorted(zip(destinations, sources)):
        order.insert(to, d)
    return _permute(Tensor.permute, nt, *order)


def _squeeze(func, nt, dim=None):
    if dim is None:
        raise NotImplementedError("squeeze(): a NestedTensor needs a dim")
    dim = _dense_dim(func, nt, dim)
    return _wrapped(func(nt, dim - 1), nt, nt._ragged_idx - (dim < nt._ragged_idx and nt.shape[dim - 1] == 1))


def _unsqueeze(func, nt, dim):
    dim = _dim(dim, _ndim(nt) + 1)
    if dim == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    return _wrapped(func(nt, dim - 1), nt, nt._ragged_idx + (dim <= nt._ragged_idx))


def _unbind(func, nt, dim=0):
    if dim != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    return _sequences(nt)


def _select(func, nt, dim, index):
    if _dim(dim, _ndim(nt)) == 0:
        if not -len(nt._jagged) <= index < len(nt._jagged):
            raise IndexError(f"select(): index {index} out of range for tensor of size {_shape(nt)} at dimension 0")
        return nt.narrow(nt._ragged_idx - 1, *nt._jagged.spans[index])
    dim = _dense_dim(func, nt, dim)
    return _wrapped(nt.select(dim - 1, index), nt, nt._ragged_idx - (dim < nt._ragged_idx))


def _split(func, nt, sizes, dim=0):
    return _wrapped(func(nt, sizes, _dense_dim(func, nt, dim) - 1), nt)


def _chunk(func, nt, chunks, dim=0):
    """Implements chunk. If `dim` is 0, divides the batch of sequences into at most `chunks` nested tensors; otherwise splits every sequence along
    `dim`."""
    if _dim(dim, _ndim(nt)) != 0 or nt._jagged.lengths is not None:
        return _split(func, nt, chunks, dim)
    offsets, step = nt._jagged.offsets, -(-len(nt._jagged) // chunks)
    bounds = [offsets[i:i + step + 1] for i in range(0, len(nt._jagged), step)]
    rows = nt._jagged.spans[::step]
    ends = [start for start, _ in rows[1:]] + [sum(nt._jagged.spans[-1])]
    return tuple(nested(nt.narrow(nt._ragged_idx - 1, start, end - start), Jagged(part - start), nt._ragged_idx) for part, (start, _), end in zip(bounds, rows, ends))


def _narrow(func, nt, dim, start, length):
    return _along(func, nt, dim, start, length)


def _getitem(func, nt, index):
    """Implements indexing. If the first index is an int, returns the sequence with this number, indexed by the remaining indices. Otherwise the batch
    and the ragged dimension can only be indexed by `:`, and the other dimensions by integers, slices and None."""
    index = index if isinstance(index, tuple) else (index,)
    if any(isinstance(i, (Tensor, list)) for i in index):
        raise NotImplementedError("__getitem__(): a NestedTensor is indexed by integers, slices, None and ... only")
    if index and isinstance(index[0], int):
        return _select(gradus.select, nt, 0, index[0])[index[1:]]
    if Ellipsis in index:
        at = index.index(Ellipsis)
        missing = _ndim(nt) - sum(i is not None for i in index) + 1
        index = (*index[:at], *[slice(None)] * missing, *index[at + 1:])
    dim, ragged = 0, nt._ragged_idx
    for i in index:
        if dim == 0 and i is None:
            raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
        if dim in (0, nt._ragged_idx) and i is not None and i != slice(None):
            function = "slice" if isinstance(i, slice) else "select"
            raise RuntimeError(f"{function}(): not supported for NestedTensor on {'ragged dim' if dim else 'dim=0'}")
        if dim <= nt._ragged_idx:
            ragged += (i is None) - isinstance(i, int)
        dim += i is not None
    return _wrapped(func(nt, index[1:]), nt, ragged)


def _join(func, tensors, dim=0):
    """Implements cat and stack of nested tensors. `dim` must not be the batch dimension 0 nor, for cat, the ragged dimension."""
    name, like = func.__name__, next(t for t in tensors if isinstance(t, NestedTensor))
    if not all(isinstance(t, NestedTensor) for t in tensors):
        raise RuntimeError(f"{name}(): expected all nested tensors inputs")
    if any((t._jagged.size, t._ragged_idx) != (like._jagged.size, like._ragged_idx) for t in tensors):
        raise RuntimeError(f"{name}(): expected all nested tensors to have the same nested structure")
    if name == "stack":
        dim = _dim(dim, _ndim(like) + 1)
        if dim == 0:
            raise RuntimeError("stack(): not supported for NestedTensor on dim=0")
        return _wrapped(func(tensors, dim - 1), like, like._ragged_idx + (dim <= like._ragged_idx))
    return _wrapped(func(tensors, _dense_dim(func, like, dim) - 1), like)


def _grad(func, outputs, inputs, *args, **kwargs):
    """Implements autograd.grad, where gradients of nested tensors are nested tensors."""
    grads = func(outputs, inputs, *args, **kwargs)
    for grad, t in zip(grads, inputs if isinstance(inputs, (tuple, list)) else (inputs,)):
        if isinstance(t, NestedTensor):
            _wrapped(grad, t)
    return grads


def _contiguous(func, nt, *args, **kwargs):
    if nt._jagged.lengths is not None:
        return _joined(_sequences(nt), nt)
    return _wrapped(func(nt, *args, **kwargs), nt)


def _is_contiguous(func, nt, *args, **kwargs):
    return nt._jagged.lengths is None and func(nt, *args, **kwargs)


# ---- Tables -----------------------------------------------------------------------------------------------------------------------


def _size(func, nt, dim=None):
    return _shape(nt) if dim is None else _shape(nt)[_dim(dim, _ndim(nt))]


def _no_permutation(nt):
    raise ValueError("Permute is not supported on the batch dimension for jagged NT")


_PROPERTIES = {"shape": _shape, "ndim": _ndim, "is_nested": lambda nt: True, "layout": lambda nt: gradus.jagged, "mT": lambda nt: _transpose(None, nt, -2, -1),
               "T": _no_permutation, "H": _no_permutation}

# Names of elementwise functions. The sequences of the result have the same lengths as the sequences of the nested argument. The in-place forms of
# these functions are supported too.
_POINTWISE = frozenset("""
abs absolute acos acosh add addcdiv addcmul alpha_dropout angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh bernoulli bfloat16 bitwise_and
bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bool byte ceil celu char clamp clamp_max clamp_min clip clone conj conj_physical copy_ copysign cos cosh cpu
cuda deg2rad detach digamma div divide double dropout elu empty_like eq erf erfc erfinv exp exp2 expm1 fill fill_ fix float float_power floor floor_divide fmax fmin fmod frac full_like gcd
ge gelu greater greater_equal gt half hardshrink hardsigmoid hardswish hardtanh heaviside hypot i0 igamma igammac imag int isclose isfinite isinf isnan isneginf isposinf isreal lcm
ldexp le leaky_relu lerp less less_equal lgamma log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logit logsigmoid long lt masked_fill maximum minimum
mish mul multiply mvlgamma nan_to_num ne neg negative nextafter normal_ not_equal ones_like polygamma positive pow rad2deg rand_like randint_like randn_like real reciprocal relu relu6
remainder requires_grad_ round rrelu rsqrt rsub selu sgn short sigmoid sign signbit silu sin sinc sinh softplus softshrink softsign sqrt square sub subtract tan tanh tanhshrink
threshold to true_divide trunc type type_as uniform_ where xlogy zero_ zeros_like
""".split())
_IN_PLACE = frozenset(name + "_" for name in _POINTWISE if not name.endswith("_"))
_POINTWISE |= _IN_PLACE

_FUNCTIONS = {
    **dict.fromkeys(_IDENTITIES, _reduction), "softmax": _softmax, "log_softmax": _softmax, "softmin": _softmax, "cumsum": _along, "diff": _diff, "cumprod": _along,
    "linear": _linear, "matmul": _matmul, "bmm": _matmul, "layer_norm": _norm, "rms_norm": _norm, "embedding": _embedding, "scaled_dot_product_attention": _attention,
    "view": view, "reshape": view, "expand": view, "flatten": _flatten, "unflatten": _unflatten, "transpose": _transpose, "swapaxes": _transpose, "swapdims": _transpose,
    "permute": _permute, "movedim": _movedim, "moveaxis": _movedim, "view_as": _like_other, "reshape_as": _like_other, "expand_as": _like_other, "is_same_size": _is_same_size,
    "squeeze": _squeeze, "unsqueeze": _unsqueeze, "unbind": _unbind, "select": _select, "split": _split, "split_with_sizes": _split, "tensor_split": _split,
    "chunk": _chunk, "narrow": _narrow, "__getitem__": _getitem, "cat": _join, "concat": _join, "concatenate": _join, "stack": _join, "contiguous": _contiguous,
    "is_contiguous": _is_contiguous, "size": _size, "stride": _stride, "grad": _grad,
}
