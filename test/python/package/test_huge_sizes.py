"""Every operator is called with empty tensors whose other sizes have any product, and with meta tensors too large for any memory: the outcome is an
error or a result, and no arithmetic overflows (which the sanitizers detect)."""
import itertools
import sys

import pytest
from own_process import PARTS, attempt, check_part

EMPTY = [(2**62, 0), (0, 2**62), (2**31, 0, 2**32), (0, 2**31, 2**31 - 1), (2**40, 2**40, 0, 3), (3, 2**33, 0, 2**33), (0, 2**61, 3, 2**61), (2**63 - 1, 0)]
META = [(), (2**62,), (2**31, 2**31), (3, 2**31, 2**29), (2**61, 1, 2)]


def replaced(torch, value, sizes, device):
    """Returns the value with each tensor in it replaced by one of other sizes."""
    if isinstance(value, list):
        return [replaced(torch, item, sizes, device) for item in value]
    if not isinstance(value, torch.Tensor):
        return value
    made = attempt(lambda: torch.empty(sizes, dtype=value.dtype, device=device))
    if made is None:  # the number of elements does not fit into int64
        return value
    return made.requires_grad_() if made.is_floating_point() else made


def choices(torch, values):
    """Yields the arguments with other sizes for each tensor in turn, and for all tensors."""
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
    from operator_calls import arguments, call, sample_texts, shown

    _C._memory_set_limit(1 << 30)
    warnings.simplefilter("ignore")
    for number, (name, function, operator, _) in enumerate(shown()):
        if number % PARTS != part:
            continue
        print(name, file=sys.stderr, flush=True)
        for text in sample_texts(operator)[:2]:
            for values in choices(torch, arguments(operator, text)):
                result = attempt(lambda: call(function, operator, values))
                if isinstance(result, torch.Tensor) and result.requires_grad:
                    attempt(lambda: result.sum().backward())


@pytest.mark.parametrize("part", range(PARTS))
def test_sizes_of_any_product(part):
    check_part(__file__, part)


if __name__ == "__main__":
    run(int(sys.argv[1]))
