"""Calls every operator with empty tensors whose nonzero sizes go up to 2^63 - 1, and with meta tensors too large for any memory. A call may return a
result or raise an error. The sanitizers check that no arithmetic overflows."""
import itertools
import sys

import pytest
from own_process import PARTS, attempt, check_part

EMPTY = [(2**62, 0), (0, 2**62), (2**31, 0, 2**32), (0, 2**31, 2**31 - 1), (2**40, 2**40, 0, 3), (3, 2**33, 0, 2**33), (0, 2**61, 3, 2**61), (2**63 - 1, 0)]
META = [(), (2**62,), (2**31, 2**31), (3, 2**31, 2**29), (2**61, 1, 2)]


def replaced(torch, value, sizes, device):
    """Returns the argument `value` with each tensor in it replaced by an uninitialized tensor of the sizes `sizes` on `device`. Floating-point
    tensors require a gradient."""
    if isinstance(value, list):
        return [replaced(torch, item, sizes, device) for item in value]
    if not isinstance(value, torch.Tensor):
        return value
    made = attempt(lambda: torch.empty(sizes, dtype=value.dtype, device=device))
    if made is None:  # no tensor of these sizes can be made, e.g. because the number of elements does not fit into int64
        return value
    return made.requires_grad_() if made.is_floating_point() else made


def choices(torch, values):
    """Yields copies of the arguments `values`. For each shape in EMPTY and META, first all tensors get this shape, then each tensor alone."""
    names = [name for name, value in values.items() if isinstance(value, torch.Tensor) or isinstance(value, list) and value and isinstance(value[0], torch.Tensor)]
    for sizes, device in [*itertools.product(EMPTY, ["cpu"]), *itertools.product(META, ["meta"])]:
        for chosen in [names, *([name] for name in names if len(names) > 1)]:
            moved = {name: replaced(torch, value, tuple(value.shape), device) if isinstance(value, torch.Tensor) and device == "meta" else value
                     for name, value in values.items()}
            yield moved | {name: replaced(torch, values[name], sizes, device) for name in chosen}


def run(part):
    import warnings

    import gradus as torch
    from gradus import _C
    from operator_calls import arguments, call, public_calls, sample_texts

    _C._memory_set_limit(1 << 30)
    warnings.simplefilter("ignore")
    for number, (name, function, operator, _) in enumerate(public_calls()):
        if number % PARTS != part:
            continue
        print(name, file=sys.stderr, flush=True)
        for text in sample_texts(operator)[:2]:
            for values in choices(torch, arguments(operator, text)):
                result = attempt(lambda: call(function, operator, values))
                if isinstance(result, torch.Tensor) and result.requires_grad:
                    attempt(lambda: result.sum().backward())


@pytest.mark.parametrize("part", range(PARTS))
def test_operators_with_huge_and_empty_sizes_do_not_overflow(part):
    check_part(__file__, part)


if __name__ == "__main__":
    run(int(sys.argv[1]))
