"""Tests what a comparison of values with PyTorch does not show: identity, pickling, settings, data, classes, references, unusual
arguments."""
import copy
import gc
import inspect
import os
import pickle
import random
import subprocess
import sys
import tracemalloc
import weakref

import numpy
import pytest

import gradus as torch
from both import same
from conftest import BUILD, ROOT
from leaks import lost


@pytest.fixture
def settings():
    """Restores the default dtype and the print options after a test."""
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_printoptions(profile="default")


# ---- Value types ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", ["float32", "quint8", "bool", "strided", "channels_last", "preserve_format"])
def test_pickling_a_dtype_or_layout_returns_the_same_object(name, protocol):
    value = getattr(torch, name)
    assert pickle.loads(pickle.dumps(value, protocol)) is value
    assert copy.copy(value) is copy.deepcopy(value) is value


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("text", ["torch.device('cpu')", "torch.device('cuda:3')", "torch.Size([2, 3])", "torch.Size([])"])
def test_pickling_devices_and_sizes(text, protocol):
    value = eval(text)
    back = pickle.loads(pickle.dumps(value, protocol))
    assert (type(back), back, hash(back), repr(back)) == (type(value), value, hash(value), repr(value))


def test_absent_devices_can_be_named_but_not_used():
    device = torch.device("cuda" if torch.zeros(1).is_cuda else "cpu")
    assert device == torch.zeros(1).device != torch.device("cuda")
    for use in (lambda d: torch.zeros(1, device=d), lambda d: torch.zeros(1).to(d), lambda d: torch.zeros(1).new_zeros(1, device=d)):
        with pytest.raises(AssertionError, match="Gradus not compiled with CUDA enabled"):
            use(torch.device("cuda:1"))
        with pytest.raises(RuntimeError, match="Gradus has no device of type 'mps'"):
            use("mps")


def test_a_device_as_context_manager():
    with torch.device("cpu") as device:
        assert torch.zeros(1).device == device
    with torch.device("meta"):
        assert torch.zeros(1).is_meta
    assert not torch.zeros(1).is_meta


def test_device_indices_above_127_are_refused():
    assert torch.device("cpu:127").index == 127
    for make in (lambda: torch.device("cpu:128"), lambda: torch.device("cpu", 128), lambda: torch.device("cpu:" + 30 * "9")):
        with pytest.raises(RuntimeError, match="Device index must be at most 127"):
            make()


def test_value_types_cannot_be_subclassed():
    for type_ in (torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, torch.finfo, torch.Generator):
        with pytest.raises(TypeError):
            type("Derived", (type_,), {})
        with pytest.raises(TypeError):
            object.__new__(type_)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"])
def test_finfo_describes_the_elements(name):
    dtype, one = getattr(torch, name), torch.ones(1, dtype=torch.float64)
    info = torch.finfo(dtype)
    assert info.bits == 8 * dtype.itemsize
    for value in (info.max, info.min, info.tiny, 1 + info.eps):
        assert (one * value).to(dtype).double().item() == value
    assert (one + info.eps / 2).to(dtype).double().item() == 1


# ---- Generators ------------------------------------------------------------------------------------------------------------

def test_generator_states_are_saved_and_restored():
    generator = torch.Generator().manual_seed(7)
    torch.rand(3, generator=generator)
    state, clone = generator.get_state(), generator.clone_state()
    numbers = torch.rand(5, generator=generator).tolist()
    assert torch.rand(5, generator=clone).tolist() == numbers
    assert generator.set_state(state) is generator
    assert torch.rand(5, generator=generator).tolist() == numbers
    assert (clone.initial_seed(), clone.device) == (7, torch.device("cpu"))


def test_the_default_generator():
    assert torch.manual_seed(3) is torch.default_generator
    state = torch.get_rng_state()
    numbers = torch.rand(4).tolist()
    torch.set_rng_state(state)
    assert torch.rand(4, generator=torch.default_generator).tolist() == numbers
    assert torch.seed() == torch.initial_seed() == torch.default_generator.initial_seed() != 3


def test_generators_are_freed():
    generator = torch.Generator()
    ref = weakref.ref(generator)
    del generator
    assert ref() is None


