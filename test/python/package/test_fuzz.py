"""Calls every function with random arguments of wrong types, sizes and values. A function may only raise exceptions.

Half of the calls have random arguments; half of these run inside of forward-mode AD and vmap, with dual and batched tensors among the arguments. The
other calls take a valid sample of the schema and change some arguments to extreme values, e.g. integers near the ends of int64.

The functions are divided into parts. Each part runs in its own process, so that a crash is detected. GRADUS_FUZZ_CALLS sets the number of calls of
each function, GRADUS_FUZZ_SEED the seed."""
import os
import sys
from contextlib import nullcontext

import pytest
from own_process import PARTS, attempt, check_part

CALLS = int(os.environ.get("GRADUS_FUZZ_CALLS", "60"))
SEED = int(os.environ.get("GRADUS_FUZZ_SEED", "0"))
MOST_ELEMENTS = 1 << 22  # larger results are not summed, because summing a huge expanded tensor takes too long


def random_calls(part):
    from surface import Arguments, functions, levels
    from gradus import _C

    _C._memory_set_limit(4 << 30)  # limits Gradus's own memory; with sanitizers RLIMIT_AS cannot be used

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

    if "LD_PRELOAD" not in os.environ:  # no limit with sanitizers, because they reserve most of the address space
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    warnings.simplefilter("ignore")
    random_calls(part)
    changed_calls(part)


@pytest.mark.parametrize("part", range(PARTS))
def test_random_calls_only_raise_exceptions(part):
    check_part(__file__, part)


if __name__ == "__main__":
    run(int(sys.argv[1]))
