"""Tests reductions of rows of every length up to 70, with the extreme element at every position, because kernels process blocks of elements and then
a remainder."""
import math

import pytest

import gradus as torch

LENGTHS = range(1, 71)
EXTREME = 60.0


def line(n, at, sign=1):
    """Returns n small numbers, with a large number of the given sign at position `at`."""
    values = [math.sin(i) for i in range(n)]
    values[at] = sign * EXTREME
    return values


def softmax(values):
    exps = [math.exp(v - max(values)) for v in values]
    return [e / sum(exps) for e in exps]


def close(got, wanted, tolerance):
    return all(abs(g - w) <= tolerance * (1 + abs(w)) for g, w in zip(got, wanted, strict=True))


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 2e-6), (torch.float64, 1e-14)])
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_and_logsumexp_of_rows_of_every_length(dtype, tolerance, dim):
    for n in LENGTHS:
        lines = [line(n, at, sign) for at in range(n) for sign in (1, -1)]
        rows = torch.tensor(lines, dtype=dtype)
        rows = rows.t().contiguous() if dim == 0 else rows
        for got, log, total, values in zip(*[t.t().tolist() if dim == 0 and t.dim() == 2 else t.tolist() for t in (
                torch.softmax(rows, dim), torch.log_softmax(rows, dim), torch.logsumexp(rows, dim))], lines, strict=True):
            wanted = softmax(values)
            shift = max(values) + math.log(sum(math.exp(v - max(values)) for v in values))
            assert close(got, wanted, tolerance) and close(log, [v - shift for v in values], tolerance) and abs(total - shift) <= tolerance * EXTREME, n


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("dim", [0, 1])
def test_max_min_and_argmax_of_rows_of_every_length(dtype, dim):
    for n in LENGTHS:
        lines = [[100 if i == at else 7 for i in range(n)] for at in range(n)]
        rows = torch.tensor(lines).to(dtype)
        rows = rows.t().contiguous() if dim == 0 else rows
        values, indices = rows.max(dim)
        assert values.tolist() == [100] * n and indices.tolist() == list(range(n)) == rows.argmax(dim).tolist()
        low = 107 - rows
        values, indices = low.min(dim)
        assert values.tolist() == [7] * n and indices.tolist() == list(range(n)) == low.argmin(dim).tolist()
        assert rows.amax(dim).tolist() == [100] * n and low.amin(dim).tolist() == [7] * n
        assert (rows == 100).sum(dim).tolist() == [1] * n and (rows == 100).any(dim).tolist() == [True] * n
        assert (rows == 7).all(dim).tolist() == [False] * n
        assert rows.sort(dim).values.select(dim, n - 1).tolist() == [100] * n


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_reductions_find_nan_at_every_position(dtype):
    for n in LENGTHS:
        rows = torch.zeros(n, n, dtype=dtype) + torch.diag(torch.full((n,), math.nan, dtype=dtype))
        for found in (rows.amax(1), rows.amin(1), rows.max(1).values, rows.min(1).values, rows.sum(1), rows.mean(1), rows.prod(1), rows.logsumexp(1),
                      torch.softmax(rows, 1).sum(1), rows.cumsum(1)[:, -1], rows.cummax(1).values[:, -1]):
            assert found.isnan().all()
        assert rows.argmax(1).tolist() == list(range(n)) == rows.argmin(1).tolist()


def test_sums_and_products_of_rows_of_every_length():
    for n in LENGTHS:
        rows = torch.eye(n) * 1024 + 1
        assert rows.sum(1).tolist() == [1024.0 + n] * n == rows.sum(0).tolist() == rows.cumsum(1)[:, -1].tolist()
        assert rows.prod(1).tolist() == [1025.0] * n
        assert (rows @ torch.ones(n)).tolist() == [1024.0 + n] * n


@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 258, 511, 512, 513, 767, 769, 1025, 2049])
def test_operands_of_other_dtypes_are_converted_in_pieces(n):
    """An operand whose dtype is not the kernel's is converted in blocks. For some of the lengths `n` the last block has one element."""
    numbers = torch.arange(n)
    wanted = [i + 0.5 for i in range(n)]
    for dtype in (torch.int16, torch.int32, torch.int64, torch.float16 if n <= 1025 else torch.float32, torch.float32):
        x, half = numbers.to(dtype), torch.full((n,), 0.5, dtype=torch.float64)
        assert (x + half).tolist() == (half + x).tolist() == wanted
        assert (x + half[:1]).tolist() == wanted and (x.repeat_interleave(2)[::2] + half).tolist() == wanted
        total = half.clone()
        total += x
        assert total.tolist() == wanted and torch.add(half, x, out=torch.empty(n, dtype=torch.float32)).tolist() == wanted
        assert torch.where(half < 1, x, half).tolist() == list(range(n))


