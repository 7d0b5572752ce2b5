"""Implements methods of UntypedStorage, and the methods of Tensor that access or replace its storage, e.g. storage, set_ and share_memory_."""
import math
import operator

from gradus import _C
from gradus._C import Tensor, UntypedStorage, _from_storage
from gradus._overridable import add_methods

_ABSENT = object()
_FORMS = """ * ()
 * (torch.Storage source)
 * (torch.Storage source, int storage_offset, tuple of ints size, tuple of ints stride = ())
 * (Tensor source)
 * (Tensor source, int storage_offset, tuple of ints size, tuple of ints stride = ())"""
# The methods that cast a storage. Maps the name of each method to the name of the new dtype.
CASTS = {"double": "float64", "float": "float32", "half": "float16", "bfloat16": "bfloat16", "long": "int64", "int": "int32", "short": "int16",
         "char": "int8", "byte": "uint8", "bool": "bool", "complex_double": "complex128", "complex_float": "complex64",
         "float8_e5m2": "float8_e5m2", "float8_e4m3fn": "float8_e4m3fn"}


def _contiguous_strides(size):
    return tuple(math.prod(max(n, 1) for n in size[dim + 1:]) for dim in range(len(size)))


# ---- Tensor -----------------------------------------------------------------------------------------------------------------------------------


def set_(self, source=_ABSENT, storage_offset=None, size=None, stride=None):
    """Replaces the memory, sizes and strides of `self`, and returns `self`. The dtype stays unchanged.

    source: a storage or a tensor. From then on `self` uses the memory of `source`. Without `source`, `self` becomes empty.
    storage_offset, size, stride: the new offset, sizes and strides of `self`, in elements. If `source` is a tensor, they default to those of
    `source`, and storage_offset counts from the first element of `source`. If `source` is a storage, `self` by default becomes a vector of the whole
    storage. A storage that is too small is enlarged.

    Existing views of `self` keep the old memory. RuntimeError: `self` and `source` differ in dtype or device, or one of them requires a gradient,
    because set_ has no derivative.

    >>> import gradus as torch
    >>> torch.empty(0).set_(torch.arange(4.), 1, (3,))
    tensor([1., 2., 3.])
    """
    with _C.DisableTorchFunctionSubclass():  # as in PyTorch, subclasses cannot override set_
        storage, place = _source_of(self, source, storage_offset, size, stride)
        if _C.is_grad_enabled() and (self.requires_grad or isinstance(source, Tensor) and source.requires_grad):
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation." if self.requires_grad and self.is_leaf
                               else "the derivative for 'set_' is not implemented.")
        _grow(storage, self.dtype, *place)
        _C._set_storage(self, storage, *place)
    return self


