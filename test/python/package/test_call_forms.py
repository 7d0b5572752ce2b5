"""Checks that Gradus's functions and methods can be called in every way in which PyTorch's can: with positional and keyword arguments, numbers and
None."""
import re
import threading
import warnings

import numpy
import pytest

import gradus
from oracle import torch

# Matches error texts about the form of a call, i.e. about the number, names and types of its arguments.
REFUSAL = re.compile(r"must be |positional argument|unexpected keyword|invalid combination|missing|multiple values|takes one of")
# Operator -> reason why Gradus does not accept a form of call that PyTorch's schema allows.
LEFT_OUT = {
    "cdist": "the C++ function takes compute_mode as a number, Python's as a word",
    "einsum": "the schema is that of the C++ function; Python's takes operands after the equation", "tensordot": "as einsum",
    "fill": "a 0-d tensor is a number, tensors of other shapes are refused", "fill_": "as fill", "linspace": "as fill", "logspace": "as fill",
    "narrow": "as fill", "norm": "torch.norm of a number is an accident of a Python function", "split": "as norm",
    "randint_like": "as fill", "result_type": "the names of the schema's overloads, which nobody writes", "copy_": "as result_type",
    "expand": "implicit belongs to the tracer", "expand_copy": "as expand", "stft": "the schema is that of the C++ function; Python's takes center and pad_mode after the window", "to": "overloads of TorchScript", "unflatten": "sizes=None means names, which tensors have not",
    "set_default_device": "changes the process", "from_file": "reads a file", "histogramdd": "what PyTorch says there is about a list of tensors, whatever is wrong",
}
PLAIN = {"int": [lambda t: 1, lambda t: numpy.int64(1), lambda t: numpy.array(1), lambda t: t.tensor(1)],
         "int[]": [lambda t: [1], lambda t: (1,), lambda t: 1, lambda t: numpy.int64(1), lambda t: numpy.array(1), lambda t: [numpy.array(1)],
                   lambda t: [t.tensor(1)], lambda t: t.Size([1]), lambda t: None],
         "number": [lambda t: 1, lambda t: numpy.float32(1), lambda t: numpy.array(1.0), lambda t: t.tensor(1.0), lambda t: True],
         "float": [lambda t: 0.5, lambda t: 1, lambda t: numpy.float64(1), lambda t: numpy.array(1.0)],
         "bool": [lambda t: False, lambda t: None], "Tensor": [lambda t: t.ones(2, 2), lambda t: 1.5], "Tensor[]": [lambda t: [t.ones(2, 2), t.ones(2, 2)]],
         "str": [lambda t: "linear"], "float[]": [lambda t: [0.5]]}
NAMED = {"dtype": lambda t: t.float32, "device": lambda t: "cpu", "layout": lambda t: t.strided, "pin_memory": lambda t: False,
         "memory_format": lambda t: t.contiguous_format, "generator": lambda t: t.Generator(), "requires_grad": lambda t: False}


def kind_of(argument):
    """Returns (kind, optional). `kind` names the type of the argument as a key of PLAIN, e.g. "int[]". `optional` is True if the argument may be
    None."""
    text = str(argument.type)
    optional = text.startswith("Optional[")
    text = text[len("Optional["):-1] if optional else text
    return (text[len("List["):-1] + "[]" if text.startswith("List[") else text), optional


def values_of(argument):
    """Returns a list of functions that each make a value for `argument`, the usual value first. The list is empty for a type without test values."""
    kind, optional = kind_of(argument)
    found = [NAMED[argument.name]] if argument.name in NAMED else PLAIN.get(kind, [])
    return [*found, *([lambda t: None] if optional and found else [])]


def forms(schema, is_method):
    """Yields (positional arguments, keyword arguments) for the forms in which `schema` allows a call: with and without optional arguments, by
    position and by keyword, and with each type of value that an argument may have. Each argument is a function that takes the library and returns the
    value."""
    arguments = [argument for argument in schema.arguments if argument.name != "out" and values_of(argument)]
    by_position = [argument for argument in arguments if not argument.kwarg_only]
    required = [argument for argument in by_position if not argument.has_default_value()]
    first = by_position[:1] if is_method else []

    def ordinary(chosen):
        return [values_of(argument)[0] for argument in chosen]

    def shown(argument):
        return "input" if argument.name == "self" and not is_method else argument.name

    yield ordinary(required), {}
    yield ordinary(by_position), {}
    yield ordinary(first), {shown(argument): values_of(argument)[0] for argument in by_position[len(first):]}
    for place, argument in enumerate(required[len(first):], len(first)):
        for value in values_of(argument)[1:]:
            yield [*ordinary(required[:place]), value, *ordinary(required[place + 1:])], {}
    for argument in arguments:
        if argument.has_default_value():
            for value in values_of(argument):
                yield ordinary(required), {shown(argument): value}


