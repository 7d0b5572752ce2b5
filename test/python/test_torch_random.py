"""Compares sequences of random calls with PyTorch bit for bit: results and states of the generator."""
import random

import pytest

import binding as g
from random_calls import Gradus, Torch, run
from oracle import torch

# PyTorch warns of integer bounds that a floating dtype cannot represent exactly.
pytestmark = pytest.mark.filterwarnings("ignore:.*out of bounds")
FLOATING = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex32", "complex64", "complex128"]
INTEGERS = ["bool", "uint8", "int8", "int16", "int32", "int64"]
UNSIGNED = ["uint16", "uint32", "uint64"]
COUNTS = [0, 1, 5, 15, 16, 17, 31, 32, 100, 1000, 100003]
LARGEST = {"bool": 1, "uint8": 255, "int8": 127, "uint16": 65535, "int16": 32767, "uint32": 2**32 - 1, "int32": 2**31 - 1, "int64": 2**63 - 1,
           "float16": 65504}
KINDS = ["uniform_", "normal_", "exponential_", "random_", "bernoulli_", "bernoulli_ by tensor", "rand", "randn", "randint", "randperm", "rand_like",
         "randn_like", "bernoulli", "dropout", "multinomial", "multinomial with replacement"]


def sizes(r):
    n = r.choice(COUNTS)
    shapes = [[n]] * 2 + [[n // 3, 3], [2, n // 2], [2, n // 4, 2], [1, n // 6, 3, 1, 2], [n // 30, 1, 5, 3, 2]]
    return r.choice([[], [1]] if n == 1 else shapes)


def layout(r, size):
    order = list(range(len(size)))
    r.shuffle(order)
    return r.choice(["contiguous", "strided", "inner", "".join(map(str, order))]) if size else "contiguous"


def bounds(r, dtype):
    largest = LARGEST.get(dtype, 2**62)
    high = r.choice([r.randint(1, largest), min(largest, r.choice([1, 2, 100, 2**28 - 1, 2**28, 2**32, 2**40]))])
    return 0 if dtype[0] == "u" or dtype == "bool" else r.choice([0, r.randint(-min(largest, 2**62), 0)]), high


def random_call(r, kind):
    size = sizes(r)
    a = {"size": size, "layout": layout(r, size)}
    if r.random() < 0.15:
        a["generator"] = 1
    if kind in ("uniform_", "normal_", "rand", "randn", "rand_like", "randn_like"):
        a["dtype"] = r.choice(FLOATING + COMPLEX)
    else:
        a["dtype"] = r.choice(FLOATING + (INTEGERS if kind.startswith(("bernoulli_", "random", "rand")) else []))
    given = r.random() < 0.6
    if kind == "uniform_" and given:
        a |= {"from": r.uniform(-5, 1), "to": r.uniform(1, 9)}
    elif kind == "normal_" and given:
        a |= {"mean": r.uniform(-5, 5), "std": r.uniform(0, 4)}
    elif kind == "exponential_" and given:
        a |= {"lambd": r.uniform(0.1, 5)}
    elif kind == "random_" and given:
        low, high = bounds(r, a["dtype"])
        everything = a["dtype"] in ("int64", "float64", "float32", "bfloat16") and r.random() < 0.3
        a |= {"from": -2**63, "to": None} if everything else r.choice([{"from": low, "to": high}, {"to": high}, {"from": low, "to": None}])
    elif kind == "bernoulli_":
        a["p"] = r.choice([0.0, 1.0, 0.5, r.random()])
    elif kind == "bernoulli_ by tensor":
        like = r.choice([size, size[-1:], [1] * len(size), size[:-1] + [1] if size else []])
        a["p"] = [like, r.choice(FLOATING), layout(r, like)]
    elif kind == "dropout":
        a["p"] = r.choice([0.0, 1.0, 0.5, 0.1, 0.999999, r.random()])
    elif kind == "randint":
        a["dtype"] = r.choice(FLOATING + INTEGERS + UNSIGNED)
        a["low"], a["high"] = bounds(r, a["dtype"])
    elif kind == "randperm":
        dtype = r.choice(FLOATING + INTEGERS[1:])
        a = {"dtype": dtype, "n": min(r.choice(COUNTS), LARGEST.get(dtype, 2**62), 2048 if dtype == "float16" else 2**62)}
    elif kind.startswith("multinomial"):
        n = r.choice([3, 17, 100, 1000])
        a["size"], a["replacement"] = r.choice([[n], [1, n], [3, n]]), "replacement" in kind
        a["layout"] = layout(r, a["size"])
        a["num_samples"] = r.choice([1, r.randint(1, n), r.randint(1, 2 * n if a["replacement"] else n)])
    if kind in ("rand_like", "randn_like", "dropout"):
        a.pop("generator", None)  # PyTorch's functions of these names take no generator
    if kind in ("rand", "randn", "randint"):
        a.pop("layout")
    return [kind.split()[0], a]


def random_sequence(seed):
    """Returns a sequence of twelve random calls. Between some of them the state of the generator is saved and restored."""
    r = random.Random(seed)
    calls = [random_call(r, r.choice(KINDS)) for _ in range(12)]
    calls.insert(r.randint(6, 12), ["restore", {}])
    calls.insert(r.randint(0, 5), ["save", {}])
    return {"seed": r.choice([seed, -seed - 1, seed << 40, (1 << 63) - seed]), "calls": calls}


def differences(sequence, threads):
    expected, expected_state = run(Torch(threads=min(threads, 2)), sequence)
    with g.scope():
        results, state = run(Gradus(threads=threads), sequence)
    calls = [call for call in sequence["calls"] if call[0] not in ("save", "restore")]
    return [call for call, got, wanted in zip(calls, results, expected) if got != wanted] + (["state"] if state != expected_state else [])


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_random_sequences_of_calls_give_the_numbers_of_pytorch(threads):
    for seed in range(threads * 1000, threads * 1000 + 40):
        assert not differences(random_sequence(seed), threads), f"seed {seed}"


@pytest.mark.parametrize("kind", KINDS)
def test_each_function_gives_the_numbers_of_pytorch(kind):
    r = random.Random(kind)
    sequence = {"seed": 7, "calls": [random_call(r, kind) for _ in range(60)]}
    assert not differences(sequence, 2)


def test_generator_states_are_exchanged_with_pytorch():
    """A state of PyTorch's generator can be restored in Gradus and vice versa. This also holds for a state that still contains the second of a pair
    of normal numbers (Box-Muller), which the next call returns."""
    ours, theirs = Gradus(), Torch()
    first, then = ["randn", {"size": [3], "dtype": "float32"}], ["randn", {"size": [9], "dtype": "float32"}]
    with g.scope():
        for source, target in ((ours, theirs), (theirs, ours)):
            source.seed(11)
            target.seed(12)
            source.call(*first)
            target.restore(source.state())
            assert source.state() == target.state()
            assert source.bytes(source.call(*then)) == target.bytes(target.call(*then))


def test_overloads_draw_the_numbers_of_pytorch():
    """Overloads of random functions draw PyTorch's numbers. Some overloads take means or deviations as tensors. Others take no lower bound, or
    take the sizes of a tensor."""
    mean, std = torch.linspace(-2, 3, 35).view(5, 7), torch.linspace(0, 2, 7)
    g.lib.grd_manual_seed(9)
    torch.manual_seed(9)
    with g.scope():
        m, s = (g.c.c_void_p(g.from_bytes(t.numpy().tobytes(), t.shape, "float32")) for t in (mean, std))
        cases = [("normal_tensors", {"mean": m, "std": s}, lambda: torch.normal(mean, std)), ("normal_means", {"mean": m, "std": 2.5}, lambda: torch.normal(mean, 2.5)),
                 ("normal_deviations", {"mean": 1.5, "std": s}, lambda: torch.normal(1.5, std)),
                 ("normal_sized", {"mean": 1.5, "std": 0.3, "size": [40]}, lambda: torch.normal(1.5, 0.3, (40,))),
                 ("randint_high", {"high": 10, "size": [4, 5]}, lambda: torch.randint(10, (4, 5))),
                 ("randint_like", {"self": m, "low": 3, "high": 10}, lambda: torch.randint_like(mean, 3, 10)),
                 ("randint_like_high", {"self": m, "high": 10}, lambda: torch.randint_like(mean, 10))]
        for name, arguments, wanted in cases:
            assert g.numpy_of(g.call(name, arguments)[0]).tolist() == wanted().double().tolist(), name
