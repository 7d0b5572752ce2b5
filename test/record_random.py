"""Records PyTorch's random numbers: python3 test/record_random.py, with torch 2.13 installed (a CPU build suffices).

Writes test/data/random.json, which test/python/test_random.py replays, and test/unit/recorded_random.h for test_op_random.c. On another machine the
recorded files are the same except for the last bits of float64 numbers that are computed with the C library's log, sin and cos.
"""
import json
import sys
import textwrap
import warnings
from pathlib import Path

TEST = Path(__file__).resolve().parent
sys.path.insert(0, str(TEST / "python"))
from oracle import torch  # noqa: E402
from random_calls import Torch, digest, rests_on_libm, run, state_digest  # noqa: E402

FLOATING = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
INTEGERS = ["bool", "uint8", "int8", "int16", "int32", "int64"]
HIGH = {"bool": 2, "uint8": 200, "int8": 100, "int16": 30000, "int32": 2**31 - 1, "int64": 2**60, "uint16": 60000, "uint32": 2**32, "uint64": 2**62,
        "float16": 1000, "bfloat16": 100, "float32": 2**24, "float64": 2**50}
PLAIN = [{"size": [n]} for n in (0, 1, 5, 15, 16, 17, 32, 100, 1000)]
LAID_OUT = [{"size": []}, {"size": [5, 4], "layout": "10"}, {"size": [4, 5], "layout": "strided"}, {"size": [3, 9], "layout": "inner"},
            {"size": [2, 3, 4], "layout": "120"}, {"size": [2, 1, 3, 4], "layout": "2031"}]

# An ascending sort of these numbers, by introselect and then introsort, chooses a bad pivot at every step. McIlroy's adversary generated the numbers.
BAD_PIVOTS = [
    81, 0, 62, 1, 90, 2, 61, 3, 80, 4, 60, 5, 97, 6, 59, 7, 79, 8, 58, 9, 89, 10, 57, 11, 78, 12, 14, 13, 99, 98, 97, 96, 95, 94, 93, 92,
    91, 90, 89, 88, 87, 86, 85, 84, 83, 82, 81, 80, 79, 78, 77, 76, 75, 74, 73, 72, 71, 70, 69, 68, 67, 66, 65, 64, 63, 62, 61, 60, 59, 58,
    94, 77, 88, 76, 98, 75, 87, 74, 93, 73, 86, 72, 96, 71, 85, 70, 92, 69, 84, 68, 100, 67, 83, 66, 91, 65, 82, 64, 95, 63, 0, 1, 2, 3, 4,
    5, 6, 7, 8, 9, 10, 11, 12, 13, 57, 55, 56, 54, 55, 53, 54, 52, 53, 51, 52, 50, 51, 49, 50, 48, 49, 47, 48, 46, 47, 45, 46, 44, 45, 43,
    44, 42, 43, 41, 42, 40, 41, 39, 40, 38, 39, 37, 38, 36, 37, 35, 36, 34, 35, 33, 34, 32, 33, 31, 32, 30, 31, 29, 30, 28, 29, 27, 28, 26,
    27, 25, 26, 24, 25, 23, 24, 22, 23, 21, 22, 20, 21, 19, 20, 18, 19, 17, 18, 16, 17, 15, 16, 14, 15, 56]


