"""Storages, the memory that tensors share.

UntypedStorage is a storage of bytes. TypedStorage is a storage of elements of one dtype. It is deprecated, as in PyTorch.
"""
import collections.abc
import warnings

from gradus import _C
from gradus._C import UntypedStorage, _from_storage
from gradus._tensor_storage import CASTS

__all__ = ["TypedStorage", "UntypedStorage"]

_DTYPES = {"DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16", "LongStorage": "int64",
           "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool",
           "ComplexDoubleStorage": "complex128", "ComplexFloatStorage": "complex64", "QInt8Storage": "qint8", "QUInt8Storage": "quint8",
           "QInt32Storage": "qint32"}
_FORMS = {False: """
 * (*, torch.device device, torch.dtype dtype)
 * (int size, *, torch.device device, torch.dtype dtype)
 * (Sequence data, *, torch.device device, torch.dtype dtype)
 * (*, UntypedStorage wrap_storage, torch.dtype dtype)
""", True: """
 * no arguments
 * (int size)
 * (Sequence data)
 * (*, UntypedStorage wrap_storage)
"""}
_has_warned = False


def warn_typed_storage_removal(stacklevel=2):
    """Warns, once in each process, that TypedStorage is deprecated."""
    global _has_warned
    if not _has_warned:
        _has_warned = True
        warnings.warn("TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. This should "
                      "only matter to you if you are using storages directly.  To access UntypedStorage directly, use tensor.untyped_storage() "
                      "instead of tensor.storage()", UserWarning, stacklevel=stacklevel)


def converted(tensor, kind):
    """Returns a TypedStorage with the elements of a tensor converted to `kind`, which is a storage class, the name of one, or a dtype.
    RuntimeError: `kind` is none of these."""
    if isinstance(kind, str):
        kind = globals().get(kind.rpartition(".")[2])
    dtype = getattr(kind, "dtype", kind)
    if not isinstance(dtype, _C.dtype):
        raise RuntimeError(f"{kind!r} is no type of storages")
    return TypedStorage(wrap_storage=tensor.to(dtype).untyped_storage(), dtype=dtype, _internal=True)


def is_storage(obj, /):
    """True if obj is an UntypedStorage or a TypedStorage.

    >>> import gradus as torch
    >>> torch.is_storage(torch.ones(2).untyped_storage())
    True
    """
    return isinstance(obj, (UntypedStorage, TypedStorage))


