"""Binds the C API by ctypes, so that tests can call any operator by name with generic values."""
import ctypes as c
import os
import re
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parent.parent.parent
LIBRARY = Path(os.environ.get("GRADUS_LIBRARY", ROOT / "build" / "release" / "libgradus.so"))

# The dtypes in the order of the header's enumeration.
DTYPES = ["none", *re.findall(r"^ +X\(\w+, (\w+),", (ROOT / "include/gradus/types.h").read_text(), re.M)]
CODE = {name: i for i, name in enumerate(DTYPES)}
KINDS = ["None", "Tensor", "Tensor[]", "Scalar", "int", "float", "bool", "int[]", "dtype", "device", "str", "Generator"]
FUNCTIONAL, INPLACE, OUT = range(3)


class ScalarComplex(c.Structure):
    _fields_ = [("re", c.c_double), ("im", c.c_double)]


class ScalarValue(c.Union):
    _fields_ = [("i", c.c_int64), ("c", ScalarComplex)]


class Scalar(c.Structure):
    _fields_ = [("v", ScalarValue), ("kind", c.c_int)]


class Dims(c.Structure):
    _fields_ = [("n", c.c_int64), ("data", c.POINTER(c.c_int64))]


class Tensors(c.Structure):
    _fields_ = [("n", c.c_int64), ("data", c.POINTER(c.c_void_p))]


class Device(c.Structure):
    _fields_ = [("type", c.c_uint8), ("index", c.c_int8)]


class ValueUnion(c.Union):
    _fields_ = [("tensor", c.c_void_p), ("tensors", Tensors), ("scalar", Scalar), ("integer", c.c_int64), ("number", c.c_double),
                ("boolean", c.c_bool), ("dims", Dims), ("dtype", c.c_int), ("device", Device), ("string", c.c_char_p), ("generator", c.c_void_p)]


class Value(c.Structure):
    _fields_ = [("kind", c.c_int), ("v", ValueUnion)]


class BackwardOptions(c.Structure):
    _fields_ = [("grad_outputs", Tensors), ("retain_graph", c.c_bool), ("create_graph", c.c_bool), ("allow_unused", c.c_bool)]


class Scope(c.Structure):
    _fields_ = [("mark", c.c_int64)]


class GradusError(RuntimeError):
    def __init__(self, class_name, message):
        super().__init__(message)
        self.class_name = class_name


def load():
    lib = c.CDLL(str(LIBRARY))
    pointer, text = c.c_void_p, c.c_char_p
    prototypes = {
        "grd_ok": (c.c_bool, []), "grd_error_message": (text, []), "grd_error_get": (c.c_int, []), "grd_error_class": (text, [c.c_int]),
        "grd_error_clear": (None, []), "grd_scope_open": (Scope, []), "grd_scope_close": (None, [Scope]),
        "grd_op_find": (pointer, [text]), "grd_op_arg_count": (c.c_int, [pointer]), "grd_op_arg_name": (text, [pointer, c.c_int]),
        "grd_op_arg_kind": (c.c_int, [pointer, c.c_int]), "grd_op_result_count": (c.c_int, [pointer]), "grd_op_forms": (c.c_uint, [pointer]),
        "grd_call": (c.c_bool, [pointer, c.c_int, c.POINTER(Value), c.c_int, pointer, c.POINTER(Value)]),
        "grd_from_data": (pointer, [pointer, Dims, c.c_int]), "grd_to_memory": (None, [pointer, pointer, c.c_int]),
        "grd_sizes": (Dims, [pointer]), "grd_strides": (Dims, [pointer]), "grd_tensor_dtype": (c.c_int, [pointer]),
        "grd_offset": (c.c_int64, [pointer]), "grd_numel": (c.c_int64, [pointer]), "grd_set_requires_grad": (pointer, [pointer, c.c_bool]),
        "grd_requires_grad": (c.c_bool, [pointer]), "grd_grad": (c.c_bool, [Tensors, Tensors, c.POINTER(BackwardOptions), c.POINTER(pointer)]),
        "grd_manual_seed": (None, [c.c_uint64]), "grd_generator_new": (pointer, [c.c_uint64]), "grd_generator_drop": (None, [pointer]),
        "grd_generator_get_state": (None, [pointer, pointer]), "grd_generator_set_state": (None, [pointer, pointer, c.c_size_t]),
        "grd_set_num_threads": (None, [c.c_int]), "grd_to_string": (pointer, [pointer]), "grd_print": (None, [pointer]),
        "grd_promote": (c.c_int, [c.c_int, c.c_int]), "grd_isa": (text, []), "grd_blas": (text, []),
    }
    for name, (result, arguments) in prototypes.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


