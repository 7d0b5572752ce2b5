"""The methods of Tensor and UntypedStorage that give tensors and storages other memory: set_, resize_, shared memory, files, casts."""
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
# The keys are the names of the methods that cast storages.
CASTS = {"double": "float64", "float": "float32", "half": "float16", "bfloat16": "bfloat16", "long": "int64", "int": "int32", "short": "int16",
         "char": "int8", "byte": "uint8", "bool": "bool", "complex_double": "complex128", "complex_float": "complex64",
         "float8_e5m2": "float8_e5m2", "float8_e4m3fn": "float8_e4m3fn"}


def _contiguous_strides(size):
    return tuple(math.prod(max(n, 1) for n in size[dim + 1:]) for dim in range(len(size)))


# ---- Tensor -----------------------------------------------------------------------------------------------------------------------------------


def set_(self, source=_ABSENT, storage_offset=None, size=None, stride=None):
    """Makes the tensor one over other memory, in its own dtype, and returns it.

    source: a storage, or a tensor, whose memory, sizes and strides the tensor has from then on; nothing: an empty tensor.
    storage_offset, size, stride: other sizes and strides over it, in elements; a storage that is too small grows.

    Views that were made of the tensor before keep the old memory. RuntimeError when the dtypes or the devices differ, and for tensors that
    require gradients: there is no derivative.

    >>> import gradus as torch
    >>> torch.empty(0).set_(torch.arange(4.), 1, (3,))
    tensor([1., 2., 3.])
    """
    with _C.DisableTorchFunctionSubclass():  # as in PyTorch, no class may override set_
        storage, place = _source_of(self, source, storage_offset, size, stride)
        if _C.is_grad_enabled() and (self.requires_grad or isinstance(source, Tensor) and source.requires_grad):
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation." if self.requires_grad and self.is_leaf
                               else "the derivative for 'set_' is not implemented.")
        _grow(storage, self.dtype, *place)
        _C._set_storage(self, storage, *place)
    return self


def _source_of(self, source, offset, size, stride):
    """Returns the storage, and the offset, sizes and strides in elements."""
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
    """Lengthens a storage if the sizes and strides reach beyond its end."""
    if offset < 0 or any(n <= 0 for n in size) or any(step < 0 for step in stride):
        return
    needed = (offset + sum((n - 1) * step for n, step in zip(size, stride)) + 1) * dtype.itemsize
    if needed > len(storage) and needed < 2**63:
        _C._resize_storage(storage, needed)


def is_set_to(self, tensor):
    """True if both tensors have the same memory, sizes, strides and offset.

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
    """Returns the storage of the tensor as a TypedStorage, which counts elements of its dtype. Deprecated: untyped_storage() gives the bytes."""
    from gradus.storage import TypedStorage, warn_typed_storage_removal

    warn_typed_storage_removal(stacklevel=4)
    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)


def _typed_storage(self):
    from gradus.storage import TypedStorage

    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)


def storage_type(self):
    """Returns the class of the tensor's TypedStorage, torch.FloatStorage for example."""
    return self._typed_storage()._get_legacy_storage_class()


def _tensor_share_memory_(self):
    """Moves the memory of the tensor, and of all tensors that share it, to memory that other processes can share; returns the tensor.

    RuntimeError when something else uses the memory: a graph that saved it, or a NumPy array over it.
    """
    if self.device.type != "cpu":
        raise RuntimeError("_share_fd_: only available on CPU")
    _share(self.untyped_storage(), self)
    return self


def _tensor_is_shared(self):
    """True if the memory of the tensor is shared between processes, or a file."""
    return self.untyped_storage().is_shared()


# ---- UntypedStorage ---------------------------------------------------------------------------------------------------------------------------


def _share(storage, tensor=None):
    from gradus.multiprocessing import new_name

    _C._share_storage(storage, new_name(), tensor)


def share_memory_(self):
    """Moves the bytes to memory that processes share; returns the storage. Tensors over it follow."""
    _share(self)
    return self


def is_shared(self):
    """True if the bytes are shared between processes, or those of a file."""
    return _C._shared_place(self) is not None


def _new_shared(size, *, device="cpu"):
    """Returns a storage of so many bytes in memory that processes share."""
    return UntypedStorage(size, device=device).share_memory_()


def from_file(filename, shared=False, nbytes=0):
    """Returns the first bytes of a file as a storage, read when they are used.

    With shared, what is written to the storage goes into the file, which is made or lengthened where that is needed; without, the file stays as it
    is. RuntimeError: the file cannot be opened, or is too short.
    """
    try:
        return _C._map_file(filename, bool(shared), nbytes)
    except OSError as error:  # PyTorch's error class and its order of words
        raise RuntimeError(f"{error.strerror} ({error.errno})") from error


def from_buffer(buffer, byte_order=None, count=-1, offset=0, *, dtype=_C.uint8):
    """Returns the bytes of an object with the buffer protocol as a new storage; those of another byte order are turned round.

    byte_order: 'native', 'little' or 'big'; needed where dtype has more than one byte.
    count, offset: how many elements, and the first byte; all of them by default.
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
    """Turns the bytes of each element of a dtype round; a complex number is two."""
    if not isinstance(dtype, _C.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    width = dtype.itemsize // (2 if dtype.is_complex else 1)
    if width > 1:
        elements = _from_storage(self, 0, (len(self) // width, width), (width, 1), _C.uint8)
        elements.copy_(elements.flip(1))


def resize_(self, size):
    """Gives the storage another number of bytes, keeping as many as fit; returns it. Tensors keep their sizes: what lies behind the end reads as 0."""
    _C._resize_storage(self, size)
    return self


def resizable(self):
    """True if resize_ can be called: the memory is neither shared nor of another owner."""
    return _C._is_resizable(self)


def fill_(self, value):
    """Sets every byte; returns the storage."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise RuntimeError(f"fill_ expects int, but got {type(value).__name__}")
    _bytes_of(self).fill_(value & 255)
    return self


def _bytes_of(self):
    return _from_storage(self, 0, (len(self),), (1,), _C.uint8)


def new(self):
    """Returns an empty storage on the same device."""
    return UntypedStorage(0, device=self.device)


def cpu(self):
    """Returns the storage itself on the cpu; otherwise a copy there."""
    return self if self.device.type == "cpu" else _bytes_of(self).cpu().untyped_storage()


def to(self, *, device, non_blocking=False):
    """Returns the storage itself on its own device; otherwise a copy on another one."""
    return self if _C.device(device) == self.device else _bytes_of(self).to(device).untyped_storage()


def _type(self, dtype=None, non_blocking=False):
    """Returns the name of the storage's type; with a dtype, the storage's bytes converted to numbers of that type."""
    from gradus.storage import converted

    return "torch.storage.UntypedStorage" if dtype is None else converted(_bytes_of(self), dtype)


def get_device(self):
    """Returns the number of the device, -1 on the cpu."""
    return self.device.index if self.device.index is not None else -1


def is_pinned(self, device="cuda"):
    """False: there is no device that would need it."""
    return False


def pin_memory(self, device="cuda"):
    """RuntimeError: there is no device that would need it."""
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
