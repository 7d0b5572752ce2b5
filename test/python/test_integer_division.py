"""Compares quotients and remainders of int64 with Python's. The library divides operands of at most 50 bits in floating point, so the tests use
operands on both sides of this limit."""
import random

import gradus

ENDS = [0, 1, -1, 2, 7, 2**50 - 1, -(2**50), 2**50, -(2**50) - 1, 2**51, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]


def wrapped(x):
    return (x + 2**63) % 2**64 - 2**63


def truncated(x, y):
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def expect(xs, ys):
    x, y = gradus.tensor(xs), gradus.tensor(ys)
    pairs = list(zip(xs, ys))
    assert (x // y).tolist() == [wrapped(a // b) for a, b in pairs]
    assert (x % y).tolist() == [a % b for a, b in pairs]
    assert gradus.div(x, y, rounding_mode="trunc").tolist() == [wrapped(truncated(a, b)) for a, b in pairs]
    assert gradus.fmod(x, y).tolist() == [a - truncated(a, b) * b for a, b in pairs]


def test_operands_of_at_most_50_bits():
    r = random.Random(1)
    for bits in (3, 12, 40, 50):
        xs = [r.randrange(-(2**50), 2**50) for _ in range(1000)]
        ys = [r.randrange(-(2**bits), 2**bits) or 3 for _ in range(1000)]
        expect(xs, ys)
        # Dividends that differ by at most 1 from a multiple of the divisor. Their quotient, rounded to double, may be the next integer, so truncating
        # it would be wrong.
        expect([truncated(a, b) * b + r.choice((-1, 0, 1)) for a, b in zip(xs, ys)], ys)


def test_operands_at_the_limits_of_int64_and_of_floating_point_division():
    pairs = [(a, b) for a in ENDS for b in ENDS if b != 0]
    expect(*map(list, zip(*pairs)))
    for a, b in pairs:
        expect([a] * 5, [b] * 5)


def test_remainder_in_place():
    x = gradus.arange(-500, 500)
    x %= 7
    assert x.tolist() == [a % 7 for a in range(-500, 500)]