lib = load()


def check():
    if not lib.grd_ok():
        error = GradusError(lib.grd_error_class(lib.grd_error_get()).decode(), lib.grd_error_message().decode())
        lib.grd_error_clear()
        raise error


class scope:
    def __enter__(self):
        self.value = lib.grd_scope_open()

    def __exit__(self, *_):
        lib.grd_scope_close(self.value)


def dims(values):
    return Dims(len(values), (c.c_int64 * max(len(values), 1))(*values))


def tensors(pointers):
    return Tensors(len(pointers), (c.c_void_p * max(len(pointers), 1))(*pointers))


def from_bytes(data, sizes, dtype):
    """Returns a contiguous tensor of the given sizes and dtype with a copy of the raw bytes `data`."""
    result = lib.grd_from_data(data, dims(sizes), CODE[dtype])
    check()
    return result


def sizes(tensor):
    d = lib.grd_sizes(tensor)
    return tuple(d.data[i] for i in range(d.n))


def strides(tensor):
    d = lib.grd_strides(tensor)
    return tuple(d.data[i] for i in range(d.n))


def dtype(tensor):
    return DTYPES[lib.grd_tensor_dtype(tensor)]


def to_bytes(tensor, item_size):
    buffer = c.create_string_buffer(max(lib.grd_numel(tensor) * item_size, 1))
    lib.grd_to_memory(tensor, buffer, lib.grd_tensor_dtype(tensor))
    check()
    return buffer.raw[:lib.grd_numel(tensor) * item_size]


def numpy_of(tensor):
    """Returns the elements of a tensor as a NumPy array of float64, complex128, uint64 or int64."""
    name = dtype(tensor)
    wide = "complex128" if "complex" in name else "float64" if "float" in name else "uint64" if name == "uint64" else "int64"
    array = numpy.empty(sizes(tensor), dtype=wide)
    lib.grd_to_memory(tensor, array.ctypes.data_as(c.c_void_p), CODE[wide])
    check()
    return array


def scalar(value):
    result = Scalar()
    if isinstance(value, bool):
        result.kind, result.v.i = 1, value
    elif isinstance(value, int):
        result.kind, result.v.i = 2, value
    elif isinstance(value, float):
        result.kind, result.v.c = 3, ScalarComplex(value, 0)
    else:
        result.kind, result.v.c = 4, ScalarComplex(value.real, value.imag)
    return result


def value(kind, given):
    """Returns the generic value (grd_value) that holds `given` as an argument of the kind `kind`."""
    result = Value()
    if given is None:
        return result
    if isinstance(given, c.c_void_p) and kind != "Generator":
        result.kind, result.v.tensor = KINDS.index("Tensor"), given
        return result
    if isinstance(given, (bool, int, float, complex)) and kind != "int[]":
        result.kind, result.v.scalar = KINDS.index("Scalar"), scalar(given)
        return result
    result.kind = KINDS.index(kind)
    if kind == "Tensor[]":
        result.v.tensors = tensors(given)
    elif kind == "int[]":
        result.v.dims = dims(given if isinstance(given, (list, tuple)) else [given])
    elif kind == "dtype":
        result.v.dtype = CODE[given]
    elif kind == "device":
        result.v.device = Device({"cpu": 1, "meta": 2}[given], -1)
    elif kind == "str":
        result.v.string = given.encode()
    elif kind == "Generator":
        result.v.generator = given
    else:
        raise TypeError(f"no {kind} from {given!r}")
    return result


def call(name, arguments, form=FUNCTIONAL, out=None):
    """Calls the operator `name`. `arguments` maps argument names to values. Tensors are c_void_p. Returns the list of results (c_void_p)."""
    op = lib.grd_op_find(name.encode())
    if not op:
        raise KeyError(name)
    count = lib.grd_op_arg_count(op)
    names = [lib.grd_op_arg_name(op, i).decode() for i in range(count)]
    values = (Value * count)(*[value(KINDS[lib.grd_op_arg_kind(op, i)], arguments.get(n)) for i, n in enumerate(names)])
    results = (Value * 8)()
    lib.grd_call(op, form, values, count, out, results)
    check()
    if results[0].kind == KINDS.index("Tensor[]"):
        return [c.c_void_p(results[0].v.tensors.data[i]) for i in range(results[0].v.tensors.n)]
    return [c.c_void_p(results[i].v.tensor) for i in range(lib.grd_op_result_count(op))]