def accepted(module, name, is_method, form):
    """Returns None if the library `module` accepts the form of a call (number, names and types of the arguments), otherwise the text of the
    TypeError. If the call fails for another reason, e.g. because of the shapes, the form counts as accepted."""
    positional, keywords = [value(module) for value in form[0]], {word: value(module) for word, value in form[1].items()}
    try:
        if is_method:
            getattr(positional[0], name)(*positional[1:], **keywords)
        else:
            getattr(module, name)(*positional, **keywords)
    except TypeError as error:
        return str(error).split("\n")[0] if REFUSAL.search(str(error)) else None
    except Exception:
        return None
    return None


def refused(torch, name, is_method):
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        if "Dimname" in str(schema) or schema.overload_name.endswith("out") or schema.overload_name in ("int", "str", "float", "complex", "t", "Scalar_mode"):
            continue
        if is_method and (not schema.arguments or kind_of(schema.arguments[0])[0] != "Tensor"):
            continue
        for form in forms(schema, is_method):
            if accepted(torch, name, is_method, form) is None:
                text = accepted(gradus, name, is_method, form)
                if text is not None:
                    yield f"{name}.{schema.overload_name}({len(form[0])} positional, {', '.join(form[1])}): {text}"


@pytest.mark.parametrize("is_method", [False, True], ids=["functions", "methods"])
def test_every_call_form_of_pytorch_is_accepted(is_method):
    home, ours = (torch.Tensor, gradus.Tensor) if is_method else (torch._C._VariableFunctions, gradus)
    names = [name for name in dir(home) if not name.startswith("_") and hasattr(ours, name) and callable(getattr(home, name)) and name not in LEFT_OUT]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [line for name in names for line in refused(torch, name, is_method)]
    assert len(names) > 200 and not found, "\n".join(found)


X, M = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
CALLS = {
    "x.split(split_size=[2, 4])": [[0, 1], [2, 3, 4, 5]], "t.split(x, split_size_or_sections=[2, 4])": [[0, 1], [2, 3, 4, 5]],
    "t.split(tensor=x, split_size_or_sections=3, dim=0)": [[0, 1, 2], [3, 4, 5]], "t.hsplit(x, sections=2)": [[0, 1, 2], [3, 4, 5]],
    "t.add(1.5, x[:2])": [1.5, 2.5], "t.true_divide(1, x[1:3])": [1, 0.5], "t.sub(2, x[:2])": [2, 1], "t.mul(2, x[:2])": [0, 2],
    "t.floor_divide(7, x[1:3])": [7, 3], "t.roll(x[:3], 1, None)": [2, 0, 1], "t.ones((np.array(2), 1))": [[1], [1]], "t.zeros(np.array(2))": [0, 0],
    "t.gather(m, 1, t.tensor([[0], [1]]), sparse_grad=False)": [[0], [4]], "t.asarray(x[:2].__dlpack__())": [0, 1],
    "t.softmax(t.zeros(2), 0, t.float32)": [0.5, 0.5], "t.sort(x[:2], stable=None).values": [0, 1], "t.rsub(x[:2], 1, 2)": [1, -1],
    "t.isin(element=1, test_elements=x)": True, "x[:2].clone(memory_format=None)": [0, 1], "x[:2].resize_(1, memory_format=None)": [0],
}
DEPRECATED = {
    "t.addcmul(x[:2], 2, x[:2], x[:2])": [0, 3], "x[:2].addcdiv(2, x[:2], x[1:3])": [0, 2], "x[:2].add_(2, x[:2])": [0, 3], "t.sub(x[:2], 2, x[:2])": [0, -1],
    "t.addmm(2, t.ones(2, 2), 3, m, m.t())": [[17, 44], [44, 152]], "t.addmm(2, t.ones(2, 2), m, m.t())": [[7, 16], [16, 52]],
    "t.addmv(2, t.ones(2), m, t.ones(3))": [5, 14],
}


def run(call):
    value = eval(call, {"t": gradus, "np": numpy, "x": gradus.tensor(X), "m": gradus.tensor(M)})
    return [part.tolist() for part in value] if isinstance(value, tuple) else value.tolist()


