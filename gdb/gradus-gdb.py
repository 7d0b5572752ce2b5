"""Makes gdb print tensors, autograd nodes and the small types of Gradus. It only reads memory and calls no function of the program, so it also works on core files.

    (gdb) print weight
    $1 = (grd_tensor *) 0x5555555a2f40 tensor of float32, sizes [2, 3], strides [3, 1], requires_grad, ... = [0.5, -0.25, ...]

gdb loads this script by itself if the library is under /usr. For another PREFIX, add these lines to ~/.gdbinit:

    add-auto-load-scripts-directory PREFIX/share/gdb/auto-load
    add-auto-load-safe-path PREFIX

For a library in a build folder, add `add-auto-load-safe-path TREE/build`. In a running gdb, `source PREFIX/share/gradus/gradus-gdb.py` loads it.
"""
import struct

import gdb
import gdb.printing

SHOWN = 8  # elements that are printed
# The fields that grd_debug_layout describes, in the order of src/api/layout.c.
LAYOUT = ("object_type type_name keys itemsize dtype device device_index ndim storage data offset numel sizes strides base autograd storage_bytes "
          "storage_version meta_grad_fn node_name node_edges node_nedges edge_node edge_size autograd_key").split()
# Name and format (of Python's module struct) of each dtype, in the order of GRD_DTYPES in gradus/types.h.
DTYPES = [("none", ""), ("bool", "?"), ("uint8", "B"), ("int8", "b"), ("uint16", "H"), ("int16", "h"), ("uint32", "I"), ("int32", "i"), ("uint64", "Q"), ("int64", "q"),
          ("float16", "e"), ("bfloat16", "bfloat16"), ("float32", "f"), ("float64", "d"), ("complex32", "ee"), ("complex64", "ff"), ("complex128", "dd"), ("float8_e4m3fn", "B"),
          ("float8_e5m2", "B"), ("qint8", "b"), ("quint8", "B"), ("qint32", "i")]
DEVICES = ["none", "cpu", "meta"]


class Memory:
    """Reads the memory of the program."""

    def __init__(self):
        address = int(gdb.parse_and_eval("(unsigned long)&grd_debug_layout"))
        self.at = dict(zip(LAYOUT, self.numbers(address, "H", len(LAYOUT))))

    def bytes(self, address, size):
        return bytes(gdb.selected_inferior().read_memory(address, size))

    def numbers(self, address, code, n):
        return struct.unpack(f"={n}{code}", self.bytes(address, struct.calcsize(f"={n}{code}")))

    def number(self, address, field, code):
        return self.numbers(address + self.at[field], code, 1)[0]

    def text(self, address):
        text = b""
        while address and b"\0" not in text and len(text) < 256:
            text += self.bytes(address + len(text), 1)
        return text.split(b"\0")[0].decode(errors="replace")

    def kind(self, address):
        """Returns the type name of a reference-counted object: "tensor", "node", "meta", ..."""
        return self.text(self.number(self.number(address, "object_type", "Q"), "type_name", "Q"))


def element(raw, code):
    if code == "bfloat16":
        return struct.unpack("<f", b"\0\0" + raw)[0]
    values = struct.unpack("=" + code, raw)
    return complex(*values) if len(values) == 2 else values[0]


def readable(value):
    return f"{value:g}" if isinstance(value, (float, complex)) else str(value)


def elements(memory, tensor, sizes, strides, code):
    """Returns the texts of the first SHOWN elements in row-major order."""
    data, itemsize = memory.number(tensor, "data", "Q"), memory.number(tensor, "itemsize", "I")
    index, shown = [0] * len(sizes), []
    for _ in range(min(SHOWN, memory.number(tensor, "numel", "q"))):
        raw = memory.bytes(data + itemsize * sum(i * stride for i, stride in zip(index, strides)), itemsize)
        shown.append(readable(element(raw, code)))
        for dim in reversed(range(len(sizes))):
            index[dim] += 1
            if index[dim] < sizes[dim]:
                break
            index[dim] = 0
    return shown


def device_name(kind, index):
    name = DEVICES[kind] if kind < len(DEVICES) else f"plug-in {kind}"
    return name if index < 0 or kind == 0 else f"{name}:{index}"


def grad_fn_of(memory, tensor):
    """Returns the address of the node that computed the tensor, or 0."""
    node = memory.number(tensor, "autograd", "Q")
    return memory.number(node, "meta_grad_fn", "Q") if node and memory.kind(node) == "meta" else node


