"""Compares gradus.nn with PyTorch on the database of modules that PyTorch uses for its own tests (torch.testing._internal.common_modules.module_db).

  tools/modules.py                          every module, float32 and float64, training and evaluation where these differ
  tools/modules.py 'nn.Conv*' --limit 5     some modules, and at most that many samples of each dtype and mode

Both frameworks construct a module from the same seed and call it. Parameters, repr, outputs, buffers after the call, and the gradients of inputs and
parameters must be equal, and each module must load the state_dict of the other framework's module. If PyTorch raises an error for a sample, Gradus
must raise one. The table shows for each module how many samples are equal, and the reason for the first sample that is not. PYTHONPATH must contain
the package to compare, e.g. build/release/python.
"""
import argparse
import dataclasses
import fnmatch
import importlib
import itertools
import sys
import types
import unittest
import warnings
from collections import OrderedDict

import gradus
import torch

DTYPES = (torch.float32, torch.float64)
# float32 sums computed in another order differ by more than torch.testing allows. float64 is compared with torch.testing's own tolerances, which
# would reveal any other difference.
TOLERANCES = {torch.float32: {"rtol": 1e-5, "atol": 2e-5}}
SEED = 7


def database():
    """Returns PyTorch's list of ModuleInfo. PyTorch's module imports the package expecttest, but nothing of that package is used here.
    Therefore a stub stands in for expecttest unless it is already loaded."""
    if "expecttest" not in sys.modules:
        stand_in = types.ModuleType("expecttest")
        stand_in.TestCase, stand_in.ACCEPT = unittest.TestCase, False
        stand_in.assert_expected_inline = None
        sys.modules["expecttest"] = stand_in
    from torch.testing._internal.common_modules import module_db

    return module_db


# ---- From PyTorch to Gradus and back ------------------------------------------------------------------------------------------


def to_gradus(value, memo=None):
    """Converts a value of PyTorch to the equivalent value of Gradus. Each tensor is copied once. Classes and functions are found by their names."""
    memo = {} if memo is None else memo
    if isinstance(value, torch.Tensor):
        if id(value) not in memo:
            tensor = gradus.from_numpy(value.detach().numpy().copy())
            is_parameter = isinstance(value, torch.nn.Parameter)
            memo[id(value)] = gradus.nn.Parameter(tensor, value.requires_grad) if is_parameter else tensor.requires_grad_(value.requires_grad)
        return memo[id(value)]
    if isinstance(value, torch.nn.Module):
        return module_to_gradus(value, memo)
    if isinstance(value, torch.dtype):
        return getattr(gradus, str(value).removeprefix("torch."))
    if isinstance(value, (list, tuple)):
        return type(value)(to_gradus(item, memo) for item in value)
    if isinstance(value, dict):
        return type(value)((key, to_gradus(item, memo)) for key, item in value.items())
    if dataclasses.is_dataclass(value):
        fields = {field.name: to_gradus(getattr(value, field.name), memo) for field in dataclasses.fields(value)}
        return getattr(gradus.nn, type(value).__name__)(**fields)
    if callable(value):
        return getattr(gradus.nn.functional, value.__name__)
    return value


def module_to_gradus(module, memo):
    """Converts a module of PyTorch to an object of the Gradus class with the same name and equal attributes. As in unpickling, __setstate__ sets the
    attributes and the constructor is not called."""
    home = importlib.import_module(type(module).__module__.replace("torch", "gradus", 1))
    kind = getattr(home, type(module).__name__)
    result = kind.__new__(kind)
    result.__setstate__(to_gradus(module.__dict__, memo))
    return result


def to_torch(value):
    """Converts a value of Gradus to the equivalent value of PyTorch. Tensors are copied."""
    if isinstance(value, gradus.Tensor):
        return torch.from_numpy(value.detach().numpy().copy())
    if isinstance(value, (list, tuple)):
        return type(value)(to_torch(item) for item in value)
    if isinstance(value, dict):
        return OrderedDict((key, to_torch(item)) for key, item in value.items())
    return value


# ---- One sample ---------------------------------------------------------------------------------------------------------------


class Difference(Exception):
    """Raised if the two frameworks differ. The text says what differs."""


def tensors_in(value):
    """Returns all tensors in nested tuples, lists and dicts, in order."""
    if isinstance(value, (gradus.Tensor, torch.Tensor)):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [tensor for item in value for tensor in tensors_in(item)] if isinstance(value, (list, tuple)) else []


def expect_equal(what, got, wanted):
    """Raises Difference unless the tensors in `got` (Gradus) are close to those in `wanted` (PyTorch). Dtypes that are not in TOLERANCES are compared
    with the tolerances of torch.testing. `what` names the tensors in the error."""
    got, wanted = tensors_in(got), tensors_in(wanted)
    if len(got) != len(wanted):
        raise Difference(f"{what}: {len(got)} tensors, not {len(wanted)}")
    for ours, theirs in zip(got, wanted):
        if ours.requires_grad != theirs.requires_grad:
            raise Difference(f"{what}: requires_grad is {ours.requires_grad}")
        try:
            torch.testing.assert_close(to_torch(ours), theirs.detach(), equal_nan=True, **TOLERANCES.get(theirs.dtype, {}))
        except AssertionError as error:
            raise Difference(f"{what}: {' '.join(str(error).split())}") from None


def attempt(function, *args, **kwargs):
    """Calls the function and returns (result, None), or (None, exception) if the call raises one."""
    try:
        return function(*args, **kwargs), None
    except Exception as error:
        return None, error