# ---- Settings ----------------------------------------------------------------------------------------------------------------

def test_default_dtype(settings):
    for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.float32):
        torch.set_default_dtype(dtype)
        assert torch.get_default_dtype() is torch.zeros(1).dtype is dtype
        assert torch.finfo().dtype == str(dtype)[6:]


def test_print_options(settings):
    x = torch.arange(2000) / 7
    torch.set_printoptions(precision=1, edgeitems=2, linewidth=60)
    assert repr(x) == "tensor([0.0e+00, 1.4e-01,  ..., 2.9e+02, 2.9e+02])"
    assert torch.get_printoptions() == {"precision": 1, "threshold": 1000, "edgeitems": 2, "linewidth": 60, "sci_mode": None}
    torch.set_printoptions(profile="full", sci_mode=True)
    assert torch.get_printoptions() == {"precision": 4, "threshold": float("inf"), "edgeitems": 3, "linewidth": 80, "sci_mode": True}
    assert repr(x).count(",") == 1999
    for wrong, error in ((dict(precision=-1), ValueError), (dict(linewidth=0), ValueError), (dict(edgeitems="a"), TypeError),
                         (dict(profile="wide"), ValueError), (dict(threshold=2**70), ValueError), (dict(foo=1), TypeError)):
        with pytest.raises(error):
            torch.set_printoptions(**wrong)
    assert torch.get_printoptions()["precision"] == 4


def test_thread_count_settings():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    assert torch.get_num_threads() == 1
    torch.set_num_threads(before)
    torch.set_num_interop_threads(3)
    assert torch.get_num_interop_threads() == 1


def test_config_show():
    assert torch.__config__.show().startswith(f"Gradus {torch.version.gradus} built with:")
    assert "BLAS" in torch.__config__.show() and "get_num_threads" in torch.__config__.parallel_info()


# ---- Numbers -------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int64", "float16", "float32", "float64", "complex64", "complex128"])
def test_numpy_scalars_are_numbers(dtype):
    number = numpy.dtype(dtype).type(3)
    full = torch.full((1,), number)
    assert full.item() == number
    kinds = {"b": torch.bool, "i": torch.int64, "u": torch.int64, "f": torch.float32, "c": torch.complex64}
    assert full.dtype is kinds[numpy.dtype(dtype).kind]


def test_integers_out_of_range_are_refused():
    for value, message in ((2**64, "int too big to convert"), (-2**63 - 1, "can't convert negative int to unsigned"), (2**200, "int too big to convert")):
        with pytest.raises(OverflowError, match=message):
            torch.zeros(1) + value
    for value in (2**63, -2**63 - 1, 2**200, numpy.uint64(2**63)):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            torch.zeros(1).size(value)


def test_large_unsigned_elements():
    x = torch.tensor([2**64 - 1, 1], dtype=torch.uint64)
    assert x.tolist() == [2**64 - 1, 1] and x[0].item() == int(x[0]) == 2**64 - 1 and float(x[0]) == 2.0**64
    with pytest.raises(RuntimeError, match="^value cannot be converted to type int64_t without overflow"):
        torch.full((1,), x[0])


def test_tolist_of_strided_and_huge_tensors():
    x = torch.arange(24).view(2, 3, 4)
    assert x.permute(2, 0, 1).tolist() == numpy.arange(24).reshape(2, 3, 4).transpose(2, 0, 1).tolist()
    assert x[:, ::2, 1].tolist() == [[1, 9], [13, 21]]
    with pytest.raises((MemoryError, RuntimeError)):
        torch.zeros(1).expand(2**61).tolist()


def test_exceptions_in_functions_given_to_apply_are_propagated():
    x = torch.tensor([1.0, 2.0, 3.0])

    def fail(value):
        if value == 3:
            raise KeyError("three")
        return 0

    with pytest.raises(KeyError, match="three"):
        x.apply_(fail)
    assert x.tolist() == [1, 2, 3]  # the failed call has written no element
    assert x.t().apply_(lambda value: value * 2) is not None and x.tolist() == [2, 4, 6]
    assert torch.zeros(2, 2).t().map_(torch.arange(2.0), lambda a, b: b).tolist() == [[0, 1], [0, 1]]
    with pytest.raises(RuntimeError, match="value cannot be converted to type int8_t without overflow"):
        torch.zeros(1, dtype=torch.int8).apply_(lambda value: 200)


