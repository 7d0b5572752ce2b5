"""``load``: an object out of a checkpoint."""
import io
import os
import pickle
import sys

import gradus
from gradus._serialization.archive import ArchiveReader
from gradus._serialization.rebuild import StorageKind, TypedStorage
from gradus._serialization.unpickler import ClosedUnpickler

__all__ = ["load"]


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args):
    """Load an object that ``save`` of Gradus or of PyTorch has written.

    Args:
        f: a path, or a file object that can seek.
        map_location (optional): where tensors go: a device or its name, a dictionary from names in the file to names here, or
            ``function(storage, name)``, which returns a storage or None for its usual place.
        pickle_module: only None.
        weights_only (bool, optional): with True, the default, and with False alike, a closed list of classes and functions holds, and
            what :func:`gradus.serialization.add_safe_globals` has added to it. No file runs code.
        mmap (bool, optional): take storages out of a private mapping of the file, which has to be given by its path; pages are read
            when they are used, and sums are not checked.
        encoding (str): accepted for PyTorch's sake.

    Raises UnpicklingError for a name that is not on the list and for a damaged pickle, RuntimeError for a damaged archive, for tensors
    that reach out of their storage and for devices that are not there, FileNotFoundError for a path without a file.

    >>> import gradus, io
    >>> file = io.BytesIO()
    >>> gradus.save({"x": gradus.arange(3)}, file)
    >>> _ = file.seek(0)
    >>> gradus.load(file)
    {'x': tensor([0, 1, 2])}
    """
    if pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    unknown = set(pickle_load_args) - {"encoding"}
    if unknown:
        raise TypeError(f"load() got an unexpected keyword argument '{min(unknown)}'")
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _load(file, map_location, mapped=bool(mmap))
    if mmap:
        raise ValueError("f must be a string filename in order to use mmap argument")
    for method in ("read", "seek", "tell"):
        if not hasattr(f, method):
            raise AttributeError(f"'{type(f).__name__}' object has no attribute '{method}': load needs a path, or a file object that can "
                                 "seek; read other streams into an io.BytesIO first")
    return _load(f, map_location, mapped=False)


def _load(file, map_location, mapped):
    archive = ArchiveReader(file, mapped)
    try:
        if archive.has("constants.pkl"):
            raise RuntimeError("Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``: this file holds a "
                               "program")
        return ClosedUnpickler(io.BytesIO(archive.read("data.pkl")), _Storages(archive, _restorer(map_location))).load()
    finally:
        archive.close()


class _Storages:
    """Makes the storages of an archive, each once: tensors that shared one do so again."""

    def __init__(self, archive, restore):
        self._archive = archive
        self._restore = restore
        self._loaded = {}
        order = archive.read("byteorder") if archive.has("byteorder") else b"little"
        if order not in (b"little", b"big"):
            raise ValueError(f"Unknown endianness type: {order!r}")
        self._swapped = order.decode() != sys.byteorder

    def __call__(self, reference):
        if not (isinstance(reference, tuple) and len(reference) == 5 and reference[0] == "storage"):
            raise pickle.UnpicklingError("Weights only load failed: Only persistent_load of storage is allowed, but got "
                                         f"{type(reference[0]) if isinstance(reference, tuple) and reference else type(reference)}")
        _, kind, key, location, count = reference
        if not (isinstance(kind, StorageKind) and isinstance(key, str) and isinstance(location, str) and isinstance(count, int)):
            raise pickle.UnpicklingError("Weights only load failed: a storage without a class, name, place or size")
        if key not in self._loaded:
            self._loaded[key] = self._load(kind, key, location, count)
        storage = self._loaded[key]
        return storage if kind.dtype is None and storage is not None else TypedStorage(storage, kind.dtype)

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


def _swap_bytes(content, dtype):
    """Turn round the bytes of each number; a complex number is two."""
    if dtype is None:
        raise RuntimeError("this file is from a machine of the other byte order, with a dtype that its storages do not say")
    width = dtype.itemsize // (2 if dtype.is_complex else 1)
    original = bytes(content)
    for place in range(width):
        content[place::width] = original[width - 1 - place::width]


def _restorer(map_location):
    """A function from a storage and the name of its place in the file to the storage in its place here; None is the meta device."""
    if map_location is None:
        return _restore
    if isinstance(map_location, dict):
        return lambda storage, location: _restore(storage, map_location.get(location, location))
    if isinstance(map_location, (str, gradus.device)):
        return lambda storage, location: _restore(storage, str(map_location))

    def restore(storage, location):
        result = map_location(storage, location)
        return _restore(storage, location) if result is None else result

    return restore


def _restore(storage, location):
    kind = location.split(":")[0]
    if kind == "cpu":
        return storage
    if kind == "meta":
        return None
    if kind == "cuda":
        raise RuntimeError("Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a "
                           "CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU.")
    raise RuntimeError(f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {location})")
