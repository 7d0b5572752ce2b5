"""Defines the closed list of the names that a checkpoint may contain. Maps each of these names to an object.

The names are those of PyTorch, because PyTorch's files contain them. The name of a function refers to a function in ``rebuild``, which is safe
with arguments from a hostile file, because it only creates values. ``add_safe_globals`` adds a program's own classes and functions to the list.
"""
import functools
import importlib
import pickle

import gradus
from gradus._serialization import rebuild

__all__ = ["add_safe_globals", "allowed_by_user", "clear_safe_globals", "dtype_names", "find", "find_any", "find_here",
           "get_safe_globals", "module_in_files", "safe_globals", "storage_dtypes"]

_allowed = set()

# Maps the names of PyTorch's storage classes to dtypes. For other dtypes a file contains untyped storages.
_STORAGES = {"DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
             "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
             "BoolStorage": "bool", "ComplexDoubleStorage": "complex128", "ComplexFloatStorage": "complex64"}
_DTYPES = (*_STORAGES.values(), "uint16", "uint32", "uint64", "complex32", "float8_e4m3fn", "float8_e5m2")


@functools.cache
def storage_dtypes():
    """Returns a dict from the names of PyTorch's storage classes to the dtypes of their elements, e.g. from "FloatStorage" to float32."""
    return {name: getattr(gradus, dtype) for name, dtype in _STORAGES.items()}


@functools.cache
def dtype_names():
    """Returns a dict from dtypes to their names in files."""
    return {getattr(gradus, name): name for name in _DTYPES}


@functools.cache
def _names():
    names = {
        "collections.OrderedDict": rebuild.make_ordered_dict,
        "collections.Counter": rebuild.make_counter,
        "builtins.set": rebuild.make_set,
        "builtins.complex": rebuild.make_complex,
        "builtins.bytearray": rebuild.make_bytearray,
        "_codecs.encode": rebuild.make_bytes,
        "torch.Size": rebuild.make_size,
        "torch.device": rebuild.make_device,
        "torch.serialization._get_layout": rebuild.make_layout,
        "torch.Tensor": gradus.Tensor,
        "torch.nn.parameter.Parameter": gradus.nn.Parameter,
        "torch.storage.UntypedStorage": rebuild.StorageKind(None),
        "torch._utils._rebuild_tensor": rebuild.rebuild_tensor,
        "torch._utils._rebuild_tensor_v2": rebuild.rebuild_tensor_v2,
        "torch._utils._rebuild_tensor_v3": rebuild.rebuild_tensor_v3,
        "torch._utils._rebuild_parameter": rebuild.rebuild_parameter,
        "torch._utils._rebuild_parameter_with_state": rebuild.rebuild_parameter_with_state,
        "torch._utils._rebuild_meta_tensor_no_storage": rebuild.rebuild_meta_tensor,
        "torch._tensor._rebuild_from_type_v2": rebuild.rebuild_from_type,
        "torch.nested._internal.nested_tensor._rebuild_njt": rebuild.rebuild_nested,
        "torch.nested._internal.nested_tensor.NestedTensor": gradus.nested.NestedTensor,
    }
    names.update((f"torch.{name}", rebuild.StorageKind(dtype)) for name, dtype in storage_dtypes().items())
    names.update((f"torch.{name}", dtype) for dtype, name in dtype_names().items())
    return names


# Special cases of module_in_files: maps a module to the module in which PyTorch has the same classes and functions.
_MODULES = {"gradus._C.nn": "torch.nn.functional", "gradus._C.linalg": "torch._C._linalg", "gradus._C.fft": "torch._C._fft",
            "gradus._C.special": "torch._C._special", "torch.nn.modules.attention": "torch.nn.modules.activation", "torch.nn.modules.parameter_container": "torch.nn.modules.container"}


def module_in_files(module):
    """Returns the name under which files refer to a module. Modules of Gradus get the name of the corresponding module of PyTorch."""
    parts = module.split(".")
    if parts[0] != "gradus" or module in _MODULES:
        return _MODULES.get(module, module)
    # Index of the first private module in the name. The names that a private module defines are exported by the package that contains it. Files
    # therefore refer to the package.
    private = next((i for i, part in enumerate(parts) if part.startswith("_")), len(parts))
    name = ".".join(["torch", *parts[1:private]])
    return _MODULES.get(name, name)


def _full_name(thing):
    return f"{thing.__module__}.{thing.__qualname__}"


