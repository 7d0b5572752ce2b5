"""Calls every function with random arguments of wrong types, sizes and values. A function may only raise exceptions.

Half of the calls have completely random arguments. Every second of these calls may also get dual tensors (forward-mode AD) and tensors inside of
vmap. The other half of the calls starts from the valid arguments of the schema's samples and changes some of them, so that they pass the first
checks: integers near the ends of int64, tensors of rank 64, empty, expanded or overlapping tensors, unusual strides, other dtypes and devices. Each
part runs in a process of its own, so that a crash is detected. GRADUS_FUZZ_CALLS sets the number of calls of each function of both kinds,
GRADUS_FUZZ_SEED starts another sequence."""
import os
import sys
from contextlib import nullcontext

import pytest
from own_process import PARTS, attempt, check_part

CALLS = int(os.environ.get("GRADUS_FUZZ_CALLS", "60"))
SEED = int(os.environ.get("GRADUS_FUZZ_SEED", "0"))
MOST_ELEMENTS = 1 << 22  # maximum number of elements of a result that the test sums; an expanded result may have more than can be visited in a reasonable time


def random_calls(part):
    from surface import Arguments, functions, levels
    from gradus import _C

    _C._memory_set_limit(4 << 30)  # limits memory, because RLIMIT_AS cannot be used with sanitizers

    for number, (name, function) in enumerate(functions()):
        if number % PARTS == part:
            arguments = Arguments(number + 10000 * SEED)
            print(name, file=sys.stderr, flush=True)
            for inside in (False, True):
                with levels() if inside else nullcontext():
                    for _ in range(CALLS // 4):
                        positional, keywords = arguments.call()
                        attempt(function, *positional, **keywords)


def changed_calls(part):
    import gradus as torch
    from operator_calls import Mutations, arguments, call, public_calls, sample_texts

    dtypes = [torch.float32, torch.float64, torch.int64, torch.complex64, torch.complex32, torch.float16, torch.bool]
    for number, (name, function, operator, _) in enumerate(public_calls()):
        texts = sample_texts(operator)
        if number % PARTS != part or not texts:
            continue
        change = Mutations(number + 10000 * SEED)
        print(name, file=sys.stderr, flush=True)
        for _ in range(CALLS // 2):
            given = attempt(arguments, operator, change.random.choice(texts), change.random.choice(dtypes))
            if given is None:
                continue
            out = {"out": attempt(change.tensor, torch.ones(2, 3))} if change.random.random() < 0.1 and "out" in operator.forms else {}
            result = attempt(call, function, operator, change.mutated(operator, given), **out)
            if isinstance(result, torch.Tensor) and result.requires_grad and result.numel() < MOST_ELEMENTS:
                attempt(lambda: result.sum().backward())


def run(part):
    import resource
    import warnings

    if "LD_PRELOAD" not in os.environ:  # sanitizers reserve most of the address space, so it is limited only without them
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    warnings.simplefilter("ignore")
    random_calls(part)
    changed_calls(part)


@pytest.mark.parametrize("part", range(PARTS))
def test_random_calls_only_raise_exceptions(part):
    check_part(__file__, part)


if __name__ == "__main__":
    run(int(sys.argv[1]))
