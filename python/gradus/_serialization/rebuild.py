"""Creates values from their description in a pickle. Arguments come from the file and are checked before anything is created."""
import pickle
from collections import Counter, OrderedDict

import gradus
from gradus._C import _from_storage

_MAX = 2**63 - 1


class StorageKind:
    """Represents a storage class that occurs in a checkpoint, e.g. FloatStorage. The checkpoint gives the sizes of such storages in elements of
    `dtype`, or in bytes if `dtype` is None."""

    __slots__ = ("dtype",)

    def __init__(self, dtype):
        self.dtype = dtype


class TypedStorage:
    """A storage in a file, and the dtype of its elements. The user gets such an object only if a storage itself was saved, not a tensor."""

    __slots__ = ("_untyped_storage", "dtype")

    def __init__(self, storage, dtype):
        self._untyped_storage = storage
        self.dtype = dtype

    def untyped(self):
        """Returns the untyped storage; None on the meta device."""
        return self._untyped_storage


def _expect(condition, what):
    if not condition:
        raise pickle.UnpicklingError(what)


def make_set(items=()):
    _expect(isinstance(items, (list, tuple)), "a set of what is no list")
    for item in items:
        check_key(item)
    return set(items)


def make_ordered_dict():
    return OrderedDict()


def make_counter(counts=None):
    _expect(counts is None or type(counts) is dict, "a Counter of what is no dictionary")
    return Counter(counts)


def make_size(sizes=()):
    _expect(isinstance(sizes, (tuple, list)) and all(isinstance(n, int) and abs(n) <= _MAX for n in sizes), "a Size of what are no sizes")
    return gradus.Size(sizes)


def make_complex(real, imag):
    _expect(isinstance(real, (int, float)) and isinstance(imag, (int, float)), "a complex number of what are no numbers")
    return complex(real, imag)


def make_bytes(text, encoding):
    _expect(isinstance(text, str) and encoding in ("latin1", "latin-1"), "bytes in another encoding than latin1")
    return text.encode("latin1")


def make_bytearray(*args):
    if len(args) == 2:
        args = (make_bytes(*args),)
    _expect(len(args) <= 1 and all(isinstance(content, bytes) for content in args), "a bytearray of what are no bytes")
    return bytearray(*args)


def make_device(*args):
    _expect(len(args) in (1, 2) and isinstance(args[0], str) and all(isinstance(index, int) for index in args[1:]), "no device")
    return gradus.device(*args)


def make_layout(name):
    _expect(name == "torch.strided", f"layout {name!r}")
    return gradus.strided


def check_key(key, budget=None):
    """Raises UnpicklingError if hashing `key` would visit 1000 objects or more. In a malicious file, every
    tuple could contain the next one twice, so that hashing takes exponential time."""
    budget = budget or [1000]
    budget[0] -= 1
    _expect(budget[0] > 0, "the key of a dictionary or set is nested too deeply")
    if type(key) is tuple:
        for item in key:
            check_key(item, budget)


def _check_geometry(offset, size, stride):
    for name, numbers in (("size", size), ("stride", stride)):
        _expect(isinstance(numbers, tuple) and all(isinstance(n, int) and 0 <= n <= _MAX for n in numbers), f"{name} {numbers!r} of a tensor")
    _expect(isinstance(offset, int) and 0 <= offset <= _MAX, f"storage offset {offset!r} of a tensor")
    _expect(len(size) == len(stride), f"a tensor of {len(size)} dimensions with {len(stride)} strides")
    _expect(len(size) <= 64, f"a tensor of {len(size)} dimensions")


def rebuild_tensor(storage, offset, size, stride, dtype=None):
    """Returns a tensor over a storage. RuntimeError: the tensor would reach beyond the end of the storage."""
    if isinstance(storage, gradus.UntypedStorage):
        storage = TypedStorage(storage, None)
    _expect(isinstance(storage, TypedStorage), "a tensor without a storage")
    dtype, storage = dtype or storage.dtype, storage.untyped()
    _expect(isinstance(dtype, gradus.dtype), "a tensor of bytes without a dtype")
    _check_geometry(offset, size, stride)
    if storage is None:
        return gradus.empty_strided(size, stride, dtype=dtype, device="meta")
    needed = 0 if 0 in size else (offset + sum((n - 1) * step for n, step in zip(size, stride)) + 1) * dtype.itemsize
    if needed > len(storage):
        raise RuntimeError(f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {dtype.itemsize} "
                           f"requiring a storage size of {needed} are out of bounds for storage of size {len(storage)}")
    if 0 in size:  # The tensor has no elements and needs no storage. empty_strided checks that the sizes do not overflow.
        return gradus.empty_strided(size, stride, dtype=dtype)
    return _from_storage(storage, offset, size, stride, dtype)


def rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks, metadata=None):
    tensor = _with_bits(rebuild_tensor(storage, offset, size, stride), metadata)
    return _with_requires_grad(tensor, requires_grad, backward_hooks)


def rebuild_tensor_v3(storage, offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    _expect(isinstance(dtype, gradus.dtype), "a tensor without a dtype")
    tensor = _with_bits(rebuild_tensor(storage, offset, size, stride, dtype), metadata)
    return _with_requires_grad(tensor, requires_grad, backward_hooks)


def _with_bits(tensor, metadata):
    """Returns a view of `tensor` that is conjugated if metadata["conj"] is True and negated if metadata["neg"] is True. Returns `tensor` itself if
    neither is True. `metadata` is a dict or None."""
    _expect(metadata is None or isinstance(metadata, dict), "metadata of a tensor")
    if metadata and metadata.get("conj") is True:
        tensor = tensor.conj()
    if metadata and metadata.get("neg") is True:
        tensor = gradus._neg_view(tensor)
    return tensor


def _with_requires_grad(tensor, requires_grad, backward_hooks):
    _expect(isinstance(requires_grad, bool), "requires_grad of a tensor")
    _expect(not backward_hooks, "backward hooks of a tensor")
    if requires_grad:
        tensor.requires_grad_()
    return tensor


def rebuild_parameter(data, requires_grad, backward_hooks):
    _expect(isinstance(data, gradus.Tensor) and isinstance(requires_grad, bool), "no parameter")
    _expect(not backward_hooks, "backward hooks of a parameter")
    return gradus.nn.Parameter(data, requires_grad)


def rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    return _with_attributes(rebuild_parameter(data, requires_grad, backward_hooks), state)


def rebuild_meta_tensor(dtype, size, stride, requires_grad):
    _expect(isinstance(dtype, gradus.dtype), "a tensor without a dtype")
    _check_geometry(0, size, stride)
    return _with_requires_grad(gradus.empty_strided(size, stride, dtype=dtype, device="meta"), requires_grad, None)


def rebuild_nested(facts):
    _expect(isinstance(facts, dict), "no nested tensor")
    values, offsets, lengths = (facts.get(name) for name in ("values", "offsets", "lengths"))
    _expect(type(values) is gradus.Tensor and all(type(t) is gradus.Tensor and not t.is_floating_point() for t in (offsets, lengths) if t is not None), "a nested tensor without its parts")
    _expect(type(facts.get("_ragged_idx")) is int and offsets is not None, "a nested tensor without offsets")
    return _with_requires_grad(gradus.nested.nested_tensor_from_jagged(values, offsets, lengths, facts["_ragged_idx"]).detach(), facts.get("requires_grad"), None)


def rebuild_from_type(function, kind, args, state):
    """Returns the tensor function(*args) as an instance of the class `kind`, with the attributes in `state`. UnpicklingError: `function` or `kind` is
    not allowed in a file."""
    from gradus._serialization.globals import allowed_by_user

    _expect(function in _TENSOR_FUNCTIONS and isinstance(args, tuple), "no function that makes a tensor")
    _expect(kind in (gradus.Tensor, gradus.nn.Parameter, gradus.nested.NestedTensor) or allowed_by_user(kind), "a class of tensors that is not allowed")
    tensor = function(*args)
    if type(tensor) is not kind:
        tensor = tensor.as_subclass(kind)
    return _with_attributes(tensor, state)


def rebuild_from_any_type(function, kind, args, state):
    """Returns the tensor function(*args) as an instance of the class `kind`. The file is trusted, so any class is allowed. If `kind` defines
    ``__setstate__``, that method restores `state`. Otherwise the items of `state` become attributes."""
    tensor = function(*args)
    if type(tensor) is not kind:
        tensor = tensor.as_subclass(kind)
    if getattr(kind, "__setstate__", None) is not getattr(gradus.Tensor, "__setstate__", None):
        tensor.__setstate__(state)
        return tensor
    for attributes in state if isinstance(state, tuple) else (state,):
        for name, value in (attributes or {}).items():
            setattr(tensor, name, value)
    return tensor


_TENSOR_FUNCTIONS = (rebuild_tensor_v2, rebuild_tensor_v3, rebuild_parameter, rebuild_meta_tensor, rebuild_nested)


def _with_attributes(tensor, state):
    """Sets the attributes in `state`, a dict or None, on `tensor`, and returns `tensor`. UnpicklingError: the tensor's class already has an
    attribute or a method with one of the names."""
    _expect(state is None or type(state) in (dict, OrderedDict), "attributes of a tensor")
    for name, value in (state or {}).items():
        _expect(isinstance(name, str) and not hasattr(type(tensor), name), f"attribute {name!r} of a tensor")
        setattr(tensor, name, value)
    return tensor
