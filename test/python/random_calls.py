"""Describes sequences of random calls as data, and runs them in PyTorch and in Gradus, for test/record_random.py and the tests.

A sequence is {"seed": 7, "calls": [[name, arguments], ...]}. The arguments are size, dtype and layout, which every call may have, and the operator's
own arguments. With "generator": 1 a call draws from a generator of its own, seeded with the sequence's seed + 1, instead of the default one. The
calls "save" and "restore" save and restore the state of the default generator. A run returns the bytes of each result, in row-major order, and the
final state of the default generator.
"""
import hashlib

import numpy

from oracle import torch

ITEM_SIZE = {"bool": 1, "uint8": 1, "int8": 1, "uint16": 2, "int16": 2, "uint32": 4, "int32": 4, "uint64": 8, "int64": 8, "float16": 2,
             "bfloat16": 2, "float32": 4, "float64": 8, "complex32": 4, "complex64": 8, "complex128": 16}
FILLS = {"uniform_", "normal_", "exponential_", "random_", "bernoulli_"}
FROM_VALUES = {"bernoulli", "dropout", "multinomial", "rand_like", "randn_like"}
STATE_SIZE = 5056


def digest(data):
    """Returns `data` in hexadecimal if it has at most 16 bytes. Otherwise returns "#" and the first 10 digits of its SHA-256."""
    return data.hex() if len(data) <= 16 else "#" + hashlib.sha256(data).hexdigest()[:10]


def state_digest(state):
    """Returns a digest of a generator's state, without the bytes that hold the second of a pair of normal numbers. The bits of that number depend on
    libm."""
    return digest(state[:5024] + state[5032:])


def rests_on_libm(name, dtype):
    """True if the last bits of the result depend on the C library's log, sin and cos."""
    return dtype in ("float64", "complex128") and name in ("normal_", "randn", "randn_like", "exponential_")