def both(what, ours, theirs):
    """Calls `ours` and `theirs` with equal seeds and returns both results, or None if both raise. Raises Difference if only one raises. `what`
    names the call in the error."""
    gradus.manual_seed(SEED)
    got, error = attempt(ours)
    torch.manual_seed(SEED)
    wanted, expected = attempt(theirs)
    if error is not None and expected is None:
        raise Difference(f"{what}: {type(error).__name__}: {error}")
    if error is None and expected is not None:
        raise Difference(f"{what}: no {type(expected).__name__}: {expected}")
    return None if error is not None else (got, wanted)


def compare(info, sample, dtype, training):
    """Raises Difference if Gradus and PyTorch differ for `sample`. `info` is an entry of PyTorch's module_db, and `sample` holds inputs that it
    proposes for its module."""
    name = info.module_cls.__name__
    if not hasattr(gradus.nn, name):
        raise Difference("absent")
    constructor, forward = sample.constructor_input, sample.forward_input
    args, kwargs = to_gradus(constructor.args), to_gradus(constructor.kwargs)
    made = both("constructor", lambda: getattr(gradus.nn, name)(*args, **kwargs), lambda: info.module_cls(*constructor.args, **constructor.kwargs))
    if made is None:
        return
    ours, theirs = made[0].to(to_gradus(dtype)).train(training), made[1].to(dtype).train(training)
    if repr(ours) != repr(theirs):
        line, wanted = next(pair for pair in itertools.zip_longest(repr(ours).split("\n"), repr(theirs).split("\n")) if pair[0] != pair[1])
        raise Difference(f"repr: {line}, not {wanted}")
    if forward is not None:
        inputs = to_gradus((forward.args, forward.kwargs))
        for tensor in tensors_in((forward.args, forward.kwargs)):
            if tensor.requires_grad:
                tensor.retain_grad()
                tensor.grad = None  # an earlier sample with the same tensor may have left a gradient
        results = both("forward", lambda: ours(*inputs[0], **inputs[1]), lambda: theirs(*forward.args, **forward.kwargs))
        if results is None:
            return
        expect_equal("forward", *results)
        compare_gradients(ours, theirs, inputs, (forward.args, forward.kwargs), *results)
    compare_states(ours, theirs)


def compare_gradients(ours, theirs, our_inputs, their_inputs, got, wanted):
    """Compares the gradients of a weighted sum of all outputs with respect to parameters and inputs."""
    generator = torch.Generator().manual_seed(SEED)
    pairs = [pair for pair in zip(tensors_in(got), tensors_in(wanted)) if pair[1].requires_grad]
    if not pairs:
        return
    weights = [torch.randn(theirs.shape, generator=generator, dtype=theirs.dtype) for _, theirs in pairs]
    both("backward", lambda: gradus.autograd.backward([ours for ours, _ in pairs], [to_gradus(weight) for weight in weights]),
         lambda: torch.autograd.backward([theirs for _, theirs in pairs], weights))
    expect_gradients("gradient of input", tensors_in(our_inputs), tensors_in(their_inputs))
    expect_gradients("gradient of parameter", ours.parameters(), theirs.parameters())


def expect_gradients(what, ours, theirs):
    for number, (got, wanted) in enumerate(zip(ours, theirs)):
        if (got.grad is None) != (wanted.grad is None):
            raise Difference(f"{what} {number}: {'absent' if got.grad is None else 'present'}")
        if wanted.grad is not None:
            expect_equal(f"{what} {number}", got.grad, wanted.grad)


def compare_states(ours, theirs):
    """Raises Difference if the state_dicts of the two modules differ, and loads each into the other module."""
    got, wanted = ours.state_dict(), theirs.state_dict()
    if list(got) != list(wanted):
        raise Difference(f"state_dict: keys {list(got)}, not {list(wanted)}")
    expect_equal("state_dict", got, wanted)
    ours.load_state_dict(to_gradus(wanted))
    theirs.load_state_dict(to_torch(got))


# ---- All modules --------------------------------------------------------------------------------------------------------------


def samples(info, dtype, training, limit):
    """Returns the samples of a module. If there are more than `limit`, returns at most that many, evenly spaced."""
    torch.manual_seed(SEED)
    found = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
    step = max(1, -(-len(found) // limit)) if limit else 1
    return found[::step]


def run(info, limit=None):
    """Compares a module on its samples. Returns the number of samples and a list with one text for each sample that differs."""
    count, reasons = 0, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in DTYPES:
            for training in (True, False) if info.train_and_eval_differ else (True,):
                for sample in samples(info, dtype, training, limit):
                    count += 1
                    try:
                        compare(info, sample, dtype, training)
                    except Difference as difference:
                        reasons.append(f"{str(dtype).removeprefix('torch.')}, {'training' if training else 'evaluation'}, {sample.desc}: {difference}")
    return count, reasons


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["*"], help="patterns such as 'nn.Conv*'; all modules where there are none")
    parser.add_argument("--limit", type=int, help="at most that many samples of each module, dtype and mode")
    parser.add_argument("--all", action="store_true", help="every reason, not the first of each module alone")
    arguments = parser.parse_args()
    total = equal = 0
    for info in database():
        if not any(fnmatch.fnmatch(info.name, name) for name in arguments.names):
            continue
        count, reasons = run(info, arguments.limit)
        total, equal = total + count, equal + count - len(reasons)
        print(f"{info.name:32} {count - len(reasons):5} of {count:5}   {reasons[0][:200] if reasons else ''}", flush=True)
        for reason in reasons if arguments.all else ():
            print(f"    {reason}")
    print(f"{equal} of {total} samples are equal: {100 * equal / max(total, 1):.2f} %")


if __name__ == "__main__":
    main()
