"""Arguments of operators that only matter together, with values that are recorded from PyTorch; and objects that must live as long as a call, and no longer."""
import gc
import math
import threading

import pytest
from leaks import lost

import gradus as torch

UNSORTED = torch.tensor([3.0, 1.0, 2.0, 2.0])
ORDER = torch.tensor([1, 2, 3, 0])
KEYS = torch.tensor([2.0, 0.0, 5.0, 1.0])


@pytest.mark.parametrize("padding_idx, wanted", [(None, [2, 1, 1]), (0, [0, 1, 1]), (1, [2, 0, 1]), (2, [2, 1, 0]), (-1, [2, 1, 0]), (-3, [0, 1, 1])])
def test_padding_of_embedding(padding_idx, wanted):
    """The row of the padding gets no gradient, of first order or second."""
    weight, rows = torch.arange(6.0).reshape(3, 2).requires_grad_(), torch.tensor([0, 1, 0, 2])
    result = torch.nn.functional.embedding(rows, weight, padding_idx=padding_idx)
    assert result.tolist() == [[0.0, 1.0], [2.0, 3.0], [0.0, 1.0], [4.0, 5.0]]
    seed = torch.ones(4, 2, requires_grad=True)
    first, = torch.autograd.grad(result, weight, seed, create_graph=True)
    assert first.tolist() == [[float(n)] * 2 for n in wanted]
    second, = torch.autograd.grad(first.sum(), seed)
    assert second.tolist() == [[float(wanted[i] > 0)] * 2 for i in rows.tolist()]


def test_searching_what_is_not_sorted():
    assert torch.searchsorted(UNSORTED, KEYS, sorter=ORDER).tolist() == [1, 0, 4, 0]
    assert torch.searchsorted(UNSORTED, KEYS, right=True, sorter=ORDER).tolist() == [3, 0, 4, 1]
    found = torch.searchsorted(UNSORTED, KEYS, side="right", sorter=ORDER, out_int32=True)
    assert found.tolist() == [3, 0, 4, 1] and found.dtype is torch.int32


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_factors_of_products(dtype):
    a = torch.tensor([[1 + 2j, 0], [3j, 1]], dtype=dtype)
    beta, alpha = 2 - 1j, 1j
    wanted = beta * a + alpha * (a @ a)
    assert torch.addmm(a, a, a, beta=beta, alpha=alpha).tolist() == wanted.tolist()
    assert torch.baddbmm(a[None], a[None], a[None], beta=beta, alpha=alpha)[0].tolist() == wanted.tolist()
    assert torch.addmv(a[0], a, a[1], beta=beta, alpha=alpha).tolist() == (beta * a[0] + alpha * (a @ a[1])).tolist()
    assert torch.addmm(a, a, a, beta=1j).tolist() == (1j * a + a @ a).tolist()


def test_what_counts_nothing_is_not_read():
    """With beta 0 neither NaN nor infinity of the summand comes through."""
    nothing, ones = torch.tensor([[math.nan, 1.0], [2.0, math.inf]]), torch.ones(2, 2)
    assert torch.addmm(nothing, ones, ones, beta=0).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert torch.baddbmm(nothing[None], ones[None], ones[None], beta=0).tolist() == [[[2.0, 2.0], [2.0, 2.0]]]
    assert torch.addmv(nothing[0], ones, ones[0], beta=0).tolist() == [2.0, 2.0]


def test_arrays_hold_their_tensor_and_nothing_else():
    x, recorded = torch.ones(3), torch.ones(3, requires_grad=True) * 2
    for call in (x.numpy, lambda: x.numpy(force=True), lambda: recorded.numpy(force=True), lambda: recorded.detach().numpy(), lambda: x.__array__()):
        assert lost(call, x, recorded) == 0


def test_arguments_live_until_a_call_without_the_gil_is_done():
    """Another thread takes the last reference from a list while an operator reads what was in it."""
    stop, holder = threading.Event(), [None]

    def drop():
        while not stop.is_set():
            holder[0] = None
            gc.collect(0)

    thread = threading.Thread(target=drop)
    thread.start()
    try:
        for _ in range(60):
            holder[0] = torch.ones(300_000)
            given = [torch.ones(300_000), holder[0] if holder[0] is not None else torch.ones(300_000)]
            taken = torch.cat(given).sum()
            del given[:]
            assert taken.item() == 600_000
    finally:
        stop.set()
        thread.join()


def test_comparing_whole_tensors():
    x = torch.ones(2, 3, requires_grad=True)
    assert torch.equal(x, torch.ones(2, 3)) and not torch.equal(x, torch.ones(1, 3)) and not torch.equal(x, torch.ones(3)) and not torch.equal(x, x * 2)
    assert torch.allclose(x, torch.ones(1, 3)) and not torch.allclose(x, x + 1e-3)
    assert torch.is_grad_enabled() and (x * 2).requires_grad


def test_strides_of_what_is_empty():
    """Empty dimensions count as one element."""
    assert torch.empty(2, 0, 3).stride() == (3, 3, 1) and torch.empty(0).stride() == (1,) and torch.empty(4, 2, 0, 5).stride() == (10, 5, 5, 1)


@pytest.mark.parametrize("name", ["linspace", "logspace"])
def test_ends_of_a_range_may_be_tensors(name):
    """Their values count, whether or not they require a gradient; they get none, as in PyTorch."""
    import gradus
    from oracle import torch as pytorch
    for module in (gradus, pytorch):
        function, start = getattr(module, name), module.tensor(0.5, requires_grad=True)
        for end in (2.0, module.tensor(2, dtype=module.int64), module.tensor(2.0, requires_grad=True)):
            assert function(start, end, 4).tolist() == getattr(pytorch, name)(0.5, 2.0, 4).tolist()
            assert not function(start, end, 4).requires_grad
        with pytest.raises(RuntimeError, match=f"{name} only supports 0-dimensional start and end tensors"):
            function(start, module.ones(1), 4)
    assert gradus.logspace(0.9, 3, 1, dtype=gradus.int64).tolist() == pytorch.logspace(0.9, 3, 1, dtype=pytorch.int64).tolist() == [7]