def test_type_takes_names_of_tensor_types():
    x = torch.zeros(1)
    for given in ("torch.DoubleTensor", torch.DoubleTensor, torch.float64):
        assert x.type(given).dtype is torch.float64
    assert x.type(torch.FloatTensor) is x and x.type(torch.Tensor) is x
    for given in (float, object, "torch.Double", "DoubleTensor", "torch.cuda.FloatTensor"):
        with pytest.raises(ValueError, match="invalid type"):
            x.type(given)


# ---- Data -----------------------------------------------------------------------------------------------------------------------

def test_changes_of_data_are_not_recorded():
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    x.data.mul_(3)
    assert x._version == 0 and x.data._version == 0 and x.tolist() == [3, 3, 3]
    y.backward()
    assert x.grad.tolist() == [6, 6, 6]


def test_data_outlives_its_tensor():
    data = torch.arange(5000.0)[1:].data
    gc.collect()
    assert data[0] == 1 and data[-1] == 4999 and data._base is None


def test_replacing_data_in_a_training_loop():
    w = torch.ones(3, requires_grad=True)
    for _ in range(100):
        (w * w).sum().backward()
        w.data = w.data - 0.1 * w.grad.data
        w.grad = None
    assert w.is_leaf and w.requires_grad and torch.allclose(w.data, torch.full((3,), 0.8**100))


def test_replacing_data_leaks_no_memory():
    w = torch.zeros(100_000, requires_grad=True)
    for _ in range(3):
        w.data = w.data.view(-1)
        w.data = torch.ones(1)
        w.data = torch.zeros(100_000)
    view = w.detach()[1:]
    w.data = torch.ones(2)
    assert view.sum() == 0 and view.numel() == 99_999


# ---- Classes with a __torch_function__ ---------------------------------------------------------------------------------------------

class Logged(torch.Tensor):
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func.__name__ if func.__name__ != "__get__" else f"{func.__self__.__name__}.__get__")
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.mark.parametrize("use, name", [
    (lambda x: x.size(), None), (lambda x: x.to(torch.float64), "to"), (lambda x: x.float(memory_format=None), "float"),
    (lambda x: x.shape, "shape.__get__"), (lambda x: x.T, "T.__get__"), (lambda x: torch.equal(x, x), "equal"),
    (lambda x: x.new_zeros(2), "new_zeros"), (lambda x: x.requires_grad_(), "requires_grad_"), (lambda x: torch.numel(x), "numel"),
])
def test_torch_function_receives_the_name_of_the_call(use, name):
    x = torch.zeros(2, 3).as_subclass(Logged)
    Logged.calls.clear()
    use(x)
    assert Logged.calls == [name or "size"]


@pytest.mark.parametrize("width", range(20, 75))
def test_suffixes_of_printed_tensors_wrap_as_in_pytorch(settings, width):
    """dtype=, size= and other suffixes move to the next line at the same line widths as in PyTorch."""
    def program(module):
        module.set_printoptions(linewidth=width)
        try:
            return [repr(x) for x in (module.arange(3, dtype=module.int32), module.ones(2, 2, dtype=module.float64, requires_grad=True), module.zeros(0, 3),
                                      module.zeros(7, dtype=module.float16), module.ones(2, 3, device="meta", dtype=module.int8))]
        finally:
            module.set_printoptions(profile="default")

    same(program)


@pytest.mark.parametrize("least", [1.0, 1.5, 1e-4, 0.99e-4, 1e5, 1e8, 1.1e8])
@pytest.mark.parametrize("ratio", [1.0, 999.0, 1000.0, 1001.0, 1e8])
def test_scientific_notation_is_printed_as_in_pytorch(least, ratio):
    same(lambda module: [repr(module.tensor([least, least * ratio], dtype=module.float64)), repr(module.tensor([0.0, least, float("inf"), -least * ratio]))])


