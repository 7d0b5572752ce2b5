"""Implements ``save``, which writes an object to a checkpoint that PyTorch can read as well."""
import contextlib
import io
import os
import pickle
import sys
import types
from collections import OrderedDict

import gradus
from gradus._serialization.archive import ArchiveWriter, replacing
from gradus._serialization.globals import dtype_names, find_here, module_in_files, storage_dtypes
from gradus._serialization.legacy import write_head, write_storages

__all__ = ["save"]


def save(obj, f, pickle_module=None, pickle_protocol=2, _use_new_zipfile_serialization=True, _disable_byteorder_record=False):
    """Saves an object to a file that ``load`` of Gradus and of PyTorch can read.

    Tensors that share a storage share it again after loading. The whole storage is saved, even if the tensors use only some of it. An existing file
    is replaced atomically when the new one is complete.

    Args:
        obj: tensors, parameters, numbers, text, dtypes, devices, sizes, and containers of them.
        f: a path, or a writable file object.
        pickle_module: must be None or the module pickle.
        pickle_protocol (int): the protocol of the pickle. PyTorch's safe loader reads only protocol 2.
        _use_new_zipfile_serialization (bool): if False, writes the format of PyTorch before version 1.6.
        _disable_byteorder_record (bool): if True, the file does not record the byte order.

    Raises RuntimeError if the folder does not exist, and the exceptions of pickle for objects that cannot be pickled. In both cases no file is
    changed.

    >>> import gradus, io
    >>> file = io.BytesIO()
    >>> gradus.save([gradus.zeros(2), "text"], file)
    >>> _ = file.seek(0)
    >>> gradus.load(file)
    [tensor([0., 0.]), 'text']
    """
    if pickle_module not in (None, pickle):
        raise RuntimeError("save has a pickler of its own: pickle_module is not supported")

    def write(file, folder):
        if _use_new_zipfile_serialization:
            _save(obj, file, folder, pickle_protocol, _disable_byteorder_record)
        else:
            _save_legacy(obj, file, pickle_protocol)

    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        folder = os.path.splitext(os.path.basename(path))[0] or "archive"
        with replacing(path) as file:
            write(file, folder)
        return
    if not hasattr(f, "write"):
        raise AttributeError(f"expected 'f' to be string, path, or a file-like object with a 'write' attribute, but got {type(f)}")
    write(f, "archive")


def _save_legacy(obj, file, protocol):
    write_head(file, protocol)
    pickler = _Pickler(file, protocol, view=(None,))
    pickler.dump(obj)
    write_storages(file, protocol, {str(key): found for key, found in enumerate(zip(pickler.storages, pickler.counts))})


def _save(obj, file, folder, protocol, without_byteorder):
    text = io.BytesIO()
    pickler = _Pickler(text, protocol)
    pickler.dump(obj)
    with contextlib.closing(ArchiveWriter(file, folder)) as archive:
        archive.write("data.pkl", text.getbuffer())
        archive.write(".format_version", b"1")
        archive.write(".storage_alignment", b"64")
        if not without_byteorder:
            archive.write("byteorder", sys.byteorder.encode())
        for key, storage in enumerate(pickler.storages):
            archive.write(f"data/{key}", storage)
        archive.write("version", b"3\n")


class _Name:
    """The name of a PyTorch function, class or dtype. The pickler writes the name without importing its module, because the module may not exist in
    Gradus."""

    def __init__(self, module, name):
        self.module = module
        self.name = name

    def __call__(self, *args):
        """Never called. The method exists because pickle requires the function of a reduced object to be callable."""
        raise TypeError(f"{self.module}.{self.name} is only a name")


class _Storage:
    """A storage to be written. `kind` is the name of the storage's class in the pickle, e.g. "FloatStorage". `count` is the size of the storage in
    elements of that class, e.g. in floats, or in bytes if `kind` is "UntypedStorage"."""

    def __init__(self, storage, kind, count):
        self.storage = storage
        self.kind = kind
        self.count = count


