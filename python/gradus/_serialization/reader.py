"""Implements ``load``, which reads an object from a checkpoint."""
import contextlib
import functools
import io
import os
import pickle
import sys
import warnings

import gradus
from gradus._serialization.archive import ArchiveReader
from gradus._serialization.legacy import begins_legacy, copy_storages, read_head
from gradus._serialization.rebuild import StorageKind, TypedStorage
from gradus._serialization.unpickler import ClosedUnpickler, open_unpickler
from gradus.safetensors import load_file

__all__ = ["load"]


_UNSAFE = ("Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in arbitrary code execution. Do it "
           "only if you got the file from a trusted source.")
_TRUE = ("1", "y", "yes", "true")


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args):
    """Loads an object that ``save`` of Gradus or of PyTorch has written.

    Args:
        f: a path, or a file object that can seek. A path that ends with ``.safetensors`` is loaded by
            :func:`gradus.safetensors.load_file`.
        map_location (optional): the device for the tensors. A device or its name, a dictionary from device names in the file to device names
            here, or ``function(storage, name)``. The function returns the storage on the wanted device. If it returns None, the default applies.
        pickle_module (optional): the module whose Unpickler reads the object. It implies ``weights_only=False``.
        weights_only (bool, optional): if True, the default, the file runs no code and may contain only the names on a closed list.
            :func:`gradus.serialization.add_safe_globals` adds names to the list. **If False, the file can name and call anything, so that loading a
            file means running a program. Use False only for files that you trust.**
        mmap (bool, optional): if True, storages use a private memory mapping of the file, which must be given as a path. Pages are read on first
            access, and checksums are not checked.
        pickle_load_args: arguments of the Unpickler, with ``weights_only=False``.

    Raises RuntimeError for a damaged archive, for a tensor that reaches beyond its storage and for a device that does not exist. Raises
    pickle.UnpicklingError for a name that is not on the list, for a damaged pickle and for a file that is not an archive. Raises EOFError for an
    empty file, and MemoryError for a tensor that does not fit into memory. An error of the operating system raises OSError or a subclass such as
    FileNotFoundError. If ``weights_only=False``, a pickle may raise any exception.

    >>> import gradus, io
    >>> file = io.BytesIO()
    >>> gradus.save({"x": gradus.arange(3)}, file)
    >>> _ = file.seek(0)
    >>> gradus.load(file)
    {'x': tensor([0, 1, 2])}

    Whole modules, and objects of a program's own classes, can be loaded only from a trusted file:

    >>> file = io.BytesIO()
    >>> gradus.save(gradus.nn.Linear(3, 2), file)
    >>> _ = file.seek(0)
    >>> gradus.load(file, weights_only=False)
    Linear(in_features=3, out_features=2, bias=True)
    """
    weights_only = _decide(weights_only, pickle_module)
    if weights_only:
        _check_closed_arguments(pickle_module, pickle_load_args)
        read = _read_closed
    else:
        read = functools.partial(_read_open, pickle_module or pickle, {"encoding": "utf-8", **pickle_load_args})
    if isinstance(f, (str, os.PathLike)):
        if os.fspath(f).endswith(".safetensors"):
            return load_file(f, _one_device(map_location))
        with open(f, "rb") as file:
            return _load(file, map_location, read, mapped=bool(mmap))
    if mmap:
        raise ValueError("f must be a file path in order to use the mmap argument")
    for method in ("read", "seek", "tell"):
        if not hasattr(f, method):
            raise AttributeError(f"'{type(f).__name__}' object has no attribute '{method}': load needs a path, or a file object that can "
                                 "seek; read other streams into an io.BytesIO first")
    return _load(f, map_location, read, mapped=False)


def _decide(weights_only, pickle_module):
    """Returns weights_only as a bool. If it is None, returns the default, which is False if a pickle_module is given and True otherwise. One of
    PyTorch's environment variables forces True, another one makes False the default. RuntimeError: both variables are set."""
    forced, opened = (os.environ.get(f"TORCH_FORCE_{name}_LOAD", "0").lower() in _TRUE for name in ("WEIGHTS_ONLY", "NO_WEIGHTS_ONLY"))
    if forced and opened:
        raise RuntimeError("Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both were set.")
    if forced:
        return True
    if weights_only is None and opened:
        warnings.warn("Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the`weights_only` argument was not explicitly "
                      "passed to `torch.load`, forcing weights_only=False.", stacklevel=3)
        return False
    return pickle_module is None if weights_only is None else bool(weights_only)


def _check_closed_arguments(pickle_module, pickle_load_args):
    if pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if pickle_load_args:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=3)
    unknown = set(pickle_load_args) - {"encoding"}
    if unknown:
        raise TypeError(f"load() got an unexpected keyword argument '{min(unknown)}'")


