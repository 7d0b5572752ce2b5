"""Tensors by name in safetensors files, with the functions of the package ``safetensors.torch``.

A file holds names, dtypes, sizes and elements, and text beside them; reading one runs no code. The package reads what is written here, and
the other way round. C programs have the same files by ``grd_save`` and ``grd_load``.

>>> import gradus
>>> content = save({"weight": gradus.ones(2, 3)}, metadata={"format": "pt"})
>>> load(content)["weight"].shape
torch.Size([2, 3])
"""
import contextlib

import gradus
from gradus._C import _open_safetensors, _read_safetensors, _save_safetensors

__all__ = ["SafetensorError", "load", "load_file", "safe_open", "save", "save_file"]

_DTYPES = {gradus.bool: "BOOL", gradus.uint8: "U8", gradus.int8: "I8", gradus.uint16: "U16", gradus.int16: "I16", gradus.uint32: "U32",
           gradus.int32: "I32", gradus.uint64: "U64", gradus.int64: "I64", gradus.float16: "F16", gradus.bfloat16: "BF16",
           gradus.float32: "F32", gradus.float64: "F64", gradus.complex64: "C64", gradus.float8_e4m3fn: "F8_E4M3",
           gradus.float8_e5m2: "F8_E5M2"}


class SafetensorError(RuntimeError):
    """A file breaks a rule of the format, or the format cannot hold what is to be saved."""


@contextlib.contextmanager
def _format_errors():
    """Raises errors of the file format as SafetensorError, the class that programs catch."""
    try:
        yield
    except RuntimeError as exception:
        raise SafetensorError(*exception.args) from None


def _byte_range(tensor):
    """Returns the addresses that a contiguous tensor's elements begin and end at."""
    return tensor.data_ptr(), tensor.data_ptr() + tensor.numel() * tensor.element_size()


def _overlapping(tensors):
    """Groups of names, each of tensors that share memory."""
    groups, end = [], 0
    for name in sorted((name for name in tensors if tensors[name].numel()), key=lambda name: _byte_range(tensors[name])):
        start, stop = _byte_range(tensors[name])
        if groups and start < end:
            groups[-1].append(name)
        else:
            groups.append([name])
        end = max(end, stop)
    return [set(group) for group in groups if len(group) > 1]


def _check(tensors):
    """Raises the errors of the package safetensors for tensors that could not be loaded as they were saved."""
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, gradus.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}")
        if not tensor.is_contiguous():
            raise ValueError(f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. It either means you are trying to "
                             "save tensors which are reference of each other in which case it's recommended to save only the full tensors, "
                             "and reslice at load time, or simply call `.contiguous()` on your tensor to pack it before saving.")
    shared = _overlapping({name: tensor for name, tensor in tensors.items() if tensor.device.type == "cpu"})
    if shared:
        raise RuntimeError("Some tensors share memory, this will lead to duplicate memory on disk and potential differences when loading "
                           f"them again: {shared}.")


def _save(tensors, metadata, path):
    _check(tensors)
    with _format_errors():
        return _save_safetensors(dict(tensors), dict(metadata or {}), path)


def save(tensors, metadata=None):
    """Return the bytes of a file with these tensors.

    Args:
        tensors (dict): contiguous tensors by name, no two of which share memory.
        metadata (dict, optional): text by name, to go into the file beside them.

    Raises ValueError for what is no dictionary of contiguous tensors; RuntimeError for tensors that share memory;
    :class:`SafetensorError`, a RuntimeError, for dtypes that the format does not have.
    """
    return _save(tensors, metadata, None)


def save_file(tensors, filename, metadata=None):
    """Save tensors to a file, which replaces the one of that name when all of it is on disk.

    Takes and raises what :func:`save` does; OSError, of the class that belongs to its number, for what the system refuses.

    >>> import gradus, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.safetensors")
    ...     save_file({"bias": gradus.arange(3)}, path)
    ...     load_file(path)
    {'bias': tensor([0, 1, 2])}
    """
    _save(tensors, metadata, filename)


def load(data):
    """Return the tensors of a file, by name, from its bytes.

    Raises :class:`SafetensorError`, a RuntimeError, for bytes that break a rule of the format.
    """
    with _format_errors():
        file = _read_safetensors(bytes(data))
        return {name: file.read(name) for name in _by_offset(file)}


def load_file(filename, device="cpu"):
    """Return the tensors of a file, by name, on a device.

    Raises :class:`SafetensorError`, a RuntimeError, for a file that breaks a rule of the format; FileNotFoundError and other
    OSErrors for what the system refuses.
    """
    with safe_open(filename, framework="pt", device=device) as file:
        return file.get_tensors()


def _by_offset(file):
    """Returns the names of a file in the order of its data."""
    return sorted(file.names(), key=lambda name: (file.describe(name)[2], file.describe(name)[1].numel()))


class safe_open:
    """An open file, whose tensors are read when they are asked for.

    Args:
        filename: a path.
        framework (str): "pt".
        device (optional): where the tensors go.

    >>> import gradus, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.safetensors")
    ...     save_file({"bias": gradus.arange(3)}, path, metadata={"format": "pt"})
    ...     with safe_open(path, framework="pt") as file:
    ...         print(file.keys(), file.metadata(), file.get_slice("bias")[1:])
    ['bias'] {'format': 'pt'} tensor([1, 2])
    """

    def __init__(self, filename, framework, device="cpu"):
        if framework not in ("pt", "torch", "pytorch"):
            raise SafetensorError(f"framework {framework} is invalid")
        self._device = gradus.device(device)
        with _format_errors():
            self._file = _open_safetensors(filename)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._file.close()

    def keys(self):
        """Return the names of the tensors, sorted."""
        return self._file.names()

    def offset_keys(self):
        """Return the names of the tensors in the order in which they lie in the file."""
        return _by_offset(self._file)

    def metadata(self):
        """Return the text beside the tensors as a dictionary, or None if there is none."""
        return self._file.metadata() or None

    def get_tensor(self, name):
        """Return a new tensor with the elements of that name."""
        with _format_errors():
            return self._file.read(name).to(self._device)

    def get_tensors(self):
        """Return all tensors by name."""
        return {name: self.get_tensor(name) for name in self.offset_keys()}

    def get_slice(self, name):
        """Return an object that is indexed to get a part of a tensor, and tells its shape and dtype."""
        if self._file.describe(name) is None:
            raise SafetensorError(f"File does not contain tensor {name}")
        return _Slice(self, name)


class _Slice:
    """A tensor of a file, which is read when it is indexed."""

    def __init__(self, file, name):
        self._file = file
        self._name = name

    def __getitem__(self, index):
        return self._file.get_tensor(self._name)[index]

    def get_shape(self):
        """Return the sizes as a list."""
        return list(self._file._file.describe(self._name)[1])

    def get_dtype(self):
        """Return the format's name of the dtype, e.g. "F32"."""
        return _DTYPES[self._file._file.describe(self._name)[0]]