class _Pickler(pickle._Pickler):
    """A pickler that writes PyTorch's names for the classes and functions of Gradus. It derives from the standard library's pickler in pure Python,
    whose methods can be overridden."""

    def __init__(self, file, protocol, view=()):
        super().__init__(file, protocol)
        self.storages = []
        self.counts = []  # counts[i] is the number of elements of storages[i]
        # The fields at the end of each reference to a storage: (None,) in a legacy file, () in a zip file.
        self._view = view
        self._keys = {}  # address of a storage -> index in self.storages
        self._kinds = []  # _kinds[i] is the name of the class of storages[i] in the pickle, e.g. "FloatStorage"
        self._names = {}
        self._storage_kinds = {dtype: name for name, dtype in storage_dtypes().items()}

    def _name(self, module, name):
        """Returns the _Name of module.name. Equal arguments give the same object, so that the pickle contains the name once and then refers to it."""
        return self._names.setdefault((module, name), _Name(module, name))

    def _save_name(self, name):
        self.write(pickle.GLOBAL + f"{name.module}\n{name.name}\n".encode())
        self.memoize(name)

    def _save_dtype(self, dtype):
        self.save(self._dtype_name(dtype))

    def save_global(self, obj, name=None):
        """Writes a class or function by its name. Classes and functions of Gradus get PyTorch's names, so that both libraries can read the file."""
        name = name or getattr(obj, "__qualname__", obj.__name__)
        module = pickle.whichmodule(obj, name)
        if module.split(".")[0] == "gradus" and find_here(module_in_files(module), name) is obj:
            self.save(self._name(module_in_files(module), name))
        else:
            super().save_global(obj, name)

    dispatch = {**pickle._Pickler.dispatch, types.FunctionType: save_global, _Name: _save_name, gradus.dtype: _save_dtype}

    def persistent_id(self, obj):
        if isinstance(obj, gradus.UntypedStorage):
            obj = _Storage(obj, "UntypedStorage", len(obj))
        if not isinstance(obj, _Storage):
            return None
        module = "torch.storage" if obj.kind == "UntypedStorage" else "torch"
        return "storage", self._name(module, obj.kind), str(self._key(obj)), "cpu", obj.count, *self._view

    def _key(self, obj):
        """Returns the index of obj.storage in self.storages. A storage that is not there yet is appended first. The address identifies a storage.
        An empty storage has no address, so it is appended each time."""
        address = obj.storage.data_ptr() if len(obj.storage) else None
        key = self._keys.get(address)
        if key is None:
            key = len(self.storages)
            self.storages.append(obj.storage)
            self.counts.append(obj.count)
            self._kinds.append(obj.kind)
            if address is not None:
                self._keys[address] = key
        elif self._kinds[key] != obj.kind:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        return key

    def reducer_override(self, obj):
        if isinstance(obj, gradus.Tensor):
            return self._reduce_tensor(obj)
        if isinstance(obj, gradus.device):
            return self._name("torch", "device"), (obj.type,) if obj.index is None else (obj.type, obj.index)
        if isinstance(obj, gradus.Size):
            return self._name("torch", "Size"), (tuple(obj),)
        if isinstance(obj, gradus.layout):
            return self._name("torch.serialization", "_get_layout"), ("torch." + str(obj).rpartition(".")[2],)
        return NotImplemented

    def _reduce_tensor(self, tensor):
        if gradus.nn.parameter.is_lazy(tensor):
            return tensor.__reduce_ex__(2)
        if tensor.is_nested:
            names = (self._name("torch.nested._internal.nested_tensor", name) for name in ("_rebuild_njt", "NestedTensor"))
            return self._name("torch._tensor", "_rebuild_from_type_v2"), (*names, *tensor.__reduce_ex__(2)[1][2:])
        if type(tensor).__reduce_ex__ not in (gradus.Tensor.__reduce_ex__, gradus.nn.Parameter.__reduce_ex__):
            return NotImplemented  # pickle then calls __reduce_ex__, which the class overrides
        with gradus._C.DisableTorchFunctionSubclass():
            return self._reduce_strided_tensor(tensor)

    def _reduce_strided_tensor(self, tensor):
        attributes = getattr(tensor, "__dict__", None)
        if type(tensor) is gradus.nn.Parameter:
            arguments = (tensor.data, tensor.requires_grad, OrderedDict())
            if attributes:
                return self._name("torch._utils", "_rebuild_parameter_with_state"), (*arguments, attributes)
            return self._name("torch._utils", "_rebuild_parameter"), arguments
        function, arguments = self._reduce_data(tensor)
        if type(tensor) is gradus.Tensor and not attributes:
            return function, arguments
        return self._name("torch._tensor", "_rebuild_from_type_v2"), (function, self._class(tensor), arguments, attributes or {})

    def _class(self, tensor):
        return self._name("torch", "Tensor") if type(tensor) is gradus.Tensor else type(tensor)

    def _reduce_data(self, tensor):
        size, stride, dtype, requires_grad = tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.requires_grad
        if tensor.device.type == "meta":
            return self._name("torch._utils", "_rebuild_meta_tensor_no_storage"), (dtype, size, stride, requires_grad)
        if tensor.device.type != "cpu":
            raise RuntimeError(f"cannot save a tensor of device {tensor.device}: move it to the cpu first")
        tensor = tensor.detach()
        if any(step < 0 for step in stride):
            tensor = tensor.contiguous()  # copied, because PyTorch has no negative strides
            stride = tensor.stride()
        bits = {name: True for name, is_set in (("conj", tensor.is_conj()), ("neg", tensor.is_neg())) if is_set}
        metadata = (bits,) if bits else ()
        storage = tensor.untyped_storage()
        kind = self._storage_kinds.get(dtype)
        if kind is None:
            reference = _Storage(storage, "UntypedStorage", len(storage))
            return self._name("torch._utils", "_rebuild_tensor_v3"), (reference, tensor.storage_offset(), size, stride, requires_grad,
                                                                     OrderedDict(), dtype, *metadata)
        reference = _Storage(storage, kind, len(storage) // dtype.itemsize)
        return self._name("torch._utils", "_rebuild_tensor_v2"), (reference, tensor.storage_offset(), size, stride, requires_grad,
                                                                 OrderedDict(), *metadata)

    def _dtype_name(self, dtype):
        return self._name("torch", dtype_names()[dtype])
