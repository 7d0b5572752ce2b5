"""Checks that every operator behaves the same on the meta device and on the CPU, for valid and for invalid calls: sizes, strides, dtypes and errors.

The arguments are the sample arguments in the schema, of which one or several are changed. Outcomes that depend on the elements are not compared."""
import re
import warnings

import gradus as torch
from gradus import _C
from operator_calls import Mutations, arguments, call, public_calls, sample_texts

CALLS = 60
LIMIT = 2 << 30  # memory limit in bytes for the calls on the CPU; meta tensors use no memory
# Texts of errors about elements or their memory. A CPU tensor raises them, but a meta tensor cannot, because it has no elements.
BY_DATA = re.compile(r"out of (bounds|range)|invalid max index|ZeroDivisionError|between 0 and 1|without overflow|cannot allocate|not resizable|prob|non-negative|strictly increasing|must be (in|non)|Class values|positive-definite|singular|is zero and|failed to converge|infs or NaNs|when !unsafe|lie within the|window overlap add min")
NO_DATA = re.compile(r"meta (device|tensor)")
# Operators that are not tested. Some compute the sizes or dtypes of results from elements, others read elements before they check the dtype.
LOOK_FIRST = {"_recorded_step", "cov", "gaussian_nll_loss", "index_reduce", "histc", "histogram", "histogram_bins", "_histogramdd_bin_edges", "_histogramdd_from_bin_cts", "linalg_lstsq"}


def tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from tensors(one)


def on_meta(value):
    if isinstance(value, torch.Tensor):
        made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
        return torch._conj(made) if value.is_conj() else torch._neg_view(made) if value.is_neg() else made
    return [on_meta(one) for one in value] if isinstance(value, list) else value


def geometry(t):
    return tuple(t.shape), t.stride() if t.numel() else (), t.dtype


def outcome(function, operator, values):
    try:
        result = call(function, operator, values)
    except Exception as error:
        return type(error).__name__, str(error)
    return "gives", [geometry(t) for t in tensors(result)]


def differs(cpu, meta):
    return cpu != meta and not (meta[0] != "gives" and NO_DATA.search(meta[1])) and not (cpu[0] != "gives" and BY_DATA.search(cpu[1]))


def test_calls_on_the_meta_device_behave_as_on_the_cpu():
    compared, found = 0, []
    _C._memory_set_limit(LIMIT)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number, (name, function, operator, _) in enumerate(public_calls()):
                texts, change = sample_texts(operator), Mutations(number)
                if not texts or operator.arg("device") or operator.name in LOOK_FIRST:
                    continue
                for _ in range(CALLS):
                    try:
                        given = arguments(operator, change.random.choice(texts), change.random.choice([torch.float32, torch.int64, torch.complex64, torch.complex32, torch.float16, torch.bool]))
                    except (RuntimeError, NotImplementedError):  # the operator does not take the dtype of the sample
                        continue
                    given = {key: value.detach() if isinstance(value, torch.Tensor) else value for key, value in change.mutated(operator, given).items()}
                    if any(t.is_meta for v in given.values() for t in tensors(v)) or not any(True for v in given.values() for t in tensors(v)):
                        continue
                    meta = outcome(function, operator, {key: on_meta(value) for key, value in given.items()})  # called first, because the call on the CPU may write its arguments
                    cpu = outcome(function, operator, given)
                    compared += 1
                    if differs(cpu, meta):
                        found.append((name, cpu, meta))
    finally:
        _C._memory_set_limit(0)
    assert not found, "\n".join(map(str, found))
    assert compared > 10_000