def test_argument_names_of_numpy():
    x, y = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 5.0]])
    assert torch.sub(x1=x, x2=y).tolist() == torch.sub(x, x2=y).tolist() == torch.sub(input=x, x2=y).tolist() == [[-2.0, -3.0]]
    assert torch.sum(a=x, axis=1, keepdims=True).tolist() == torch.sum(x=x, axis=-1, keepdims=True).tolist() == x.sum(axis=1, keepdims=True).tolist() == [[3.0]]
    for wrong in (lambda: torch.sub(x, x1=y), lambda: torch.sub(x, y, x2=y), lambda: torch.sum(x, dim=0, axis=0), lambda: x.sub(x1=y)):
        with pytest.raises(TypeError):
            wrong()


def test_results_of_torch_function_are_not_leaked():
    """__torch_function__ may return any object for x[i] and x[i] = y, or raise an exception. None of these objects is leaked."""
    answer = object()

    class Answering(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if args[1] is None:
                raise ValueError
            return answer

    x, plain, i = torch.zeros(3).as_subclass(Answering), torch.zeros(3), torch.tensor([0]).as_subclass(Answering)

    def raising():
        with pytest.raises(ValueError):
            x[None] = 1

    for call in (lambda: x[0], lambda: x.__setitem__(0, 1), lambda: plain.__setitem__(i, 1), lambda: plain[i], lambda: torch.add(x, 1), raising):
        assert lost(call, answer, Answering, x, plain, i) == 0
    assert plain.tolist() == [0.0] * 3


@pytest.mark.parametrize("base", [True, False])
def test_class_and_attributes_of_a_tensor_outlive_its_python_object(base):
    """A tensor may outlive its Python object, e.g. in the autograd graph. The tensor keeps the class and the attributes for
    its next Python object, and releases them when it is freed."""
    class Labelled(torch.Tensor):
        pass

    kind = torch.Tensor if base else Labelled

    def leaf():
        x = torch.ones(2).as_subclass(kind).requires_grad_()
        x.label = [len("abc")]
        return x

    graph = leaf().sum()
    leaf_of = graph.grad_fn.next_functions[0][0]
    for _ in range(3):
        gc.collect()
        assert type(leaf_of.variable) is kind and leaf_of.variable.label == [3]
    assert lost(lambda: leaf_of.variable, kind) == 0
    assert lost(lambda: leaf().sum(), kind) == 0


def test_repr_of_subclasses_has_their_name():
    class Weights(torch.Tensor):
        pass

    class Parameter(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    assert repr(torch.arange(3).as_subclass(Weights)) == "Weights([0, 1, 2])"
    assert repr(torch.zeros(1).as_subclass(Parameter)) == "tensor([0.])"
    assert isinstance(torch.zeros(2).as_subclass(Weights).T, Weights)


# ---- Plug-ins ------------------------------------------------------------------------------------------------------------------------

USE = """
import sys, gradus as torch
torch.ops.load_library(sys.argv[1]), torch.ops.load_library(sys.argv[2])
x = torch.ones(2, requires_grad=True)
y = torch.ops.extra.cube(x, scale=2)
y.sum().backward()
print(y.tolist(), x.grad.tolist(), torch.ops.extra.cube)
for wrong in (lambda: torch.ops.extra.nothing, lambda: torch.ops.extra.cube(x, 2), lambda: torch.ops.extra.cube("a")):
    try:
        wrong()
    except Exception as error:
        print(type(error).__name__, error)
device = torch.device("vault:0")
there = torch.zeros(2).to(device)
print(there.device == device, there.is_cpu, there.type(), there.get_device(), (there + 1).cpu().tolist(), torch.device("vault"))
"""

USED = """\
[2.0, 2.0] [6.0, 6.0] <operator extra::cube(Tensor self, *, Scalar scale=1) -> Tensor>
AttributeError '_OpNamespace' 'extra' object has no attribute 'nothing'
TypeError extra::cube() takes 1 positional argument but 2 were given
TypeError extra::cube(): argument 'self' (position 1) must be Tensor, not str
True False torch.vault.FloatTensor 0 [1.0, 1.0] vault
"""


def test_plugin_operators_and_devices_in_python(tmp_path):
    for folder, name in (("operator", "extra"), ("device", "vault")):
        command = f"cc -std=gnu11 -shared -fPIC -I{ROOT}/include -I{BUILD}/include {name}.c -o {tmp_path}/{name}.so -L{BUILD} -lgradus"
        subprocess.run(command, shell=True, check=True, cwd=ROOT / "examples/plugins" / folder)
    result = subprocess.run([sys.executable, "-c", USE, tmp_path / "extra.so", os.fsencode(tmp_path / "vault.so")], capture_output=True,
                            text=True, env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
    assert (result.returncode, result.stdout) == (0, USED), result.stderr
    with pytest.raises(OSError, match="cannot load plug-in"):
        torch.load_library(tmp_path / "missing.so")


# ---- Documentation -------------------------------------------------------------------------------------------------------------------

METHODS = [name for name, value in vars(torch.Tensor).items() if type(value).__name__ == "method_descriptor" and not name.startswith("_")]


@pytest.mark.parametrize("name", ["size", "to", "new_zeros", "allclose", "requires_grad_", "item", "is_contiguous"])
def test_methods_have_docstrings_and_signatures(name):
    method = getattr(torch.Tensor, name)
    assert method.__doc__
    if name != "to":  # `to` has three signatures, which inspect cannot read
        assert next(iter(inspect.signature(method).parameters)) == "self"


# ---- References ----------------------------------------------------------------------------------------------------------------------

CALLS = """
x.size()|x.size(1)|x.size("a")|x.stride()|x.shape|x.dtype|x.device|x.layout|x.T|x.mT|x.H|x.data|x.real|x.grad|x.grad_fn|g.grad|g.is_leaf|y.grad_fn
x.item()|s.item()|float(s)|int(s)|bool(s)|complex(s)|range(9)[i]|x.tolist()|len(x)|list(x)|1 in x|"a" in x|format(s, ".2f")|repr(x)|format(x, "d")
x.to(torch.float64)|x.to("cpu", torch.int8, copy=True)|x.to(x)|x.to(3.5)|x.to("nowhere")|x.type()|x.type("torch.IntTensor")|x.type_as(i)|x.cuda()
x.float()|x.double()|x.float(3)|x.new_zeros(2, 3)|x.new_full((2,), 1)|x.new_tensor([1, 2])|x.new_ones("a")|x.view(torch.int32)|s.view(torch.int8)
x.equal(x)|x.allclose(x)|torch.equal(x, 3)|torch.result_type(x, 1)|torch.promote_types(torch.int8, torch.float16)|torch.can_cast(torch.int8, 3)
x.requires_grad_(False)|x.detach_()|x.apply_(lambda v: v)|x.map_(x, lambda a, b: a)|x.apply_(lambda v: "a")|x.is_contiguous(memory_format=torch.channels_last)
torch.device("cpu", 1)|torch.device("cuda")|torch.device("nowhere")|torch.device(0)|torch.device(x=1)|hash(torch.device("cpu:1"))|torch.device("cpu") == 3
torch.Size([2, 3])|torch.Size([2, 3])[1:]|torch.Size([2]) + (3,)|torch.Size([2]) * 2|torch.Size([1.5])|torch.Size([2, 3]).numel()|pickle.dumps(torch.Size([2]))
torch.finfo(torch.float16)|repr(torch.finfo())|torch.iinfo(torch.int8).max|torch.finfo(3)|torch.finfo() == torch.finfo()|torch.float32.to_complex()
torch.Generator()|n.manual_seed(3)|n.manual_seed("a")|n.get_state()|n.set_state(x)|n.clone_state()|torch.get_rng_state()|n.initial_seed()
torch.broadcast_shapes((2, 1), 3)|torch.broadcast_shapes((2,), (3,))|torch.broadcast_tensors(x, s)|torch.meshgrid(i, i)|torch.meshgrid(i, i, indexing="xy")
torch.get_printoptions()|torch.set_printoptions(precision=4)|torch.get_default_dtype()|torch.__config__.show()|torch.ops.nothing|torch._C._find_op("add")
""".replace("\n", "|").strip("|").split("|")


@pytest.mark.parametrize("call", CALLS)
def test_calls_leak_no_references(call):
    names = {"torch": torch, "pickle": pickle, "x": torch.ones(2, 3), "s": torch.tensor(2.5), "i": torch.tensor(2), "g": torch.ones(2, requires_grad=True),
             "n": torch.Generator()}
    names["y"] = names["g"] * 2
    code = compile(call, call, "eval")

    def run(times):
        for _ in range(times):
            try:
                eval(code, names)
            except (TypeError, ValueError, RuntimeError, AssertionError):
                pass
        gc.collect()

    def growth():
        before = tracemalloc.get_traced_memory()[0]
        run(300)
        return tracemalloc.get_traced_memory()[0] - before

    gc.freeze()  # From here on, garbage collections skip all existing objects, so they are fast.
    watched = [value for key, value in names.items() if key not in ("torch", "__builtins__")]
    watched += [torch.float32, torch.int8, torch.device("cpu"), torch.strided, torch.Tensor, torch.Size, torch.device, torch.finfo, torch.Generator, None]
    run(20)
    counts = [sys.getrefcount(value) for value in watched]
    tracemalloc.start()
    run(20)
    grown = growth()
    if grown >= 2000:  # a thread of the test runner may have allocated memory in the meantime, but a leak grows again
        grown = growth()
    tracemalloc.stop()
    gc.unfreeze()
    assert grown < 2000, "memory"
    assert all(abs(sys.getrefcount(value) - count) < 100 for value, count in zip(watched, counts)), "references"


# ---- Unusual arguments -----------------------------------------------------------------------------------------------------------------

class Refusing:
    def __index__(self):
        raise KeyError("index")

    __float__ = __bool__ = __len__ = __iter__ = __index__


VALUES = [lambda: None, lambda: -1, lambda: 2**70, lambda: 1.5, lambda: float("nan"), lambda: "", lambda: "cuda:0", lambda: "\ud800", lambda: b"a", lambda: True,
          lambda: torch.int8, lambda: torch.quint8, lambda: torch.complex128, lambda: torch.strided, lambda: torch.channels_last, lambda: torch.device("meta"),
          lambda: (2, 3), lambda: [2, -1], lambda: (1.5,), lambda: [2**40, 2**40], lambda: [1] * 100, Refusing, lambda: numpy.float32(2), lambda: numpy.zeros(2),
          lambda: numpy.datetime64("2020"), lambda: len, lambda: float, torch.Generator, object, dict, lambda: torch.zeros(2, 3), lambda: torch.zeros(()),
          lambda: torch.ones(3, requires_grad=True), lambda: torch.zeros(2, device="meta"), lambda: torch.zeros([1] * 64), lambda: torch.tensor([1 + 2j])]
NAMES = ["dtype", "device", "memory_format", "copy", "dim", "size", "other", "requires_grad", "indexing", "precision", "type", "index", "foo"]
FUNCTIONS = """is_tensor is_floating_point is_nonzero numel equal allclose promote_types can_cast result_type broadcast_shapes broadcast_tensors meshgrid
set_rng_state manual_seed device Size finfo iinfo Generator load_library""".split()


@pytest.mark.parametrize("seed", range(4))
def test_random_arguments_only_raise_exceptions(seed):
    rng = random.Random(seed)
    properties = [name for name, value in vars(torch.Tensor).items() if type(value).__name__ == "getset_descriptor"]
    for _ in range(1500):
        args = [rng.choice(VALUES)() for _ in range(rng.randrange(4))]
        named = {rng.choice(NAMES): rng.choice(VALUES)() for _ in range(rng.randrange(2))}
        x = rng.choice(VALUES[-6:])()
        kind = rng.randrange(4)
        try:
            if kind == 0:
                getattr(torch, rng.choice(FUNCTIONS))(*args, **named)
            elif kind == 1:
                setattr(x, rng.choice(properties), rng.choice(VALUES)())
                repr(x)
            else:
                repr(getattr(x, rng.choice(METHODS))(*args, **named))
        except Exception as error:
            str(error)