def fills():
    """Yields (name, dtypes, arguments) for calls of the methods that fill a tensor with random numbers."""
    yield "uniform_", FLOATING + COMPLEX, {}
    yield "uniform_", FLOATING, {"from": -3.3, "to": 7.7}
    yield "uniform_", ["float16", "bfloat16"], {"from": -1, "to": 0}
    yield "normal_", FLOATING + COMPLEX, {}
    yield "normal_", FLOATING, {"mean": 1.5, "std": 0.3}
    yield "exponential_", FLOATING, {}
    yield "exponential_", FLOATING, {"lambd": 1.7}
    yield "bernoulli_", FLOATING + INTEGERS, {"p": 0.3}
    yield "random_", FLOATING + INTEGERS, {}
    yield "random_", ["bfloat16", "float32", "float64", "int64"], {"from": -2**63, "to": None}
    for dtype in FLOATING + INTEGERS + ["uint16", "uint32", "uint64"]:
        yield "random_", [dtype], {"to": HIGH[dtype]}
    for dtype in FLOATING + INTEGERS[2:]:
        yield "random_", [dtype], {"from": -HIGH[dtype], "to": HIGH[dtype]}
        yield "random_", [dtype], {"from": HIGH[dtype] // 2, "to": None}


def sequences():
    for name, dtypes, arguments in fills():
        for dtype in dtypes:
            yield [[name, place | {"dtype": dtype} | arguments] for place in PLAIN + LAID_OUT]
    for dtype in FLOATING:
        yield [["bernoulli_", place | {"dtype": "int32", "p": [place["size"][-1:], dtype, "contiguous"]}] for place in PLAIN + LAID_OUT]
        yield [["bernoulli", place | {"dtype": dtype}] for place in PLAIN + LAID_OUT]
        yield [["dropout", place | {"dtype": dtype, "p": p}] for place in PLAIN[1:] + LAID_OUT for p in (0.25, 0.9)]
        yield [["multinomial", place | {"dtype": dtype, "num_samples": k, "replacement": replacement}]
               for place in ({"size": [40]}, {"size": [3, 200]}, {"size": [7, 40], "layout": "10"}) for k in (1, 3, 40) for replacement in (False, True)]
    for dtype in FLOATING + COMPLEX:
        yield [[name, place | {"dtype": dtype}] for name in ("rand_like", "randn_like") for place in PLAIN[4:] + LAID_OUT]
        yield [[name, place | {"dtype": dtype}] for name in ("rand", "randn") for place in PLAIN]
    for dtype in FLOATING + INTEGERS:
        yield [["randint", place | {"dtype": dtype, "low": 0, "high": HIGH[dtype]}] for place in PLAIN]
    for dtype in FLOATING + INTEGERS[1:]:
        yield [["randperm", {"n": n, "dtype": dtype}] for n in (0, 1, 2, 17, 100)]
    yield [["randperm", {"n": 100003, "dtype": "int64"}], ["rand", {"size": [100003], "dtype": "float32"}], ["randn", {"size": [100003], "dtype": "float32"}],
           ["bernoulli_", {"size": [100003], "dtype": "bool", "p": 0.5}], ["randint", {"size": [100003], "dtype": "int64", "low": 0, "high": 10}]]
    mixed = [["randn", {"size": [3], "dtype": "float32"}], ["rand", {"size": [2], "dtype": "float32"}], ["save", {}], ["randn", {"size": [2], "dtype": "float64"}],
             ["normal_", {"size": [20], "dtype": "float16", "generator": 1}], ["randperm", {"n": 9, "dtype": "int64"}],
             ["dropout", {"size": [12], "dtype": "float32", "p": 0.5}], ["restore", {}], ["randn", {"size": [5], "dtype": "float32"}],
             ["randint", {"size": [4], "dtype": "int64", "low": -2, "high": 2**40, "generator": 1}], ["exponential_", {"size": [3], "dtype": "float32"}]]
    yield from [mixed] * 4


def record():
    side, lines = Torch(), []
    for number, calls in enumerate(sequences()):
        seed = [7, -7, 2**40 + 1, 2**63 + 5][number % 4]
        calls = [[name, a] for name, a in calls if not (rests_on_libm(name, a.get("dtype")) and max(a["size"], default=0) > 32)]
        results, state = run(side, {"seed": seed, "calls": calls})
        drawn = [call for call in calls if call[0] not in ("save", "restore")]
        results = [data.hex() if rests_on_libm(name, a.get("dtype")) else digest(data) for (name, a), data in zip(drawn, results)]
        lines.append(json.dumps({"seed": seed, "calls": calls, "results": results, "state": state_digest(state)}, separators=(",", ":")))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def header():
    """Returns the text of unit/recorded_random.h. `arrays` lists (name, C type, function that draws the values) of each C array in that header.
    PyTorch is seeded with 7 before it draws an array."""
    weights = torch.tensor([0.1, 0.2, 0.3, 0.4])
    falling, equal = -torch.tensor(BAD_PIVOTS, dtype=torch.float64), torch.arange(300, dtype=torch.float64) * 7 % 11
    arrays = [
        ("rand_7", "float", lambda: [torch.rand(7)]),
        ("uniform_double", "double", lambda: [torch.empty(4, dtype=torch.float64).uniform_(-3.3, 7.7)]),
        ("transposed", "float", lambda: [torch.empty(3, 2).t().uniform_()]),
        ("randn_5", "float", lambda: [torch.randn(5)]),
        ("randn_19", "float", lambda: [torch.randn(19)]),
        ("randn_double_17", "double", lambda: [torch.randn(17, dtype=torch.float64)]),
        ("exponential", "double", lambda: [torch.empty(4, dtype=torch.float64).exponential_(1.5)]),
        ("bernoulli", "int64_t", lambda: [torch.empty(12, dtype=torch.int64).bernoulli_(0.3)]),
        ("dropout", "float", lambda: [torch.nn.functional.dropout(torch.ones(8), 0.25)]),
        ("dropout_half", "float", lambda: [torch.nn.functional.dropout(torch.full([8], 0.5, dtype=torch.float16), 0.16173971899693784).float()]),
        ("randint_9", "int64_t", lambda: [torch.randint(-4, 5, [9])]),
        ("randint_wide", "int64_t", lambda: [torch.randint(0, 1 << 40, [3])]),
        ("randperm_10", "int64_t", lambda: [torch.randperm(10)]),
        ("random_int64", "int64_t", lambda: [torch.empty(2, dtype=torch.int64).random_()]),
        ("multinomial_with", "int64_t", lambda: [torch.multinomial(weights, 6, replacement=True)]),
        ("multinomial_without", "int64_t", lambda: [torch.multinomial(weights, 3)]),
        ("multinomial_equal", "int64_t", lambda: [torch.multinomial(torch.tensor([0.0] * 20 + [1.0] * 4), 24)]),
        ("bad_pivots", "double", lambda: [falling]),
        ("bad_pivots_order", "int64_t", lambda: [falling.topk(200).indices]),
        ("equal_order", "int64_t", lambda: [equal.topk(120).indices]),
        ("equal_order_few", "int64_t", lambda: [equal.topk(4).indices]),
        ("mixed", "float", lambda: [torch.randn(3), torch.rand(2), torch.randn(2)]),
        ("mixed_permutation", "int64_t", lambda: [(torch.randn(3), torch.rand(2), torch.randn(2), torch.randperm(4))[-1]]),
    ]
    text = """/* Written by test/record_random.py: values drawn from PyTorch after the seed 7. */
#ifndef GRD_TEST_RECORDED_RANDOM_H
#define GRD_TEST_RECORDED_RANDOM_H

#include <stdint.h>

/* clang-format off */
"""
    for name, kind, draw in arrays:
        torch.manual_seed(7)
        values = torch.cat(draw()).reshape(-1).tolist()
        literals = [str(v) if kind == "int64_t" else v.hex() + "f" * (kind == "float") for v in values]
        text += textwrap.fill(f"static const {kind} {name}[] = {{{', '.join(literals)}}};", 140, subsequent_indent="    ") + "\n"
    return text + "/* clang-format on */\n\n#endif\n"


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # PyTorch warns of integer bounds that a floating dtype cannot represent exactly
    (TEST / "data").mkdir(exist_ok=True)
    (TEST / "data" / "random.json").write_text(record())
    (TEST / "unit" / "recorded_random.h").write_text(header())
