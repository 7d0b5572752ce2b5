"""Compares autocast with PyTorch: the dtypes of the results of every call that the schema offers to Python, and of all functions of nn.functional."""
import pytest

import gradus
import operator_calls
from oracle import torch

# Operators that Gradus casts differently from PyTorch, with the reason.
OTHERWISE = {
    "lstm": "PyTorch's choice of oneDNN decides: not for projections, whose cells stay float32, nor for no rows",
    "lstm_packed": "as lstm",
    "local_response_norm": "PyTorch calls avg_pool3d, which is cast, for more than 3 dimensions",
    "convolution": "called by its own name, PyTorch's takes a bias of another dtype",
    **dict.fromkeys(("native_layer_norm", "native_group_norm"), "PyTorch gives the mean and the rstd of bfloat16 in float32 where weights are that"),
    "addbmm": "in place, PyTorch casts the matrices, which are multiplied one after the other",
    "linalg_det": "PyTorch does not look at the dtype of no matrices",
    "linalg_ldl_solve": "as linalg_det",
    "index_put": "PyTorch takes one number of another dtype where the index is a mask",
    "amp_foreach_non_finite_check_and_unscale": "PyTorch's gives nothing back",
}
HOMES = {"function": (torch, torch._C._VariableFunctions), "nn": (torch._C._nn, torch.nn.functional), "linalg": (torch.linalg,), "special": (torch.special,), "fft": (torch.fft,), "windows": (torch.signal.windows,), "method": (torch.Tensor,)}


def theirs(path, function):
    """Returns PyTorch's counterpart of Gradus's `function`, adapted to the signature of `function`, or None if PyTorch has none. `path` names the
    counterpart, e.g. "nn.relu"."""
    home, name = path.split(".")
    found = next((getattr(place, name) for place in HOMES[home] if hasattr(place, name)), None)
    return function.like(found) if found is not None and hasattr(function, "like") else found


def converted(value):
    if isinstance(value, gradus.Tensor):
        return torch.tensor(value.tolist(), dtype=getattr(torch, str(value.dtype).split(".")[1])).reshape(tuple(value.shape))
    if isinstance(value, list):
        return [converted(item) for item in value]
    return getattr(torch, str(value).split(".")[1]) if isinstance(value, gradus.dtype) else value


def dtypes(value):
    if isinstance(value, (tuple, list)):
        return [dtypes(item) for item in value]
    return str(value.dtype).split(".")[1] if hasattr(value, "dtype") else type(value).__name__


def outcome(library, function, operator, values):
    """Calls `function` under autocast. Returns the dtypes of the results, or the exception that was raised."""
    try:
        with library.autocast("cpu"):
            return dtypes(operator_calls.call(function, operator, values))
    except Exception as error:
        return error


def mixed(values, library):
    """Returns the arguments with the first floating tensor converted to bfloat16."""
    first = next((name for name, value in values.items() if isinstance(value, library.Tensor) and value.is_floating_point()), None)
    return values if first is None else {**values, first: values[first].to(library.bfloat16)}


def arguments(operator):
    for text in operator_calls.sample_texts(operator):
        single = operator_calls.arguments(operator, text)
        yield "float32", single
        yield "bfloat16", operator_calls.arguments(operator, text, gradus.bfloat16)
        yield "float64", operator_calls.arguments(operator, text, gradus.float64)
        yield "bfloat16 and float32", mixed(single, gradus)


SHOWN = [(path, function, operator) for path, function, operator, _ in operator_calls.public_calls()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", sorted({path for path, _, operator in SHOWN if operator.name not in OTHERWISE}))
def test_results_under_autocast_have_the_dtypes_of_pytorch(path):
    wrong = []
    for function, operator in [(function, operator) for other, function, operator in SHOWN if other == path]:
        other = theirs(path, function)
        for kind, values in arguments(operator) if other is not None else ():
            expected = outcome(torch, other, operator, {name: converted(value) for name, value in values.items()})
            found = outcome(gradus, function, operator, values)
            if not isinstance(expected, Exception) and found != expected:
                wrong.append(f"{operator.name} of {kind}: {found!r} instead of {expected}")
    assert not wrong, "\n".join(wrong)


def test_operators_that_pytorch_registers_for_autocast_have_a_rule():
    registered = {name.removeprefix("aten::").split(".")[0] for name in torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCPU")}
    ours = {operator.name: operator for operator in operator_calls.OPERATORS.values() if not operator.hidden}
    missing = [name for name in sorted(registered & ours.keys()) if ours[name].autocast is None]
    assert not missing