SHORTCUT_SIZES = [(n,) for n in (1, 2, 7, 8, 17, 70, 1000)] + [(17, 1), (1, 17), (64, 3, 1), (65, 3), (3, 65), (8, 40), (9, 40), (64, 256), (30, 257), (2, 3, 4), (2, 0, 3)]


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float32, torch.float64, torch.complex128])
@pytest.mark.parametrize("sizes", SHORTCUT_SIZES, ids=str)
def test_small_reductions_have_the_bits_of_the_general_path(sizes, dtype):
    """A small contiguous tensor is reduced by a fast path, which a call with out= never uses. So the results with and without out= must have the same
    bits."""
    x = torch.arange(math.prod(sizes), dtype=torch.float64).reshape(sizes).mul(0.37).sin().mul(3).abs().to(dtype)
    lists = [list(range(k)) for k in range(1, len(sizes) + 1)] + [list(range(k, len(sizes))) for k in range(1, len(sizes))]
    for name in ("sum", "mean", "amax", "amin", "any", "all", "prod"):
        if (name in ("amax", "amin") and (dtype.is_complex or x.numel() == 0)) or (name == "mean" and not (dtype.is_complex or dtype.is_floating_point)):
            continue
        for dims in lists:
            for keepdim in (False, True):
                dim = dims[0] if name == "prod" else dims
                got = getattr(torch, name)(x, dim, keepdim)
                planned = getattr(torch, name)(x, dim, keepdim, out=torch.empty(got.shape, dtype=got.dtype))
                assert got.shape == planned.shape and torch.equal(got.isnan(), planned.isnan())
                assert torch.equal(got[~got.isnan()], planned[~got.isnan()]), (name, dims, keepdim)


@pytest.mark.parametrize("columns", [1, 16, 63, 64, 65, 255, 256, 257, 300])
def test_cumsum_along_columns(columns):
    x = torch.arange(5 * columns).reshape(5, columns)
    wanted = torch.stack([x[:k].sum(0) for k in range(1, 6)])
    for dtype in (torch.int32, torch.int64, torch.float32, torch.float64):
        assert torch.equal(x.to(dtype).cumsum(0), wanted.to(x.to(dtype).cumsum(0).dtype))


@pytest.mark.parametrize("rows, n", [(1, 1), (3, 17), (700, 70), (5000, 16), (40, 3000), (2, 20000)])
@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-4), (torch.float64, 1e-12), (torch.bfloat16, 0.3)])
@pytest.mark.parametrize("transposed", [False, True])
def test_gradients_of_layer_norm_and_rms_norm(rows, n, dtype, tolerance, transposed):
    """A kernel that sums groups of rows separately computes the gradients of layer_norm and rms_norm. With create_graph=True, a formula of operators
    computes them instead. The two results are compared."""
    x = torch.sin(torch.arange(rows * n, dtype=torch.float64)).reshape(*(n, rows) if transposed else (rows, n)).to(dtype)
    x = (x.t() if transposed else x).detach().requires_grad_()
    weight, bias = (torch.cos(torch.arange(n, dtype=torch.float64) * k).to(dtype).requires_grad_() for k in (1, 2))
    for y, leaves in ((torch.nn.functional.layer_norm(x, (n,), weight, bias), [x, weight, bias]), (torch.nn.functional.layer_norm(x, (n,)), [x]),
                      (torch.nn.functional.rms_norm(x, (n,), weight, eps=0.1), [x, weight])):
        grad = (x * 2 + 0.5).detach()
        fast = torch.autograd.grad(y, leaves, grad, retain_graph=True)
        for got, wanted in zip(fast, torch.autograd.grad(y, leaves, grad, create_graph=True), strict=True):
            scale = wanted.abs().max().item() + 1
            assert got.dtype == dtype and (got.double() - wanted.double()).abs().max().item() <= tolerance * scale, (rows, n)
