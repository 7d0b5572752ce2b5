"""Compares sorting, selection, search and counting with PyTorch, for lengths and strides that reach each algorithm: insertion, radix sort, heaps,
interleaved searches."""
import math
import random

import gradus
import numpy as np
import pytest
from both import same

SIZES = [(0,), (1,), (16,), (17,), (700,), (40000,), (3, 50), (50, 3), (20, 30, 2)]
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]


def numbers(torch, dtype, sizes, seed):
    """Returns random numbers with many duplicates. For floating dtypes some are NaN, -inf or -0."""
    pick, n = random.Random(seed), 1
    for size in sizes:
        n *= size
    values = [pick.randrange(100) for _ in range(n)]
    if "float" in dtype:
        values = [pick.choice([v - 50, v / 8, float("nan"), float("-inf"), -0.0]) for v in values]
    return torch.tensor(values, dtype=torch.float64).to(getattr(torch, dtype)).reshape(sizes)


def described(tensor):
    """Returns (texts of the elements, sizes, dtype name) of a tensor. The elements are texts because NaN != NaN."""
    return [str(v) for v in tensor.reshape(-1).tolist()], list(tensor.shape), str(tensor.dtype).split(".")[-1]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sort_topk_and_running_extremes_agree_with_pytorch(dtype, sizes):
    def program(torch):
        x, results = numbers(torch, dtype, sizes, f"{dtype} {sizes}"), []
        for dim in range(x.ndim):
            n = x.shape[dim]
            for y in (x, x.flip(0)):
                results += [*torch.sort(y, dim), *torch.sort(y, dim=dim, descending=True, stable=True), *torch.cummax(y, dim), *torch.cummin(y, dim)]
                if n and dtype != "bool":
                    results += [*torch.topk(y, (n + 2) // 3, dim), *torch.topk(y, min(n, 2), dim, largest=False)]
                    results += [*torch.kthvalue(y, (n + 1) // 2, dim), *torch.median(y, dim, keepdim=True)]
        return [described(r) for r in results]

    same(program)


def views(x):
    """Returns a matrix, and views of it with other strides."""
    return x, x.t(), x[:, ::2], x[::3].t()


@pytest.mark.parametrize("dtype", DTYPES)
def test_sorting_strided_rows(dtype):
    """Rows whose elements are not adjacent are copied to a buffer, several rows at a time, before they are sorted. The matrices are larger than the
    buffer and no multiple of its size."""
    def program(torch):
        results = []
        for y in views(numbers(torch, dtype, (230, 70), f"apart {dtype}")):
            for dim in (0, 1):
                results += [*torch.sort(y, dim), *torch.sort(y, dim=dim, descending=True, stable=True)]
                if dtype != "bool":
                    results += [*torch.topk(y, 3, dim), *torch.topk(y, 1, dim, largest=False), *torch.kthvalue(y, 30, dim), *torch.median(y, dim), *torch.kthvalue(y, 1, dim, keepdim=True)]
                if "float" not in dtype:
                    results += [torch.cumsum(y, dim), torch.cumprod(y, dim)]
        return [described(r) for r in results]

    same(program)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
@pytest.mark.parametrize("n", [1, 2, 50, 191, 192, 3000, 70000])
def test_sort_and_kthvalue_of_distinct_elements(dtype, n):
    """The elements are distinct, so each call has only one correct result. One test tensor has a small range of elements, the other a large one."""
    def program(torch):
        results, pick = [], random.Random(f"{dtype} {n}")
        for most in (n, 1 << 31) if "int" in dtype else (n, 1 << 23):
            line = torch.tensor(pick.sample(range(-most, most), n), dtype=torch.float64)
            x = (line / 8 if "float" in dtype else line).to(getattr(torch, dtype))
            results += [*torch.median(x, 0), *torch.sort(x), *torch.topk(x, min(n, 7)), torch.unique(x)]
            for k in {1, (n + 2) // 3, n}:
                results += torch.kthvalue(x, k, 0)
        return [described(r) for r in results]

    same(program)


@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize("n", [60, 400, 5000])
def test_sorting_keys_that_agree_in_their_highest_bits(dtype, n):
    """Sorts numbers between 2^40 and 2^52 together with -most and most. If most is 2^60, these two make the range of the keys so large that many of
    the other keys agree in their highest bits."""
    def program(torch):
        results, pick = [], random.Random(f"alike {n}")
        for most in (1 << 40, 1 << 60):
            numbers = [pick.randrange(1 << 40, 1 << 52) for _ in range(n - 20)]
            numbers += [number + 1 for number in numbers[:15]] + [numbers[20] + 2, numbers[20] + 1, -most, most, 3]
            x = torch.tensor(pick.sample(numbers, n), dtype=getattr(torch, dtype))
            for y in (x, torch.cat((x, x[:1])), torch.stack((x, x.flip(0)), 1)):
                results += [*torch.sort(y, 0), *torch.sort(y, dim=0, descending=True), *torch.sort(y, dim=0, stable=True)]
        return [described(r) for r in results]

    same(program)


def test_cumsum_over_strided_rows():
    def program(torch):
        x = torch.arange(230 * 70, dtype=torch.float64).reshape(230, 70) % 97
        return [described(torch.cumsum(y.to(getattr(torch, dtype)), dim)) for dtype in ("float32", "float64") for y in views(x) for dim in (0, 1)]

    same(program)


@pytest.mark.parametrize("often", [2, 50, 3000])
def test_masked_select_and_nonzero(often):
    """About one element in `often` of each mask is true. The test reads and writes the elements that the masks select."""
    def program(torch):
        results = []
        for sizes in ((4001,), (70, 61), (9, 20, 30), (130, 1)):
            x = numbers(torch, "int64", sizes, f"{sizes}")
            mask = (torch.arange(x.numel()) * 7919 % often == 1).reshape(sizes)
            results += [x[mask], torch.masked_select(x, mask), torch.nonzero(mask), *torch.nonzero(mask, as_tuple=True), x[..., ::2][mask[..., ::2]], x.to(torch.uint8)[mask], x.double()[mask]]
            if x.ndim > 1:
                results += [x[mask.any(-1)], x[:, mask.any(0)], x.transpose(0, 1)[mask.transpose(0, 1)], x.flip(0)[mask]]
            for y in (x.clone(), x.transpose(0, -1).clone().transpose(0, -1), torch.stack((x, x), -1)[..., 0]):
                y[mask] = -1
                results.append(y)
                y[mask] = torch.arange(int(mask.sum()))
                results.append(y)
        return [described(r) for r in results]

    same(program)


@pytest.mark.parametrize("dtype", DTYPES[:-1])
def test_isin_and_searchsorted(dtype):
    def program(torch):
        results = []
        for n in (0, 1, 16, 17, 64, 65, 3000):
            wanted, among = numbers(torch, dtype, (5, 1001), f"wanted {dtype}"), numbers(torch, dtype, (n,), f"among {n}")
            results += [torch.isin(wanted, among), torch.isin(wanted.t(), among, invert=True)]
            line = torch.sort(among[among == among]).values
            results += [torch.searchsorted(line, wanted), torch.searchsorted(line, wanted, right=True, out_int32=True)]
            rows = torch.sort(torch.nan_to_num(wanted) if "float" in dtype else wanted).values
            results += [torch.searchsorted(rows, wanted[:, :n % 10], right=True)]
        return [described(r) for r in results]

    same(program)


def test_unique_with_inverse_and_counts():
    def program(torch):
        results = []
        for dtype in ("int64", "uint8", "float32"):
            for n in (0, 1, 5000):
                x = numbers(torch, "int64", (n,), f"{dtype} {n}").to(getattr(torch, dtype))
                results += torch.unique(x, return_inverse=True, return_counts=True)
                results += [torch.unique(x), *torch.unique(x * (-1 if dtype == "float32" else 1), return_counts=True)]
                results += torch.unique_consecutive(x, return_inverse=True, return_counts=True)
                results += [torch.nonzero(x), torch.bincount(x.to(torch.int64), minlength=7)]
        return [described(r) for r in results]

    same(program)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_unique_of_complex_numbers(dtype):
    """Complex numbers are ordered by the real part, then by the imaginary part, as in NumPy. Each NaN is distinct, and zeros of both signs are
    equal."""
    parts = numbers(gradus, "int64", (2, 60), f"distinct {dtype}") % 3
    x = gradus.complex(*parts.to(gradus.float64)).to(getattr(gradus, dtype))
    values, places, counts = np.unique(x.numpy(), return_inverse=True, return_counts=True)
    made = gradus.unique(x.reshape(6, 10), return_inverse=True, return_counts=True)
    assert made[0].dtype == x.dtype and made[0].tolist() == values.tolist() and made[1].tolist() == places.reshape(6, 10).tolist() and made[2].tolist() == counts.tolist()
    rows = x[:40].reshape(20, 2) * (1 - 1j)
    assert gradus.unique(rows[gradus.arange(60) % 20], dim=0).tolist() == np.unique(rows.numpy(), axis=0).tolist()
    repeated = gradus.repeat_interleave(x, gradus.arange(60))
    runs, of, lengths = gradus.unique_consecutive(repeated, return_inverse=True, return_counts=True)
    assert runs[of].tolist() == repeated.tolist() and int(lengths.sum()) == repeated.numel() and bool((runs[1:] != runs[:-1]).all())
    nan = gradus.tensor([complex(0.0, -0.0), complex(math.nan, 1), complex(-0.0, 0.0), complex(math.nan, 1), complex(1, math.nan)], dtype=x.dtype)
    assert gradus.unique(nan, return_counts=True)[1].tolist() == [2, 1, 1, 1] and gradus.unique(nan[:0]).shape == (0,) and gradus.unique(nan[0]).tolist() == [0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint64", "int16"])
@pytest.mark.parametrize("n", [0, 1, 2, 49, 1000, 5000, 70000])
def test_unique_of_keys_of_any_distribution(dtype, n):
    """Sorting by the highest bits first must also work if the keys differ only in their lowest bits, or are equal."""
    random = np.random.default_rng(n)
    if dtype.startswith("float"):
        spread = [random.standard_normal(n), 1 + random.standard_normal(n) * 1e-9, np.round(random.standard_normal(n)), random.standard_normal(n) * 10.0 ** random.integers(-30, 30, n)]
    else:
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        spread = [random.integers(least, most, n, dtype=dtype, endpoint=True), random.integers(0, 9, n), np.where(random.random(n) < 0.01, most, random.integers(0, 99, n).astype(dtype)), np.arange(n)]
    for values in spread:
        values = values.astype(dtype)
        assert np.array_equal(gradus.unique(gradus.from_numpy(values)).numpy(), np.unique(values))