def _one_device(map_location):
    """Returns the device on which to load the tensors of a safetensors file. Such a file contains no devices, so map_location must be a single
    device."""
    if map_location is None:
        return "cpu"
    if isinstance(map_location, (str, bytes, gradus.device)):
        return _name_of_place(map_location)
    kind = "dict" if isinstance(map_location, dict) else "callable"
    raise RuntimeError(f"Loading safetensors file with {kind} map_location is not supported. Use a device string or torch.device instead.")


def _load(file, map_location, read, mapped):
    restore = _restorer(map_location)
    start = file.tell()
    is_legacy = begins_legacy(file.read(1))
    file.seek(start)
    if is_legacy:
        return _load_legacy(file, restore, read, mapped)
    archive = ArchiveReader(file, mapped)
    try:
        if archive.has("constants.pkl"):
            raise RuntimeError("Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``: this file holds a "
                               "program, which Gradus does not run")
        content = archive.read("data.pkl")
        return read(io.BytesIO(content), _ArchiveStorages(archive, restore), len(content))
    except _OfTheCaller as carrier:
        raise carrier.args[0] from None
    finally:
        archive.close()


def _load_legacy(file, restore, read, mapped):
    if mapped:
        raise RuntimeError("mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True), please torch.save your "
                           "checkpoint with this option in order to use mmap.")
    start = file.tell()
    size = file.seek(0, io.SEEK_END) - start
    file.seek(start)
    try:
        with _explained():
            storages = _LegacyStorages(read_head(file, size), size, restore)
        result = read(file, storages, size)
        with _explained():
            storages.fill(file, size)
        return result
    except _OfTheCaller as carrier:
        raise carrier.args[0] from None


def _read_closed(content, storages, size):
    with _explained():
        return ClosedUnpickler(content, storages, size).load()


def _read_open(pickle_module, arguments, content, storages, _size):
    return open_unpickler(pickle_module, content, storages.of_any_kind, **arguments).load()


@contextlib.contextmanager
def _explained():
    try:
        yield
    except pickle.UnpicklingError as exception:
        raise pickle.UnpicklingError(_explain(str(exception))) from exception.__cause__


def _explain(message):
    """Returns PyTorch's error text for an object that the unpickler has refused."""
    if "was not an allowed global by default" not in message:
        return f"Weights only load failed. {_UNSAFE}\n\nWeightsUnpickler error: {message}"
    return ("Weights only load failed. This file can still be loaded, to do so you have two options, \033[1mdo those steps only if you trust the "
            f"source of the checkpoint\033[0m. \n\t(1) {_UNSAFE}\n\t(2) Alternatively, to load with `weights_only=True` please check the "
            f"recommended steps in the following error message.\n\tWeightsUnpickler error: {message}")


class _Storages:
    """Loads the storages to which a pickle refers. Creates each storage only once, so that tensors that shared it when they were saved share it
    again."""

    def __init__(self, swapped, restore):
        self._swapped = swapped
        self._restore = restore
        self._loaded = {}
        self._typed = {}

    def of_any_kind(self, reference):
        """Returns the object for a persistent reference in a trusted file. Such a reference usually stands for a storage; in old files it may also
        stand for the class of a module."""
        if isinstance(reference, tuple) and len(reference) > 1 and reference[0] == "module":
            return reference[1]
        return self(reference)

    def __call__(self, reference):
        if not (isinstance(reference, tuple) and len(reference) >= 5 and reference[0] == "storage"):
            raise pickle.UnpicklingError("Only persistent_load of storage is allowed, but got "
                                         f"{type(reference[0]) if isinstance(reference, tuple) and reference else type(reference)}")
        _, kind, key, location, count, *view = reference
        if view not in ([], [None]):
            raise pickle.UnpicklingError("a storage that is a view of another one, as PyTorch wrote before version 0.4, is not supported")
        if not (isinstance(kind, StorageKind) and isinstance(key, str) and isinstance(location, str) and isinstance(count, int)):
            raise pickle.UnpicklingError("a storage without a class, name, place or size")
        if key not in self._loaded:
            self._loaded[key] = self._load(kind, key, location, count)
        storage = self._loaded[key]
        if kind.dtype is None and storage is not None:
            return storage
        return self._typed.setdefault((key, kind.dtype), TypedStorage(storage, kind.dtype))