def from_file(filename, shared=None, size=0, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Returns a 1-d tensor over the first elements of a memory-mapped file.

    shared: if True, writes to the tensor change the file, which is created or enlarged if necessary. Otherwise the file stays unchanged.
    size: the number of elements.
    dtype: the dtype of the elements. Defaults to the default dtype.

    OSError: the file cannot be opened. RuntimeError: the file is too short.

    >>> import gradus as torch, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "numbers")
    >>> _ = torch.from_file(path, shared=True, size=3).copy_(torch.tensor([1., 2., 3.]))
    >>> torch.from_file(path, size=2)
    tensor([1., 2.])
    """
    if shared is not None and not isinstance(shared, bool):
        raise TypeError(f"from_file(): argument 'shared' (position 2) must be bool, not {type(shared).__name__}")
    if device is not None and _C.device(device).type != "cpu" or layout not in (None, _C.strided) or pin_memory:
        raise NotImplementedError("from_file(): a file becomes a strided tensor on the cpu")
    dtype = dtype or _C.get_default_dtype()
    untyped = UntypedStorage.from_file(filename, bool(shared), size * dtype.itemsize)
    return _from_storage(untyped, 0, (size,), (1,), dtype).requires_grad_(requires_grad)


class TypedStorage:
    """A storage with a dtype. Its size and indices count elements, not bytes. Deprecated in favour of UntypedStorage.

    Args:
        size: the number of elements, or a sequence of their values. Defaults to 0.
        wrap_storage (UntypedStorage, optional): an existing storage to use instead of a new one.
        dtype (torch.dtype, optional): the dtype of the elements. Required if wrap_storage is given; otherwise None means the default dtype.
        device (torch.device, optional): must be the CPU.
    """

    is_sparse = False

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        if not _internal:
            warn_typed_storage_removal(stacklevel=3)
        _check_arguments("TypedStorage.__init__", False, args, wrap_storage, dtype, device)
        if not isinstance(dtype, (_C.dtype, type(None))):
            raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
        self._untyped_storage, self.dtype = _contents(args, wrap_storage, dtype or _C.get_default_dtype(), device)

    @property
    def _dtype(self):
        return self.dtype

    @property
    def _cdata(self):
        return self._untyped_storage._cdata

    @property
    def device(self):
        """Returns the device of the elements."""
        return self._untyped_storage.device

    @property
    def is_cuda(self):
        """True if the storage is on a device of type 'cuda', which a plug-in must provide."""
        return self.device.type == "cuda"

    @property
    def is_hpu(self):
        """True if the storage is on a device of type 'hpu', which a plug-in must provide."""
        return self.device.type == "hpu"

    @property
    def filename(self):
        """Returns the path of the memory-mapped file or the name of the shared memory, otherwise None."""
        return self._untyped_storage.filename

    def _elements(self):
        return _from_storage(self._untyped_storage, 0, (len(self),), (1,), self.dtype)

    def _over(self, untyped):
        return TypedStorage(wrap_storage=untyped, dtype=self.dtype, _internal=True)

    def untyped(self):
        """Returns the underlying UntypedStorage."""
        return self._untyped_storage

    def __len__(self):
        return len(self._untyped_storage) // self.dtype.itemsize

    def size(self):
        """Returns the number of elements."""
        return len(self)

    def nbytes(self):
        """Returns the number of bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self):
        """Returns the number of bytes of an element."""
        return self.dtype.itemsize

    def data_ptr(self):
        """Returns the address of the first element."""
        return self._untyped_storage.data_ptr()

    def get_device(self):
        """Returns the index of the device, which is -1 for the CPU."""
        return self._untyped_storage.get_device()

    def _index(self, index):
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return index

    def __getitem__(self, index):
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        return self._numbers()[self._index(index)].item()

    def _numbers(self):
        """Returns a tensor over the elements. For a quantized dtype it contains their integer representation."""
        integers = {_C.qint8: _C.int8, _C.quint8: _C.uint8, _C.qint32: _C.int32}
        return _from_storage(self._untyped_storage, 0, (len(self),), (1,), integers.get(self.dtype, self.dtype))

    def __setitem__(self, index, value):
        if not isinstance(index, slice):
            index = self._index(index)
        self._numbers()[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        """Returns the elements as a list of numbers."""
        return self._numbers().tolist()

    def fill_(self, value):
        """Sets every element to `value` and returns the storage."""
        self._numbers().fill_(value)
        return self

    def copy_(self, source, non_blocking=None):
        """Copies the bytes of `source`, a storage of equal size, and returns this storage."""
        self._untyped_storage.copy_(getattr(source, "_untyped_storage", source))
        return self

    def resize_(self, size):
        """Changes the number of elements to `size`, keeping the content as far as it fits."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def resizable(self):
        """True if resize_ can be called, i.e. if the memory is not shared memory and no other object owns it."""
        return self._untyped_storage.resizable()

    def clone(self):
        """Returns a copy of the storage."""
        return self._over(self._untyped_storage.clone())

    def cpu(self):
        """Returns this storage if it is on the CPU, otherwise a copy on the CPU."""
        return self._over(self._untyped_storage.cpu())

    def to(self, *, device, non_blocking=False):
        """Returns a storage with equal elements on `device`."""
        return self._over(self._untyped_storage.to(device=device, non_blocking=non_blocking))

    def cuda(self, device=None, non_blocking=False):
        """Returns a storage with equal elements on a device of type 'cuda', which a plug-in must provide."""
        return self.to(device=_C.device("cuda") if device is None else device)

    def hpu(self, device=None, non_blocking=False):
        """Raises AssertionError, because there is no HPU device."""
        raise AssertionError("HPU device module is not loaded")

    def share_memory_(self):
        """Moves the elements to shared memory, which other processes can use. Returns the storage."""
        self._untyped_storage.share_memory_()
        return self

    def is_shared(self):
        """True if the elements are in shared memory or in a memory-mapped file."""
        return self._untyped_storage.is_shared()

    @classmethod
    def _new_shared(cls, size, *, device="cpu"):
        dtype = getattr(cls, "dtype", None) or _C.get_default_dtype()
        return TypedStorage(wrap_storage=UntypedStorage._new_shared(size * dtype.itemsize, device=device), dtype=dtype, _internal=True)

    def is_pinned(self, device="cuda"):
        """Returns False, because there is no device that needs pinned memory."""
        return False

    def pin_memory(self, device="cuda"):
        """Raises RuntimeError, because there is no device that needs pinned memory."""
        return self._untyped_storage.pin_memory(device)

    def type(self, dtype=None, non_blocking=False):
        """Returns the name of the type, e.g. 'torch.FloatStorage'. If `dtype` (a storage class, its name or a dtype) is given, returns a storage
        with the elements converted to it."""
        return f"torch.{self.pickle_storage_type()}" if dtype is None else converted(self._elements(), dtype)

    def pickle_storage_type(self):
        """Returns the name of the storage's class in files, e.g. 'FloatStorage'. KeyError: no class has this dtype."""
        for name, dtype in _DTYPES.items():
            if getattr(_C, dtype) is self.dtype:
                return name
        raise KeyError(f"dtype {self.dtype} is not recognized")

    _pickle_storage_type = pickle_storage_type

    def _get_legacy_storage_class(self):
        return globals().get(next((name for name, dtype in _DTYPES.items() if getattr(_C, dtype) is self.dtype), None))

    @classmethod
    def from_buffer(cls, *args, **kwargs):
        """Returns a storage with a copy of the bytes of an object that has the buffer protocol. The arguments are (buffer, byte_order, count,
        offset), where byte_order is 'native', 'little' or 'big'. A class such as FloatStorage determines the dtype. TypedStorage itself
        takes the keyword argument `dtype`, whose default is the default dtype."""
        warn_typed_storage_removal(stacklevel=3)
        if cls is not TypedStorage and "dtype" in kwargs:
            raise RuntimeError("from_buffer: 'dtype' can only be specified in UntypedStorage.from_buffer and TypedStorage.from_buffer")
        dtype = kwargs.pop("dtype", None) or getattr(cls, "dtype", None) or _C.get_default_dtype()
        return TypedStorage(wrap_storage=UntypedStorage.from_buffer(*args, dtype=dtype, **kwargs), dtype=dtype, _internal=True)

    @classmethod
    def from_file(cls, filename, shared=False, size=0):
        """Returns a storage over the first `size` elements of a memory-mapped file. If `shared` is true, writes to the storage change the file.
        RuntimeError: the class is TypedStorage itself, which has no dtype."""
        warn_typed_storage_removal(stacklevel=3)
        if cls is TypedStorage:
            raise RuntimeError("from_file can only be called on derived classes")
        untyped = UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize)
        return TypedStorage(wrap_storage=untyped, dtype=cls.dtype, _internal=True)

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        return self._over(self._untyped_storage.__deepcopy__(memo))

    def __reduce__(self):
        return _rebuild_typed_storage, (self._untyped_storage, self.dtype)

    def __str__(self):
        content = "..." if self.device.type == "meta" else " " + "\n ".join(str(value) for value in self)
        return f"{content}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"

    __repr__ = __str__


