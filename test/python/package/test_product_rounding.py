"""Checks that the matrix products of Gradus's own kernels have small rounding errors. Below x86-64-v3, OpenBLAS computes the large products."""
import numpy as np
import pytest

import gradus


@pytest.mark.parametrize("depth", [200, 500])
@pytest.mark.parametrize("sides", [(5, 10), (7, 4)])
def test_complex_mm_has_less_rounding_error_than_a_running_sum(sides, depth):
    random = np.random.default_rng(0)
    a, b = ((random.normal(size=size) + 1j * random.normal(size=size)).astype(np.complex64) for size in ((sides[0], depth), (depth, sides[1])))
    exact = a.astype(np.complex128) @ b.astype(np.complex128)
    running = np.zeros(sides, np.complex64)
    for k in range(depth):
        running = running + a[:, k : k + 1] * b[k : k + 1]
    ours = gradus.mm(gradus.from_numpy(a), gradus.from_numpy(b)).numpy()
    assert np.linalg.norm(ours - exact) < 0.7 * np.linalg.norm(running - exact)