@functools.lru_cache(maxsize=1)
def _user_names(allowed):
    return {entry[1] if isinstance(entry, tuple) else _full_name(entry): entry[0] if isinstance(entry, tuple) else entry
            for entry in allowed}


def allowed_by_user(thing):
    """True if `thing` itself, not just an equal object, was passed to ``add_safe_globals``."""
    return any(thing is entry for entry in _user_names(frozenset(_allowed)).values())


def _allowed_here(module, name):
    """Returns the class or function of Gradus that corresponds to the name `module`.`name` of PyTorch. Returns None if there is none or it was not
    passed to ``add_safe_globals``."""
    found = find_here(module_in_files(module), name) if module.split(".")[0] in ("torch", "gradus") else None
    return found if allowed_by_user(found) else None


def find(module, name):
    """Returns the object that the name `module`.`name` stands for in an untrusted file. UnpicklingError: the name is neither on the closed list nor
    allowed by the user."""
    full = f"{module}.{name}".replace("__builtin__.", "builtins.", 1)
    found = _names().get(full)
    if found is None and _allowed:
        found = _user_names(frozenset(_allowed)).get(full) or _allowed_here(module, name)
    if found is None:
        full = full.removeprefix("builtins.")
        raise pickle.UnpicklingError(
            f"Unsupported global: GLOBAL {full} was not an allowed global by default. Please use "
            f"`torch.serialization.add_safe_globals([{full}])` or the `torch.serialization.safe_globals([{full}])` context manager to "
            "allowlist this global if you trust this class/function.")
    return found


def find_any(module, name, find_class):
    """Returns the object that the name `module`.`name` stands for in a trusted file. A name of PyTorch refers to the corresponding object of Gradus;
    ``find_class`` imports all others."""
    if module.split(".")[0] != "torch":
        return find_class(module, name)
    if (module, name) == ("torch._C", "_VariableFunctionsClass"):  # a class of PyTorch whose attributes are the functions of torch
        return gradus
    listed = _names().get(f"{module}.{name}")
    if listed is rebuild.rebuild_from_type:
        return rebuild.rebuild_from_any_type
    if listed is not None and (isinstance(listed, rebuild.StorageKind) or name.startswith("_")):
        return listed
    found = find_here(module, name)
    if found is None:
        raise AttributeError(f"the file names {module}.{name}, which Gradus does not have")
    return found


def find_here(module, name):
    """Returns the object of Gradus that corresponds to `name` in the module `module` of PyTorch, or None. Looks in the module of Gradus with the same
    name, then in the packages that contain this module, because they may export the object."""
    parts = module.replace("torch._C._", "torch._C.", 1).split(".")  # torch._C._linalg, for example, is gradus._C.linalg
    for length in range(len(parts), min(len(parts), 2) - 1, -1):
        try:
            return functools.reduce(getattr, name.split("."), importlib.import_module(".".join(["gradus", *parts[1:length]])))
        except (ImportError, AttributeError):
            continue
    return None


def add_safe_globals(safe_globals):
    """Allows ``load`` to use more classes and functions. A file can then call them with any arguments, so they must be harmless whatever they get.

    Args:
        safe_globals (list): classes and functions, or pairs of such an object and its full name in files.

    >>> class Options:
    ...     pass
    >>> add_safe_globals([Options])
    >>> Options in get_safe_globals()
    True
    >>> clear_safe_globals()
    """
    for entry in safe_globals:
        if isinstance(entry, tuple):
            if len(entry) != 2:
                raise ValueError("Expected tuple of length 2 (global, str of callable full path), but got tuple of length: "
                                 f"{len(entry)}")
            if not isinstance(entry[1], str):
                raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(entry[1])}")
    _allowed.update(safe_globals)


def get_safe_globals():
    """Returns a list of all objects that were passed to ``add_safe_globals``."""
    return list(_allowed)


def clear_safe_globals():
    """Removes all objects that were passed to ``add_safe_globals``."""
    _allowed.clear()


class safe_globals:
    """Context manager that allows ``load`` to use more classes and functions inside the ``with`` block.

    >>> class Options:
    ...     pass
    >>> with safe_globals([Options]):
    ...     len(get_safe_globals())
    1
    """

    def __init__(self, safe_globals):
        self._safe_globals = safe_globals

    def __enter__(self):
        self._new = set(self._safe_globals) - _allowed
        add_safe_globals(self._safe_globals)

    def __exit__(self, *exception):
        _allowed.difference_update(self._new)