def _check_arguments(function, is_legacy, args, wrap_storage, dtype, device):
    """Raises RuntimeError or TypeError for an invalid combination of constructor arguments."""
    text = f"{function} received an invalid combination of arguments. Expected one of:{_FORMS[is_legacy]}"
    if is_legacy and (dtype is not None or device is not None):
        raise RuntimeError(f"{text}Keyword argument '{'dtype' if dtype is not None else 'device'}' cannot be specified")
    if wrap_storage is None:
        if len(args) > 1:
            raise RuntimeError(f"{text}Too many positional arguments")
        return
    if args:
        raise RuntimeError(f"{text}No positional arguments should be given when using 'wrap_storage'")
    if not is_legacy and dtype is None:
        raise RuntimeError(f"{text}Argument 'dtype' must be specified")
    if dtype is not None and not isinstance(dtype, _C.dtype):
        raise TypeError(f"{text}Argument 'dtype' must be torch.dtype, not {type(dtype)}")
    if device is not None:
        raise RuntimeError(f"{text}Argument 'device' should not be specified when 'wrap_storage' is given")
    if not isinstance(wrap_storage, UntypedStorage):
        raise TypeError(f"{text}Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")


def _contents(args, wrap_storage, dtype, device):
    """Returns (UntypedStorage, dtype) for the arguments of a storage class's constructor."""
    if wrap_storage is not None:
        return wrap_storage, dtype
    size = args[0] if args else 0
    if isinstance(size, collections.abc.Sequence) and not isinstance(size, str):
        return _C.tensor(size, dtype=dtype, device=device).untyped_storage(), dtype
    if not isinstance(size, int):
        raise TypeError(f"new(): invalid data type '{type(size).__name__}'")
    return UntypedStorage(size * dtype.itemsize, device=device or "cpu"), dtype


def _rebuild_typed_storage(untyped, dtype):
    return TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


class _LegacyStorageMeta(type):
    """The metaclass of FloatStorage and similar classes. A call of such a class returns a TypedStorage. isinstance(x, cls) is True if x is a
    TypedStorage on the CPU with the dtype of cls."""

    dtype = None

    def __instancecheck__(cls, instance):
        return type(instance) is TypedStorage and instance.dtype is cls.dtype and instance.device.type == "cpu"


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    def __new__(cls, *args, wrap_storage=None, dtype=None, device=None):
        warn_typed_storage_removal(stacklevel=3)
        _check_arguments(f"{cls}.__new__", True, args, wrap_storage, dtype, device)
        untyped, dtype = _contents(args, wrap_storage, cls.dtype, None)
        return TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


def _add_cast(name, dtype):
    def cast(self):
        return TypedStorage(wrap_storage=self._elements().to(dtype).untyped_storage(), dtype=dtype, _internal=True)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"The elements converted to {dtype}."
    setattr(TypedStorage, name, cast)


for _name, _dtype in CASTS.items():
    _add_cast(_name, getattr(_C, _dtype))
for _name, _dtype in _DTYPES.items():
    _class = _LegacyStorageMeta(_name, (_LegacyStorage,), {"__module__": "torch", "__doc__": f"TypedStorage of torch.{_dtype}. Deprecated.",
                                                           "dtype": getattr(_C, _dtype), "_dtype": getattr(_C, _dtype)})
    globals()[_name] = _class
Storage = globals()["FloatStorage"]