def ramp(size, dtype):
    """Returns the bytes of values in [0, 1] in row-major order: 7/16, 14/16, 4/16, ... Every floating dtype represents these values exactly."""
    values = (numpy.arange(numpy.prod(size, dtype=int)) * 7 + 7) % 17 / 16
    if dtype == "bfloat16":
        return (values.astype(numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes()
    if dtype == "complex32":  # NumPy has no complex32
        return numpy.stack([values, numpy.zeros_like(values)], -1).astype(numpy.float16).tobytes()
    return values.astype(dtype).tobytes()


def layout_of(size, layout):
    """Returns (sizes, permutation, slices). A contiguous tensor with these sizes, permuted and sliced, has the shape `size` and the memory layout
    `layout`. The permutation of the dimensions may be None. The slices are (start, step) of each dimension.

    Layout "strided" takes every second element of the last dimension. Layout "inner" leaves out the first row, column, etc. A layout of digits gives
    the order of the dimensions in memory, the outermost first: "10" is a transposed matrix.
    """
    whole = [(0, 1)] * len(size)
    if layout == "strided":
        return size[:-1] + [2 * size[-1]], None, whole[:-1] + [(0, 2)]
    if layout == "inner":
        return [n + 1 for n in size], None, [(1, 1)] * len(size)
    if layout == "contiguous":
        return size, None, whole
    memory = [int(digit) for digit in layout]
    return [size[d] for d in memory], [memory.index(d) for d in range(len(size))], whole


class Torch:
    def __init__(self, threads=None):
        self.torch, self.own = torch, None
        if threads:
            torch.set_num_threads(threads)

    def tensor(self, size, dtype, layout):
        memory, order, slices = layout_of(size, layout)
        t = self.torch.zeros(memory, dtype=getattr(self.torch, dtype))
        t = t.permute(order) if order else t
        return t[tuple(slice(start, None, step) for start, step in slices)]

    def values(self, size, dtype, layout):
        t = self.tensor(size, dtype, layout)
        if t.numel():
            t.copy_(self.torch.frombuffer(bytearray(ramp(size, dtype)), dtype=t.dtype).reshape(size))
        return t

    def bytes(self, t):
        t = t.clone(memory_format=self.torch.contiguous_format).reshape(-1)
        return t.view(self.torch.uint8).numpy().tobytes() if t.numel() else b""

    def state(self):
        return self.torch.get_rng_state().numpy().tobytes()

    def seed(self, seed):
        self.torch.manual_seed(seed)
        self.own = self.torch.Generator().manual_seed(seed + 1)

    def restore(self, state):
        self.torch.set_rng_state(self.torch.frombuffer(bytearray(state), dtype=self.torch.uint8))

    def call(self, name, arguments):
        torch, a = self.torch, dict(arguments)
        size, dtype, layout = a.pop("size", []), a.pop("dtype", None), a.pop("layout", "contiguous")
        if a.pop("generator", 0):
            a["generator"] = self.own
        if name in FILLS:
            if isinstance(a.get("p"), list):
                a["p"] = self.values(*a["p"])
            low, high = a.pop("from", None), a.pop("to", None)
            positional = [] if low is None and high is None else [low or 0, high] if name != "random_" else [low if low is not None else 0, high]
            return getattr(self.tensor(size, dtype, layout), name)(*positional, **a)
        if name == "dropout":
            return torch.nn.functional.dropout(self.values(size, dtype, layout), **a)
        if name in FROM_VALUES:
            return getattr(torch, name)(self.values(size, dtype, layout), **a)
        if name == "randperm":
            return torch.randperm(a.pop("n"), dtype=getattr(torch, dtype), **a)
        if name == "randint":
            return torch.randint(a.pop("low"), a.pop("high"), size, dtype=getattr(torch, dtype), **a)
        return getattr(torch, name)(size, dtype=getattr(torch, dtype), **a)


class Gradus:
    def __init__(self, threads=None):
        import binding
        self.g, self.own = binding, None
        if threads:
            binding.lib.grd_set_num_threads(threads)

    def tensor(self, size, dtype, layout):
        g = self.g
        memory, order, slices = layout_of(size, layout)
        t = g.call("zeros", {"size": memory, "dtype": dtype})[0]
        t = g.call("permute", {"self": t, "dims": order})[0] if order else t
        for dim, (start, step) in enumerate(slices):
            t = g.call("slice", {"self": t, "dim": dim, "start": start, "step": step})[0]
        return t

    def values(self, size, dtype, layout):
        source = self.g.c.c_void_p(self.g.from_bytes(ramp(size, dtype), size, dtype))
        return self.g.call("copy", {"self": self.tensor(size, dtype, layout), "src": source}, form=self.g.INPLACE)[0]

    def bytes(self, t):
        return self.g.to_bytes(t, ITEM_SIZE[self.g.dtype(t)])

    def state(self):
        buffer = self.g.c.create_string_buffer(STATE_SIZE)
        self.g.lib.grd_generator_get_state(None, buffer)
        return buffer.raw

    def seed(self, seed):
        self.g.lib.grd_manual_seed(seed % (1 << 64))
        if self.own:
            self.g.lib.grd_generator_drop(self.own)
        self.own = self.g.c.c_void_p(self.g.lib.grd_generator_new((seed + 1) % (1 << 64)))

    def restore(self, state):
        self.g.lib.grd_generator_set_state(None, state, len(state))
        self.g.check()

    def call(self, name, arguments):
        g, a = self.g, dict(arguments)
        size, dtype, layout = a.pop("size", []), a.pop("dtype", None), a.pop("layout", "contiguous")
        if a.pop("generator", 0):
            a["generator"] = self.own
        if name in FILLS:
            a["self"], op = self.tensor(size, dtype, layout), name[:-1]
            if isinstance(a.get("p"), list):
                a["p"], op = self.values(*a["p"]), "bernoulli_tensor"
            return g.call(op, a, form=g.INPLACE)[0]
        if name in FROM_VALUES:
            return g.call(name, {"input" if name == "dropout" else "self": self.values(size, dtype, layout), **a})[0]
        return g.call(name, {"dtype": dtype, **a} if name == "randperm" else {"size": size, "dtype": dtype, **a})[0]


def run(side, sequence):
    """Runs a sequence of calls in the library `side`. Returns ([bytes of each result], final state of the default generator)."""
    side.seed(sequence["seed"])
    results, saved = [], None
    for name, arguments in sequence["calls"]:
        if name == "save":
            saved = side.state()
        elif name == "restore":
            side.restore(saved)
        else:
            results.append(side.bytes(side.call(name, arguments)))
    return results, side.state()