class _ArchiveStorages(_Storages):
    def __init__(self, archive, restore):
        order = archive.read("byteorder") if archive.has("byteorder") else b"little"
        if order not in (b"little", b"big"):
            raise RuntimeError(f"Unknown endianness type: {order[:20]!r}")
        super().__init__(order.decode() != sys.byteorder, restore)
        self._archive = archive

    def _load(self, kind, key, location, count):
        name = f"data/{key}"
        size = self._archive.size(name)
        itemsize = kind.dtype.itemsize if kind.dtype else 1
        if count * itemsize != size:
            raise RuntimeError(f"storage {key} has {size} bytes, not {count} elements of {itemsize}")
        if self._archive.is_mapped:
            content = gradus.frombuffer(self._archive.mapped(name), dtype=gradus.uint8) if size else gradus.empty(0, dtype=gradus.uint8)
            storage = content.untyped_storage()
        else:
            storage = gradus.empty(size, dtype=gradus.uint8).untyped_storage()
            self._archive.read_into(name, storage)
        if self._swapped and size:
            _swap_bytes(memoryview(storage).cast("B"), kind.dtype)
        return self._restore(storage, location)


class _LegacyStorages(_Storages):
    """Loads the storages of a legacy file. In such a file the bytes of the storages follow the pickled object. So unpickling creates tensors over
    uninitialized storages, and fill() reads the bytes afterwards."""

    def __init__(self, swapped, size, restore):
        super().__init__(swapped, restore)
        self._left = size
        self._waiting = {}

    def _load(self, kind, key, location, count):
        size = count * (kind.dtype.itemsize if kind.dtype else 1)
        self._left -= size
        if size < 0 or self._left < 0:
            raise RuntimeError(f"storage {key} of {count} elements: the file has not so many bytes")
        storage = gradus.empty(size, dtype=gradus.uint8).untyped_storage()
        restored = self._restore(storage, location)
        self._waiting[key] = kind, count, storage, restored
        return restored

    def _room(self, key, count):
        if not isinstance(key, str) or key not in self._waiting:
            raise pickle.UnpicklingError(f"storage {key!r} is of no tensor")
        _, expected, storage, _ = self._waiting[key]
        if count != expected:
            raise RuntimeError(f"storage {key} has {count} elements, not {expected}")
        return memoryview(storage).cast("B") if len(storage) else b""

    def fill(self, file, size):
        for key in copy_storages(file, size, self._room):
            kind, _, storage, restored = self._waiting.pop(key)
            if self._swapped and len(storage):
                _swap_bytes(memoryview(storage).cast("B"), kind.dtype)
            if restored is not None and restored is not storage and len(storage):
                gradus.frombuffer(restored, dtype=gradus.uint8).copy_(gradus.frombuffer(storage, dtype=gradus.uint8))
        if self._waiting:
            raise RuntimeError(f"storage {min(self._waiting)} is missing in the file")


def _swap_bytes(content, dtype):
    """Reverses the order of the bytes of each number in `content`, in place. A complex number counts as two numbers."""
    if dtype is None:
        raise RuntimeError("this file is from a machine of the other byte order, with a dtype that its storages do not say")
    width = dtype.itemsize // (2 if dtype.is_complex else 1)
    original = bytes(content)
    for place in range(width):
        content[place::width] = original[width - 1 - place::width]


def _name_of_place(place):
    return place.decode() if isinstance(place, bytes) else str(place)


def _restorer(map_location):
    """Returns the function(storage, location) that implements map_location. `location` is the storage's device in the file. The function returns
    the storage on the device that map_location selects, or None for the meta device."""
    if map_location is None:
        return _restore
    if isinstance(map_location, dict):
        return lambda storage, location: _restore(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes, gradus.device)):
        return lambda storage, location: _restore(storage, map_location)

    if not callable(map_location):
        raise TypeError(f"map_location must be a device, its name, a dictionary, a function or None, not {type(map_location).__name__}")

    def restore(storage, location):
        try:
            result = map_location(storage, location)
        except Exception as exception:
            raise _OfTheCaller(exception) from exception
        if result is None:
            return _restore(storage, location)
        if not isinstance(result, gradus.UntypedStorage):
            raise _OfTheCaller(TypeError(f"map_location must return a storage or None, not {type(result).__name__}"))
        return result

    return restore


class _OfTheCaller(Exception):
    """Wraps an exception of the caller's function map_location. Without the wrapper, the unpickler would report that the file is damaged."""


def _restore(storage, place):
    place = _name_of_place(place)
    kind = place.split(":")[0]
    if kind == "cpu":
        return storage
    if kind == "meta":
        return None
    if kind == "cuda":
        raise RuntimeError("Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a "
                           "CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU.")
    try:
        device = gradus.device(place)
        content = gradus.frombuffer(storage, dtype=gradus.uint8) if len(storage) else gradus.empty(0, dtype=gradus.uint8)
        return content.to(device).untyped_storage()
    except RuntimeError as exception:
        raise RuntimeError(f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {place})") from exception
