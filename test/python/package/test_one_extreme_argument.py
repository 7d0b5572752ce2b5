"""Calls operators of neural networks with one extreme argument and otherwise valid arguments. Extreme arguments are e.g. tensors without
elements, and sizes and integers at the ends of int64. The operator may raise an exception but must not crash, e.g. by a division by zero."""
import sys

import pytest
from own_process import PARTS, attempt, check_part

FILES = {"convolution", "pooling", "resample", "grid", "fold", "attention", "rnn", "optim", "foreach", "loss", "normalization", "pad", "decomposition", "amp"}
INTEGERS = [0, -1, 7, 2**31, 2**62, 2**63 - 1, -2**63]


def extremes(torch, argument, value):
    """Yields extreme values for one argument."""
    if isinstance(value, torch.Tensor):
        yield from (value.new_zeros((*value.shape[:d], 0, *value.shape[d + 1:])) for d in range(value.dim()))
        yield from (value.new_zeros((*value.shape[:d], value.shape[d] + 1, *value.shape[d + 1:])) for d in range(value.dim()))
        yield from (value.reshape(1, *value.shape), value.sum(), value.to(torch.int64), torch.full_like(value, -1), None)
    elif argument.list and isinstance(value, list) and value and isinstance(value[0], torch.Tensor):
        yield from ([], value[:-1], value + value[:1], [value[0].new_zeros(0), *value[1:]], [value[0].sum(), *value[1:]])
    elif argument.list:
        given = value or [1, 1]
        yield from ([*given[:i], n, *given[i + 1:]] for i in range(len(given)) for n in INTEGERS)
        yield from ([], given[:-1], given + given[:1], None, [2**62] * len(given))
    elif argument.kind == "int":
        yield from INTEGERS
    elif argument.kind != "bool":
        yield from (0.0, -1.0, float("nan"), float("inf"), 1e300, None, "junk")


def with_gradients(torch, value):
    if isinstance(value, list):
        return [with_gradients(torch, item) for item in value]
    return value.detach().requires_grad_() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def call_and_differentiate(torch, call, function, operator, values):
    result = call(function, operator, {name: with_gradients(torch, value) for name, value in values.items()})
    for part in result if isinstance(result, (tuple, list)) else [result]:
        if isinstance(part, torch.Tensor) and part.requires_grad and part.numel() < 1 << 20:
            attempt(lambda part=part: part.sum().backward(retain_graph=True))


def run(part):
    import warnings

    import gradus as torch
    from gradus import _C
    from operator_calls import arguments, call, public_calls, sample_texts

    _C._memory_set_limit(1 << 30)
    warnings.simplefilter("ignore")
    of_networks = [(function, operator) for path, function, operator, form in public_calls()
                   if operator.file.removeprefix("schema/").removesuffix(".toml") in FILES and form != "inplace" and not path.startswith("method")]
    for function, operator in of_networks[part::PARTS]:
        print(operator.name, file=sys.stderr, flush=True)
        for text in sample_texts(operator)[:2]:
            values = arguments(operator, text)
            for argument in operator.args:
                for extreme in extremes(torch, argument, values.get(argument.name)):
                    attempt(call, function, operator, {**values, argument.name: extreme})
                    attempt(call_and_differentiate, torch, call, function, operator, {**values, argument.name: extreme})


@pytest.mark.parametrize("part", range(PARTS))
def test_calls_with_one_extreme_argument_only_raise_exceptions(part):
    check_part(__file__, part)


if __name__ == "__main__":
    run(int(sys.argv[1]))
