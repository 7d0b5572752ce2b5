"""Reads and writes tensors in safetensors files, with the functions of the package ``safetensors.torch``.

A file contains names, dtypes, sizes and elements of tensors, and additional text (metadata). Reading a file runs no code. Files are compatible with
those of the package safetensors in both directions. C programs read and write them with ``grd_load`` and ``grd_save``.

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
    """Raised if a file breaks a rule of the format, or if the format cannot represent an object to be saved."""


@contextlib.contextmanager
def _format_errors():
    """Context manager that converts RuntimeError, which the extension raises for errors of the file format, to SafetensorError."""
    try:
        yield
    except RuntimeError as exception:
        raise SafetensorError(*exception.args) from None


def _byte_range(tensor):
    """Returns (begin, end), the addresses of the memory of a contiguous tensor."""
    return tensor.data_ptr(), tensor.data_ptr() + tensor.numel() * tensor.element_size()


def _overlapping(tensors):
    """Returns a list of sets of tensor names. Each set names two or more tensors whose memory overlaps."""
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
    """Raises an error for tensors that a file cannot store, as the package safetensors does: ValueError for wrong types and for tensors that are not
    contiguous, RuntimeError for tensors that share memory."""
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
    """Returns the bytes of a safetensors file with the given tensors.

    Args:
        tensors (dict): name -> contiguous tensor. No two of them may share memory.
        metadata (dict, optional): name -> text, stored in the file next to the tensors.

    Raises ValueError if `tensors` is not a dict of contiguous tensors; RuntimeError if tensors share memory; :class:`SafetensorError`, a
    RuntimeError, for dtypes that the format does not have.
    """
    return _save(tensors, metadata, None)


def save_file(tensors, filename, metadata=None):
    """Saves tensors to a file. An existing file is replaced only when the new one is complete on disk.

    `tensors` is {name: contiguous tensor}, and `metadata` is {name: text}. ValueError: `tensors` is not such a dict.
    RuntimeError: two tensors share memory, or the format lacks the dtype of a tensor. OSError: the file cannot be written.

    >>> import gradus, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.safetensors")
    ...     save_file({"bias": gradus.arange(3)}, path)
    ...     load_file(path)
    {'bias': tensor([0, 1, 2])}
    """
    _save(tensors, metadata, filename)


def load(data):
    """Returns {name: tensor} for a safetensors file that is given as bytes.

    Raises :class:`SafetensorError`, a RuntimeError, if the bytes break a rule of the format.
    """
    with _format_errors():
        file = _read_safetensors(bytes(data))
        return {name: file.read(name) for name in _by_offset(file)}


def load_file(filename, device="cpu"):
    """Returns {name: tensor} for a safetensors file, with the tensors on `device`.

    Raises :class:`SafetensorError`, a RuntimeError, if the file breaks a rule of the format; FileNotFoundError or another OSError for errors of the
    operating system.
    """
    with safe_open(filename, framework="pt", device=device) as file:
        return file.get_tensors()


def _by_offset(file):
    """Returns the names of the tensors in a file, in the order of their data."""
    return sorted(file.names(), key=lambda name: (file.describe(name)[2], file.describe(name)[1].numel()))


class safe_open:
    """An open safetensors file, whose tensors are read on request. Use it as a context manager.

    Args:
        filename: the path of the file.
        framework (str): "pt". SafetensorError for another framework.
        device (optional): the device for the tensors. Defaults to the CPU.

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
        """Returns the sorted names of the tensors."""
        return self._file.names()

    def offset_keys(self):
        """Returns the names of the tensors in the order of their data in the file."""
        return _by_offset(self._file)

    def metadata(self):
        """Returns the metadata of the file as a dict of texts, or None if there are none."""
        return self._file.metadata() or None

    def get_tensor(self, name):
        """Reads the tensor `name` and returns it as a new tensor. SafetensorError: there is no such tensor."""
        with _format_errors():
            return self._file.read(name).to(self._device)

    def get_tensors(self):
        """Reads all tensors and returns {name: tensor}."""
        return {name: self.get_tensor(name) for name in self.offset_keys()}

    def get_slice(self, name):
        """Returns an object that stands for the tensor `name`. It has methods for the tensor's shape and dtype, and reads the tensor only when it is
        indexed. SafetensorError: there is no such tensor."""
        if self._file.describe(name) is None:
            raise SafetensorError(f"File does not contain tensor {name}")
        return _Slice(self, name)


class _Slice:
    """A tensor in a safetensors file. Indexing it reads the whole tensor from the file and returns the indexed part."""

    def __init__(self, file, name):
        self._file = file
        self._name = name

    def __getitem__(self, index):
        return self._file.get_tensor(self._name)[index]

    def get_shape(self):
        """Returns the sizes as a list."""
        return list(self._file._file.describe(self._name)[1])

    def get_dtype(self):
        """Returns the name of the dtype in the file format, e.g. "F32"."""
        return _DTYPES[self._file._file.describe(self._name)[0]]