def _source_of(self, source, offset, size, stride):
    """Returns (storage, (offset, sizes, strides)) for the arguments of set_. Offset and strides are in elements. TypeError: no form of set_ has
    these arguments."""
    if source is _ABSENT and offset is None and size is None and stride is None:
        return UntypedStorage(0, device=self.device), (0, (0,), (1,))
    storage = getattr(source, "_untyped_storage", source)
    is_tensor, sized = isinstance(source, Tensor), hasattr(offset, "__index__") and isinstance(size, (tuple, list))
    if not (is_tensor or isinstance(storage, UntypedStorage)) or not sized and (offset, size, stride) != (None, None, None):
        given = ", ".join(type(each).__name__ for each in (source, offset, size, stride) if each is not None)
        raise TypeError(f"set_() received an invalid combination of arguments - got ({given}), but expected one of:\n{_FORMS}")
    if getattr(source, "dtype", self.dtype) is not self.dtype:
        raise RuntimeError(f"Could not set tensor of type {source.dtype} to a tensor of type {self.dtype}" if is_tensor else
                           f"Expected a Storage of type {self.dtype} or an UntypedStorage, but got type {source.dtype} for argument 1 'storage'")
    if is_tensor:
        storage = source.untyped_storage()
        if not sized:
            return storage, (source.storage_offset(), tuple(source.shape), source.stride())
        if not source.is_contiguous():
            raise RuntimeError("passed in tensor to be used as storage must be contiguous")
        offset = operator.index(offset) + source.storage_offset()
    if not sized:
        return storage, (0, (len(storage) // self.dtype.itemsize,), (1,))
    if stride and len(stride) != len(size):
        raise RuntimeError(f"unequal size length ({len(size)}) and stride length ({len(stride)})")
    return storage, (operator.index(offset), tuple(size), tuple(stride) if stride else _contiguous_strides(size))


def _grow(storage, dtype, offset, size, stride):
    """Enlarges a storage if the given offset, sizes and strides reach beyond its end."""
    if offset < 0 or any(n <= 0 for n in size) or any(step < 0 for step in stride):
        return
    needed = (offset + sum((n - 1) * step for n, step in zip(size, stride)) + 1) * dtype.itemsize
    if needed > len(storage) and needed < 2**63:
        _C._resize_storage(storage, needed)


def is_set_to(self, tensor):
    """True if both tensors have the same storage, offset, sizes and strides. TypeError: `tensor` is not a Tensor.

    >>> import gradus as torch
    >>> x = torch.ones(3)
    >>> x.is_set_to(x.view(3)), x.is_set_to(x[1:])
    (True, False)
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"is_set_to(): argument 'tensor' (position 1) must be Tensor, not {type(tensor).__name__}")
    return (self.untyped_storage() is tensor.untyped_storage() and self.storage_offset() == tensor.storage_offset() and
            self.shape == tensor.shape and self.stride() == tensor.stride())


def storage(self):
    """Returns the tensor's storage as a TypedStorage, whose elements have the tensor's dtype. Deprecated in favour of untyped_storage()."""
    from gradus.storage import TypedStorage, warn_typed_storage_removal

    warn_typed_storage_removal(stacklevel=4)
    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)


def _typed_storage(self):
    from gradus.storage import TypedStorage

    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)


def storage_type(self):
    """Returns the class of the tensor's TypedStorage, e.g. torch.FloatStorage."""
    return self._typed_storage()._get_legacy_storage_class()


def _tensor_share_memory_(self):
    """Moves the tensor's storage to shared memory, which other processes can use. All tensors over this storage move with it. Returns the tensor.

    RuntimeError: something else uses the memory, such as a graph that saved the tensor or a NumPy array over it.
    """
    if self.device.type != "cpu":
        raise RuntimeError("_share_fd_: only available on CPU")
    _share(self.untyped_storage(), self)
    return self


def _tensor_is_shared(self):
    """True if the tensor's memory is shared memory or a memory-mapped file."""
    return self.untyped_storage().is_shared()


# ---- UntypedStorage ---------------------------------------------------------------------------------------------------------------------------


def _share(storage, tensor=None):
    from gradus.multiprocessing import new_name

    _C._share_storage(storage, new_name(), tensor)


def share_memory_(self):
    """Moves the bytes, and so all tensors over the storage, to shared memory, which other processes can use. Returns the storage."""
    _share(self)
    return self


def is_shared(self):
    """True if the bytes are in shared memory or in a memory-mapped file."""
    return _C._shared_place(self) is not None


def _new_shared(size, *, device="cpu"):
    """Returns a new storage of `size` bytes in shared memory."""
    return UntypedStorage(size, device=device).share_memory_()


def from_file(filename, shared=False, nbytes=0):
    """Returns a storage over the first `nbytes` bytes of a memory-mapped file.

    If `shared` is true, writes to the storage change the file, which is created or enlarged if necessary. Otherwise the file stays unchanged.
    RuntimeError: the file cannot be opened or is too short.
    """
    try:
        return _C._map_file(filename, bool(shared), nbytes)
    except OSError as error:  # PyTorch raises RuntimeError, with the reason before the error number
        raise RuntimeError(f"{error.strerror} ({error.errno})") from error


def from_buffer(buffer, byte_order=None, count=-1, offset=0, *, dtype=_C.uint8):
    """Returns a new storage with a copy of the bytes of an object that has the buffer protocol. Bytes of the opposite byte order are swapped.

    byte_order: 'native', 'little' or 'big'. Required if an element of `dtype` has more than one byte.
    count: the number of elements; -1 takes all of them.
    offset: the index of the first byte.
    """
    content = bytes(memoryview(buffer).cast("B"))
    itemsize = dtype.itemsize
    if byte_order is None and itemsize > 1:
        raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
    if byte_order not in (None, "native", "little", "big"):
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    if not 0 <= offset <= len(content):
        raise ValueError(f"offset must be non-negative and no greater than buffer length ({offset}) , but got {len(content)}")
    if count < 0 and (len(content) - offset) % itemsize:
        raise ValueError(f"buffer size ({len(content)}) must be a multiple of element size ({itemsize})")
    length = count * itemsize if count >= 0 else len(content) - offset
    if offset + length > len(content):
        raise ValueError(f"buffer has only {len(content) - offset} elements after offset {offset}, but specified a size of {count}")
    result = UntypedStorage(length)
    if length:
        memoryview(result)[:] = content[offset:offset + length]
    if byte_order == "big":
        result.byteswap(dtype)
    return result


def byteswap(self, dtype):
    """Reverses the byte order of each element of dtype `dtype`, in place. A complex number counts as two elements."""
    if not isinstance(dtype, _C.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    width = dtype.itemsize // (2 if dtype.is_complex else 1)
    if width > 1:
        elements = _from_storage(self, 0, (len(self) // width, width), (width, 1), _C.uint8)
        elements.copy_(elements.flip(1))


def resize_(self, size):
    """Changes the number of bytes, keeping the content as far as it fits, and returns the storage. Tensors over the storage keep their sizes;
    their elements beyond the storage's end read as 0."""
    _C._resize_storage(self, size)
    return self


def resizable(self):
    """True if resize_ can be called, i.e. if the memory is not shared memory and no other object owns it."""
    return _C._is_resizable(self)


def fill_(self, value):
    """Sets every byte to value & 255 and returns the storage. RuntimeError: `value` is not an int."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise RuntimeError(f"fill_ expects int, but got {type(value).__name__}")
    _bytes_of(self).fill_(value & 255)
    return self


def _bytes_of(self):
    return _from_storage(self, 0, (len(self),), (1,), _C.uint8)


def new(self):
    """Returns a new, empty storage on the device of this one."""
    return UntypedStorage(0, device=self.device)


def cpu(self):
    """Returns the storage itself if it is on the CPU, otherwise a copy on the CPU."""
    return self if self.device.type == "cpu" else _bytes_of(self).cpu().untyped_storage()


def to(self, *, device, non_blocking=False):
    """Returns the storage itself if it is on `device`, otherwise a copy on `device`."""
    return self if _C.device(device) == self.device else _bytes_of(self).to(device).untyped_storage()


def _type(self, dtype=None, non_blocking=False):
    """Returns the name of the storage's class. If `dtype` is given, returns a new storage with each byte converted to a number of that dtype."""
    from gradus.storage import converted

    return "torch.storage.UntypedStorage" if dtype is None else converted(_bytes_of(self), dtype)


def get_device(self):
    """Returns the index of the device, which is -1 for the CPU."""
    return self.device.index if self.device.index is not None else -1


def is_pinned(self, device="cuda"):
    """Returns False, because there is no device that needs pinned memory."""
    return False


def pin_memory(self, device="cuda"):
    """Raises RuntimeError, because there is no device that needs pinned memory."""
    raise RuntimeError("Cannot access accelerator device when none is available.")


def __repr__(self):
    content = "..." if self.device.type == "meta" else " " + "\n ".join(str(byte) for byte in self.tolist())
    return f"{content}\n[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"


def __iter__(self):
    return iter(self.tolist())


def _cast(name, dtype):
    def cast(self):
        from gradus.storage import TypedStorage

        return TypedStorage(wrap_storage=_bytes_of(self).to(dtype).untyped_storage(), dtype=dtype, _internal=True)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"The bytes as numbers of {dtype}: a TypedStorage."
    return cast


Tensor.set_, Tensor._typed_storage = set_, _typed_storage
_tensor_share_memory_.__name__, _tensor_is_shared.__name__ = "share_memory_", "is_shared"
add_methods(is_set_to, storage, storage_type, _tensor_share_memory_, _tensor_is_shared)
for _method in (share_memory_, is_shared, byteswap, resize_, resizable, fill_, new, cpu, to, get_device, is_pinned, pin_memory, __repr__, __iter__):
    setattr(UntypedStorage, _method.__name__, _method)
UntypedStorage.type = _type
UntypedStorage.from_file, UntypedStorage.from_buffer = staticmethod(from_file), staticmethod(from_buffer)
UntypedStorage._new_shared = staticmethod(_new_shared)
UntypedStorage.is_cuda = UntypedStorage.is_hpu = UntypedStorage.is_sparse = UntypedStorage.is_sparse_csr = property(lambda self: False)
UntypedStorage.filename = property(lambda self: (_C._shared_place(self) or (None, None))[1])
for _name, _dtype in CASTS.items():
    setattr(UntypedStorage, _name, _cast(_name, getattr(_C, _dtype)))