@pytest.mark.parametrize("call", CALLS)
def test_selected_call_forms(call):
    assert run(call) == CALLS[call]


@pytest.mark.parametrize("call", DEPRECATED)
def test_deprecated_argument_orders_warn(call):
    with pytest.warns(UserWarning, match="This overload of [a-z_]+ is deprecated"):
        assert run(call) == DEPRECATED[call]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            run(call)


@pytest.mark.parametrize(("call", "text"), [
    ("t.ones(('a', 2))", "ones(): argument 'size' (position 1) must be tuple of ints, but found element of type str at pos 0"),
    ("t.cat([x, 3])", "expected Tensor as element 1 in argument 0, but got int"),
    ("t.nn.Linear('a', 2)", "empty(): argument 'size' failed to unpack the object at pos 2 with error \"type must be tuple of ints,but got str\""),
    ("t.zeros(np.array([3]))", "zeros(): argument 'size' (position 1) must be tuple of ints, not numpy.ndarray"),
    ("t.eq(1, x)", "eq(): argument 'input' (position 1) must be Tensor, not int"),
])
def test_type_errors_name_the_wrong_argument(call, text):
    with pytest.raises(TypeError) as caught:
        run(call)
    assert str(caught.value) == text


def test_sparse_gradients_are_refused():
    with pytest.raises(NotImplementedError, match="sparse gradients"):
        gradus.gather(gradus.ones(2), 0, gradus.tensor([0]), sparse_grad=True)
    with pytest.raises(NotImplementedError, match="sparse gradients"):
        gradus.nn.functional.embedding(gradus.tensor([0]), gradus.ones(1, 2, requires_grad=True), sparse=True)


def test_numpy_of_a_tensor_that_requires_grad_needs_no_grad():
    w = gradus.ones(2, requires_grad=True)
    with gradus.no_grad():
        array = w.numpy()
        array[0] = 5
    assert w.tolist() == [5, 1]
    with pytest.raises(RuntimeError, match="^Can't call numpy"):
        w.numpy()


FACTORIES = ["ones(2)", "zeros(2)", "empty(2)", "full((2,), 1.0)", "eye(2)", "arange(3)", "linspace(0, 1, 3)", "logspace(0, 1, 3)", "rand(2)", "randn(2)",
             "randint(3, (2,))", "randperm(3)", "tensor(1)", "as_tensor([1])", "as_tensor(c)", "asarray([1])", "empty_strided((2,), (1,))",
             "tril_indices(2, 2)", "triu_indices(2, 2)", "scalar_tensor(1)", "Tensor(2)", "FloatTensor(2)", "ones_like(c)", "zeros(2, device='cpu')",
             "nn.Linear(2, 2).weight", "get_default_device()"]


@pytest.mark.parametrize("factory", FACTORIES)
def test_factories_within_a_device_block(factory):

    def device(t):
        c = t.ones(2)
        with t.device("meta"):
            made = eval(f"t.{factory}", {"t": t, "c": c})
        return str(getattr(made, "device", made)), str(t.get_default_device()), str(t.ones(1).device)

    assert device(gradus) == device(torch)


def test_the_default_device_is_thread_local():
    devices = []
    gradus.set_default_device("meta")
    try:
        thread = threading.Thread(target=lambda: devices.append(str(gradus.ones(1).device)))
        thread.start()
        thread.join()
        with gradus.device("cpu"):
            devices.append(str(gradus.ones(1).device))
        devices.append(str(gradus.ones(1).device))
        assert gradus.ones(1).new_zeros(1).device.type == "meta" and gradus.ones(2, out=gradus.empty(0, device="cpu")).device.type == "cpu"
    finally:
        gradus.set_default_device(None)
    assert devices == ["cpu", "cpu", "meta"] and gradus.ones(1).device.type == "cpu"
    with pytest.raises(RuntimeError, match="no block"):
        gradus.device("cpu").__exit__(None, None, None)
    with pytest.raises(TypeError):
        gradus.set_default_device([])


def test_set_default_tensor_type():
    try:
        gradus.set_default_tensor_type(gradus.DoubleTensor)
        assert gradus.ones(1).dtype is gradus.float64
        gradus.set_default_tensor_type("torch.HalfTensor")
        assert gradus.ones(1).dtype is gradus.float16
    finally:
        gradus.set_default_tensor_type("torch.FloatTensor")
    for wrong in (gradus.LongTensor, gradus.cuda.FloatTensor, 3, "torch.cuda.FloatTensor"):
        with pytest.raises(TypeError):
            gradus.set_default_tensor_type(wrong)