def describe_tensor(address):
    memory = Memory()
    kind = memory.kind(address)
    if kind not in ("tensor", "failed tensor", "dead tensor"):
        return "no tensor, or one whose memory is used by something else"
    if kind == "dead tensor":
        return "tensor that has been freed"
    ndim, dtype, device = (memory.number(address, field, code) for field, code in (("ndim", "H"), ("dtype", "B"), ("device", "B")))
    sizes, strides = ([*memory.numbers(memory.number(address, field, "Q"), "q", ndim)] for field in ("sizes", "strides"))
    name, code = DTYPES[dtype] if dtype < len(DTYPES) else (f"dtype {dtype}", "")
    parts = [f"{kind} of {name}", f"sizes {sizes}", f"strides {strides}"]
    if device != 1:
        parts.append(f"device {device_name(device, memory.number(address, 'device_index', 'b'))}")
    base, storage = memory.number(address, "base", "Q"), memory.number(address, "storage", "Q")
    keys = memory.number(address, "keys", "I") | (memory.number(base, "keys", "I") if base else 0)
    if keys >> memory.at["autograd_key"] & 1:
        parts.append("requires_grad")
    node = grad_fn_of(memory, address)
    if node:
        parts.append(f"grad_fn {memory.text(memory.number(node, 'node_name', 'Q'))}")
    if base:
        parts.append(f"view of {base:#x}")
    parts.append(f"offset {memory.number(address, 'offset', 'q')} in storage {storage:#x} ({memory.number(storage, 'storage_bytes', 'q')} bytes, "
                 f"version {memory.number(storage, 'storage_version', 'I')})")
    text = ", ".join(parts)
    if device != 1 or not code:
        return text
    shown = elements(memory, address, sizes, strides, code)
    more = ", ..." if memory.number(address, "numel", "q") > len(shown) else ""
    return f"{text} = [{', '.join(shown)}{more}]"


def describe_node(address):
    memory = Memory()
    names = []
    edges = memory.number(address, "node_edges", "Q")
    for i in range(memory.number(address, "node_nedges", "I")):
        node = memory.number(edges + i * memory.at["edge_size"], "edge_node", "Q")
        names.append(memory.text(memory.number(node, "node_name", "Q")) if node else "none")
    return f"{memory.text(memory.number(address, 'node_name', 'Q'))} to [{', '.join(names)}]"


class Pointer:
    """Prints a pointer whose type has no definition in the public headers."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        address = int(self.value)
        text = f"({self.name} *) {address:#x}"
        if address == 0:
            return text
        try:
            return f"{text} {self.describe(address)}"
        except gdb.MemoryError:
            return f"{text} memory that cannot be read"
        except gdb.error:
            return f"{text} (the library is not loaded)"


class Tensor(Pointer):
    name, describe = "grd_tensor", staticmethod(describe_tensor)


class Node(Pointer):
    name, describe = "grd_node", staticmethod(describe_node)


class Dims:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        data, n = self.value["data"], int(self.value["n"])
        return "absent" if int(data) == 0 else str([int(data[i]) for i in range(min(n, 64))])


class Tensors:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        return "absent" if int(self.value["data"]) == 0 else f"{int(self.value['n'])} tensors"

    def children(self):
        for i in range(min(int(self.value["n"]), 200) if int(self.value["data"]) else 0):
            yield f"[{i}]", self.value["data"][i]


class Device:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        return device_name(int(self.value["type"]), int(self.value["index"]))


class Scalar:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        kind, number = str(self.value["kind"]), self.value["v"]
        real, imaginary, integer = float(number["c"]["re"]), float(number["c"]["im"]), int(number["i"])
        texts = {"GRD_SCALAR_NONE": "absent", "GRD_SCALAR_BOOL": str(bool(integer)), "GRD_SCALAR_INT": str(integer), "GRD_SCALAR_FLOAT": readable(real),
                 "GRD_SCALAR_COMPLEX": readable(complex(real, imaginary)), "GRD_SCALAR_UINT": str(integer % 2**64)}
        return texts.get(kind, kind)


VALUES = {"grd_dims_view": Dims, "grd_tensors_view": Tensors, "grd_device": Device, "grd_scalar": Scalar}
POINTERS = {"grd_tensor": Tensor, "grd_node": Node}


def find_printer(value):
    kind = value.type.unqualified().strip_typedefs()
    printers = VALUES
    if kind.code == gdb.TYPE_CODE_PTR:
        kind, printers = kind.target().unqualified().strip_typedefs(), POINTERS
    printer = printers.get(kind.tag) if kind.code == gdb.TYPE_CODE_STRUCT else None
    return printer(value) if printer else None


find_printer.name, find_printer.enabled = "gradus", True
gdb.printing.register_pretty_printer(gdb.current_objfile(), find_printer, replace=True)
