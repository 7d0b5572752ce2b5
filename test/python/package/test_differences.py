"""Compares gradient, logcumsumexp, renorm, hash_tensor, range and _chunk_cat with PyTorch."""
import gradus
import pytest
from oracle import torch

X = [[0.0, 1.0, 4.0, 9.0], [16.0, 25.0, 36.0, 49.0], [64.0, 81.0, 100.0, 121.0]]


def results(function):
    """Calls function(library) for Gradus and PyTorch and returns a list of the two results. A result is converted to lists. If the call raises an
    error, its class and text take the place of the result."""
    found = []
    for library in (gradus, torch):
        try:
            value = function(library)
            found.append([t.tolist() for t in value] if isinstance(value, (tuple, list)) else value.tolist())
        except Exception as error:
            found.append((type(error).__name__, str(error)))
    return found


@pytest.mark.parametrize("options", [
    {}, {"spacing": 2.0}, {"spacing": [2.0, 3.0]}, {"dim": 1}, {"dim": (0, 1), "edge_order": 2}, {"dim": -1, "spacing": [0.5]}, {"edge_order": 3}, {"dim": [0, 0]}, {"dim": 5}, {"spacing": [1.0]},
    {"spacing": [2.0, 3.0], "dim": 0}])
def test_gradient(options):
    ours, theirs = results(lambda library: library.gradient(library.tensor(X), **options))
    assert ours == theirs


@pytest.mark.parametrize("order", [1, 2])
def test_gradient_at_coordinates(order):
    ours, theirs = results(lambda library: library.gradient(library.tensor(X), spacing=[library.tensor([0.0, 1.0, 3.0]), library.tensor([0.0, 1.0, 2.0, 4.0])], edge_order=order))
    assert [sum(row, []) for row in ours] == [pytest.approx(sum(row, []), rel=1e-5) for row in theirs]


@pytest.mark.parametrize("values", [[0.0, 1.0, -3.0, 2.0] * 20, [float("-inf"), 0.0, 1000.0, -1000.0], [float("nan"), 1.0], [0.0, float("inf"), 1.0], [float("inf"), float("-inf")], [0.0, 0.14, 0.29], [0.3, 1.7]])
def test_logcumsumexp(values):
    for dtype in ("float32", "float64"):
        for dim in (0, 1):
            ours, theirs = results(lambda library: library.logcumsumexp(library.tensor(values, dtype=getattr(library, dtype)).reshape(1, -1).movedim(1, dim), dim).flatten())
            assert ours == pytest.approx(theirs, rel=1e-6, nan_ok=True)
            assert ours[0] == theirs[0] or ours[0] != ours[0]


@pytest.mark.parametrize("args", [(2, 0, 5.0), (1, 1, 5.0), (0.5, 0, 5), (float("inf"), 0, 5), (2, -1, 3), (2, 0, 0), (0, 0, 2), (2, 0, -1), (2, 2, 2)])
def test_renorm(args):
    ours, theirs = results(lambda library: library.renorm(library.tensor(X), *args))
    assert ours == theirs if isinstance(theirs, tuple) else sum(ours, []) == pytest.approx(sum(theirs, []), rel=1e-5)


@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
@pytest.mark.parametrize("args", [(1, 4), (1, 4, 0.5), (1, 4, -1), (4, 1, -1), (1, 4, 0), (0, float("inf")), (1.5, 4.2, 1), (3, 3)])
def test_range(args):
    ours, theirs = results(lambda library: library.range(*args))
    assert ours == theirs


def test_hash_tensor_and_chunk_cat():
    for options in ({}, {"dim": 0}, {"dim": [1], "keepdim": True}, {"dim": 5}, {"mode": 1}):
        for dtype in ("float32", "float16", "int64", "int8"):
            ours, theirs = results(lambda library: library.hash_tensor(library.tensor(X).to(getattr(library, dtype)), **options))
            assert ours == theirs
    for dim, chunks in ((0, 2), (1, 3), (-1, 2), (0, 0), (3, 1)):
        ours, theirs = results(lambda library: library._chunk_cat([library.tensor(X), library.tensor(X)], dim, chunks))
        assert ours == theirs
