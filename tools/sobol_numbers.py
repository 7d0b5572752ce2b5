"""Writes src/kernel/sobol_numbers.bin, which contains Joe's and Kuo's initial direction numbers of the Sobol sequence in the format that
src/kernel/sobol.c describes.

    python tools/sobol_numbers.py new-joe-kuo-6.21201

reads the table as its authors publish it at https://web.maths.unsw.edu.au/~fkuo/sobol/. Without an argument, the script reads the same numbers from
the installed PyTorch.
"""
import sys
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "src/kernel/sobol_numbers.bin"
BITS, DIMENSIONS = 30, 21201


def published(path):
    """Yields the list of direction numbers of each dimension but the first. A line of the published table contains dimension, degree, polynomial
    and numbers."""
    for line in Path(path).read_text().splitlines()[1:]:
        yield [int(word) for word in line.split()[3:]]


def installed():
    """Yields the same lists as published(), read from the installed PyTorch."""
    import torch

    state = torch._sobol_engine_initialize_state_(torch.zeros(DIMENSIONS, BITS, dtype=torch.int64), DIMENSIONS)
    degrees = [degree for degree in range(1, 19) for _ in range(primitive_polynomials(degree))]
    for directions, degree in zip(state[1:].tolist(), degrees):
        yield [direction >> BITS - 1 - k for k, direction in enumerate(directions[:degree])]


def primitive_polynomials(degree):
    """Returns the number of primitive polynomials over GF(2) that have this degree. It equals phi(2^degree - 1) / degree with Euler's totient phi."""
    totient = rest = (1 << degree) - 1
    for prime in range(2, rest + 1):
        if rest % prime == 0:
            totient -= totient // prime
            while rest % prime == 0:
                rest //= prime
    return totient // degree


def main():
    content = place = 0
    for numbers in published(sys.argv[1]) if len(sys.argv) > 1 else installed():
        packed = bits = 0
        for k, number in enumerate(numbers):
            packed |= number >> 1 << bits
            bits += k
        content |= packed << place
        place += bits
    FILE.write_bytes(content.to_bytes((place + 7) // 8, "little"))


main()
