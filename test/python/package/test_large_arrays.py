"""Compares operators on arrays of several megabytes, and on operands that are transposed while they are read, with NumPy. Also checks that results
have the same bits with any number of threads."""
import numpy as np
import pytest

import gradus as torch

# Arrays of 8 to 20 MB. Rows of 1501 and of 800001 elements are no multiples of a SIMD vector or a cache line.
SHAPES = [(1500, 1501), (3, 800001), (1030, 2048)]
DTYPES = ["float32", "float64", "int64"]


def operands(shape, dtype):
    random = np.random.default_rng(0)
    x, y = (random.integers(-99, 99, shape).astype(dtype) for _ in range(2))
    return x, y, random.integers(-99, 99, shape[::-1]).astype(dtype).T


def on_threads(compute):
    """Returns the result of compute(), after checking that one, two and three threads give the same bits."""
    before, results = torch.get_num_threads(), []
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            results.append(compute().numpy())
    finally:
        torch.set_num_threads(before)
    assert all(np.array_equal(results[0], other, equal_nan=True) for other in results[1:])
    return results[0]


CASES = {
    "add": lambda x, y, z: x + y,
    "number": lambda x, y, z: x * 3,
    "row": lambda x, y, z: x - y[:1],
    "column": lambda x, y, z: x - y[:, :1],
    "transposed": lambda x, y, z: x - z,
    "transposed first": lambda x, y, z: z - x,
    "both transposed": lambda x, y, z: z * z,
    "transposed with a column": lambda x, y, z: z - y[:, :1],
    "transposed, compared": lambda x, y, z: x < z,
    "every other column": lambda x, y, z: x[:, ::2] + z[:, ::2],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_elementwise_operators_on_large_arrays(name, dtype, shape):
    x, y, z = operands(shape, dtype)
    given = torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(z.T).t()
    assert np.array_equal(on_threads(lambda: CASES[name](*given)), CASES[name](x, y, z))


SHORT = {
    "row": lambda x, y, z: x - y[:1],
    "column": lambda x, y, z: y[:, :1] - x,
    "parts of rows": lambda x, y, z: x[:, 1:] - y[:, :-1],
    "backwards": lambda x, y, z: x[::-1, ::-1] - y,
    "transposed": lambda x, y, z: z - x[:, ::-1],
    "two dimensions": lambda x, y, z: x.reshape(5, 300, -1) - y[:300],
    "other dtype": lambda x, y, z: x[:, 1:] - (z[:, :-1] > 0) * 2,
    "compared": lambda x, y, z: x[:, 1:] < z[:, :-1],
}


@pytest.mark.parametrize("columns", [2, 3, 8, 31, 32, 100, 128])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bfloat16"])
def test_elementwise_operators_on_short_rows(dtype, columns):
    """Checks elementwise operators on short rows in several layouts. Results are new tensors, or are written to slices of rows with out=."""
    x, y, z = (v // 3 for v in operands((1500, columns), "float32"))
    given = [torch.from_numpy(v).to(getattr(torch, dtype)) for v in (x, y, z)]
    assert not given[2].is_contiguous()
    for name, compute in SHORT.items():
        wanted = compute(x, y, z)
        assert np.array_equal(on_threads(lambda: compute(*given).to(torch.float32)), wanted), name
        wide = torch.full((*wanted.shape[:-1], wanted.shape[-1] + 2), 7, dtype=given[0].dtype)
        part = wide[..., 1:-1]
        part.copy_(compute(*given)).add_(part.clone()).sub_(given[1][:1, :1])
        assert np.array_equal(part.to(torch.float32).numpy(), wanted * 2.0 - y[0, 0]), name
        assert bool((wide[..., 0] == 7).all()) and bool((wide[..., -1] == 7).all()), name


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32", "bool"])
def test_where_with_transposed_operands_in_other_dtypes(dtype):
    x, y, z = operands((1500, 1501), "float32")
    given = [torch.from_numpy(v.copy()).to(getattr(torch, dtype)) for v in (x, z.T)]
    expected = [v.to(torch.float64).numpy() for v in given]
    found = on_threads(lambda: torch.where(given[0] > given[1].t(), given[0], given[1].t()).to(torch.float64))
    assert np.array_equal(found, np.where(expected[0] > expected[1].T, expected[0], expected[1].T))


LIGHT = {
    **{name: getattr(torch, name) for name in ("add", "sub", "mul", "div", "maximum", "minimum")},
    "neg": lambda x, y, out: torch.neg(x, out=out), "abs": lambda x, y, out: torch.abs(x, out=out), "square": lambda x, y, out: torch.square(x, out=out),
    "relu": lambda x, y, out: out.copy_(x).relu_(), "clamp": lambda x, y, out: torch.clamp(x, -y.abs(), y.abs(), out=out),
    "number": lambda x, y, out: torch.mul(x, 3, out=out), "number first": lambda x, y, out: torch.sub(3, x, out=out),
    "in place": lambda x, y, out: out.copy_(x).sub_(y), "into itself": lambda x, y, out: torch.sub(x, out.copy_(y), out=out),
    "of one element": lambda x, y, out: torch.neg(x[:1].expand(len(x)), out=out),
}
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint64"]


@pytest.mark.parametrize("megabytes", [0.01, 2, 13])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", *INTEGERS])
@pytest.mark.parametrize("name", LIGHT)
def test_streaming_stores_of_large_results(name, dtype, megabytes):
    """A large result has the same bits as when it is computed in parts of 20,000 elements. `out` does not begin at a cache line, and the memory
    around it is not written."""
    if name in ("neg", "abs", "relu", "clamp", "sub", "number first") and dtype.startswith("u") or name == "div" and dtype in INTEGERS:
        pytest.skip("not what these dtypes have")
    kind = getattr(torch, dtype)
    n = int(megabytes * 1e6) // kind.itemsize + 5
    x, y = (torch.randint(least, 50, (n + 7,)).to(kind)[3:n + 3] for least in (-50, 1))
    around = torch.full((n + 70,), 77).to(kind)
    at = 33 if megabytes == 2 else 1
    LIGHT[name](x, y, out=around[at:at + n])
    parts = torch.empty_like(x)
    for begin in range(0, n, 20000):
        LIGHT[name](x[begin:begin + 20000] if name != "of one element" else x[:20000][:n - begin], y[begin:begin + 20000], out=parts[begin:begin + 20000])
    assert torch.equal(around[at:at + n], parts)
    assert (around[:at] == 77).all() and (around[at + n:] == 77).all()


COPIES = {
    "clone": (lambda torch, x: x.clone(), lambda x: x),
    "columns reversed": (lambda torch, x: x.flip(1), lambda x: x[:, ::-1]),
    "rows reversed": (lambda torch, x: x.flip(0), lambda x: x[::-1]),
    "rolled": (lambda torch, x: x.roll(3, 1), lambda x: np.roll(x, 3, 1)),
    "beside itself": (lambda torch, x: torch.cat((x, x), 1), lambda x: np.concatenate((x, x), 1)),
    "one row": (lambda torch, x: x[:1].expand(x.shape).contiguous(), lambda x: np.broadcast_to(x[:1], x.shape)),
    "one column": (lambda torch, x: x[:, :1].expand(x.shape).contiguous(), lambda x: np.broadcast_to(x[:, :1], x.shape)),
    "to float64": (lambda torch, x: x.to(torch.float64), lambda x: x.astype("float64")),
    "to float16 and back": (lambda torch, x: x.to(torch.float16).to(torch.float32), lambda x: x.astype("float32")),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [*DTYPES, "int16", "int8"])
@pytest.mark.parametrize("name", COPIES)
def test_copies_of_large_arrays(name, dtype, shape):
    x = operands(shape, dtype)[0]
    given, (ours, numpys) = torch.from_numpy(x), COPIES[name]
    assert np.array_equal(on_threads(lambda: ours(torch, given)), numpys(x))


@pytest.mark.parametrize("megabytes", [0.2, 3, 17])
@pytest.mark.parametrize("start, end", [(0, 0), (1, 62), (62, 1), (3, 3)])
def test_copies_between_unaligned_blocks(start, end, megabytes):
    x = np.random.default_rng(0).integers(0, 100, int(megabytes * 1e6) + 70).astype("uint8")
    n = len(x) - start - end
    expected = np.full(len(x), 200, "uint8")
    expected[end:end + n] = x[start:start + n]

    def copied():
        around = torch.full((len(x),), 200, dtype=torch.uint8)
        around[end:end + n].copy_(torch.from_numpy(x)[start:start + n])
        return around

    assert np.array_equal(on_threads(copied), expected)


def test_columns_copied_within_a_tensor():
    x = np.arange(4_000_000.0).reshape(1000, 4000)
    given = torch.from_numpy(x.copy())
    given[:, :2000].copy_(given[:, 2000:])
    x[:, :2000] = x[:, 2000:]
    assert np.array_equal(given.numpy(), x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
@pytest.mark.parametrize("n", [15, 16, 17, 63, 64, 65, 255, 256, 257, 319, 1000, 8191, 8192, 8200])
def test_amax_and_amin_with_the_extreme_at_any_position(n, dtype):
    x = np.random.default_rng(n).integers(10, 90, (7, n)).astype(dtype)
    for i, column in enumerate({0, 1, n // 3, n // 2, n - 9, n - 2, n - 1}):
        x[i % 7, column] = 99 - i
        x[(i + 3) % 7, column] = i
    given = torch.from_numpy(x)
    for ours, theirs in ((torch.amax, np.max), (torch.amin, np.min)):
        assert np.array_equal(ours(given, 1).numpy(), theirs(x, 1))
        assert np.array_equal(ours(given.t().contiguous(), 0).numpy(), theirs(x, 1))
    if dtype.startswith("float"):
        for column in (0, n // 2, n - 1):
            y = x.copy()
            y[2, column] = np.nan
            assert np.array_equal(torch.amax(torch.from_numpy(y), 1).numpy(), np.max(y, 1), equal_nan=True)
            assert np.array_equal(torch.amin(torch.from_numpy(y), 1).numpy(), np.min(y, 1), equal_nan=True)


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 16, 63, 250])
def test_sums_over_the_first_dimension(rows):
    x = np.random.default_rng(rows).standard_normal((rows, 300)).astype("float32")
    assert np.abs(torch.from_numpy(x).sum(0).numpy() - x.sum(0, dtype="float64")).max() <= 2e-6 * np.abs(x).sum(0).max()


@pytest.mark.parametrize("m, n, k", [(128, 128, 128), (200, 64, 100), (16, 1024, 700), (9, 513, 1024), (64, 1025, 80)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_matrix_products_do_not_depend_on_the_number_of_threads(dtype, m, n, k):
    random = np.random.default_rng(0)
    a, b = random.integers(-9, 9, (m, k)).astype(dtype), random.integers(-9, 9, (k, n)).astype(dtype)
    assert np.array_equal(on_threads(lambda: torch.from_numpy(a) @ torch.from_numpy(b)), a @ b)


WIDTHS = [1, 15, 31, 64, 65, 255, 256, 257, 300, 511, 1100, 16384, 16385]  # elements in a row; short and long rows are copied differently


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "complex128"])
def test_cat_flip_and_roll_of_rows_of_any_width(dtype):
    for width in WIDTHS:
        x = np.random.default_rng(width).integers(-99, 99, (5, width)).astype(dtype)
        given = torch.from_numpy(x)
        assert np.array_equal(torch.cat((given, given[:, :1].clone(), given), 1).numpy(), np.concatenate((x, x[:, :1], x), 1))
        assert np.array_equal(given.flip(1).numpy(), x[:, ::-1])
        for shift in (1, -2, width + 3):
            assert np.array_equal(given.roll(shift, 1).numpy(), np.roll(x, shift, 1))
        assert np.array_equal(given.roll((2, 1), (0, 1)).numpy(), np.roll(x, (2, 1), (0, 1)))
        assert np.array_equal(given[1:2].expand(5, width).contiguous().numpy(), np.broadcast_to(x[1:2], x.shape))
        assert np.array_equal(given[:, 1:].clone().numpy(), x[:, 1:])


@pytest.mark.parametrize("dim", [0, 1, 2, 3])
def test_cat_of_images_whose_dimensions_of_size_1_have_any_stride(dim):
    x = torch.arange(7 * 5.0).reshape(7, 1, 5, 1).permute(0, 3, 1, 2)
    assert x.stride() == (5, 1, 5, 1) and x.is_contiguous()
    assert torch.cat([x], dim).equal(x) and torch.cat([x, torch.zeros(0)], dim).equal(x)
    assert np.array_equal(torch.cat([x, x + 1], dim).numpy(), np.concatenate([x.numpy(), x.numpy() + 1], dim))


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_cat_of_50_tensors(dim):
    """50 tensors are more than cat writes at a time. Some of them are empty, transposed, or of another dtype."""
    random, parts = np.random.default_rng(0), []
    for k in range(50):
        shape = [3, 4, 5]
        shape[dim] = k % 7
        x = random.integers(-99, 99, shape).astype("int32" if k % 11 == 10 else "float32")
        parts.append(np.asfortranarray(x) if k % 9 == 8 else x)
    found = torch.cat([torch.zeros(0), *map(torch.from_numpy, parts)], dim)
    assert found.dtype == torch.float32 and np.array_equal(found.numpy(), np.concatenate(parts, dim))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64", "complex128"])
def test_cat_and_roll_of_short_rows(dtype):
    """cat writes short rows in blocks of several rows, one source tensor after the other. Most results here consist of several blocks."""
    random = np.random.default_rng(0)
    for widths in [(1, 1), (1, 2, 3), (4, 1, 5, 2), (1,) * 20, (3, 40)]:
        parts = [random.integers(0, 100, (2, 1203, width)).astype(dtype) for width in widths]
        joined = on_threads(lambda parts=parts: torch.cat([torch.from_numpy(part) for part in parts], dim=-1))
        assert np.array_equal(joined, np.concatenate(parts, axis=-1))
        rolled = on_threads(lambda joined=joined: torch.roll(torch.from_numpy(joined), 1, -1))
        assert np.array_equal(rolled, np.roll(joined, 1, -1))
        strided = on_threads(lambda joined=joined: torch.from_numpy(joined)[:, ::2, :3].contiguous())
        assert np.array_equal(strided, joined[:, ::2, :3])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bfloat16", "float16"])
@pytest.mark.parametrize("dim", [0, 1])
def test_sums_of_index_add_follow_the_order_of_the_index(dtype, dim):
    """index_add adds source rows with equal indices in the order in which they appear. Some rows are indexed many times and some never. Sums of
    16-bit floats are rounded once."""
    random = np.random.default_rng(0)
    shape, count = (3, 40, 1500) if dim == 1 else (40, 1500), 90
    wide = "float32" if "float" in dtype else dtype
    if dtype == "float64":
        wide = dtype
    self, index = random.standard_normal(shape) * 99, random.integers(0, 25, count)
    source = random.standard_normal(shape[:dim] + (count,) + shape[dim + 1:]) * 99
    x, y = (torch.from_numpy(a.astype(wide)).to(getattr(torch, dtype)) for a in (self, source))
    expected = x.to(getattr(torch, wide)).numpy().copy()
    for k, row in enumerate(index):
        expected[(slice(None),) * dim + (row,)] += y.to(getattr(torch, wide)).numpy()[(slice(None),) * dim + (k,)]
    rounded = torch.from_numpy(expected).to(getattr(torch, dtype)).to(getattr(torch, wide)).numpy()
    i = torch.from_numpy(index)
    assert np.array_equal(on_threads(lambda: torch.index_add(x, dim, i, y).to(getattr(torch, wide))), rounded)
    out = torch.empty_like(x)
    assert torch.equal(torch.index_add(x, dim, i, y, out=out), x.clone().index_add_(dim, i, y))
    assert np.array_equal(out.to(getattr(torch, wide)).numpy(), rounded)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64", "complex128"])
def test_reductions_of_short_rows(dtype):
    """Contiguous short rows are reduced many at a time. The remaining rows, and rows with gaps, are reduced one by one."""
    random, wide = np.random.default_rng(0), {"float32": "float64", "complex64": "complex128"}.get(dtype, dtype)
    for rows, columns in [(100_003, 3), (70_000, 1), (5000, 2), (300, 7), (64, 2), (63, 15), (9000, 16)]:
        x = random.integers(-99, 99, (2, rows, columns)).astype(dtype)
        if dtype.startswith("complex"):
            x = x + 1j * random.integers(-99, 99, x.shape).astype(dtype)
        for reduced in [(0, 1), (1,), (0,), (0, 1, 2), (2,)]:
            for t, a in [(torch.from_numpy(x), x), (torch.from_numpy(x)[:, ::2], x[:, ::2]), (torch.from_numpy(x)[:, 1:, 1:], x[:, 1:, 1:])]:
                if a.size:
                    assert np.array_equal(on_threads(lambda t=t, reduced=reduced: t.sum(reduced)), a.sum(reduced, dtype=wide).astype(dtype))
    x = random.integers(-99, 99, (2, 5000, 3)).astype(wide)
    means, deviations = torch.from_numpy(x.astype("complex64" if wide[0] == "c" else "float64")).mean((0, 1)), torch.from_numpy(x.real.astype("float64")).var((0, 1))
    assert np.allclose(means.numpy(), x.mean((0, 1)), rtol=1e-6)
    assert np.allclose(deviations.numpy(), x.real.reshape(-1, 3).var(0, ddof=1), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 5, 7, 331), (40, 3, 1003), (5, 9001), (70001,)])
def test_gather_scatter_and_index_functions_along_each_dimension(shape, dtype):
    """The functions read and write along every dimension, with short and long index lists. Rows have odd lengths, so most of them begin at addresses
    that are not multiples of the size of a SIMD vector."""
    random = np.random.default_rng(0)
    x, values = (random.integers(0, 99, shape).astype(dtype) for _ in range(2))
    given, put = torch.from_numpy(x), torch.from_numpy(values)
    for dim, size in enumerate(shape):
        for count in {1, 2, 3, 5, size}:
            if count > size:
                continue
            listed = random.permutation(size)[:count]
            places = np.stack([random.permutation(size)[:count] for _ in range(x.size // size)], -1)
            places = np.moveaxis(places.reshape(count, *np.delete(shape, dim)), 0, dim)
            part = np.ascontiguousarray(values.take(range(count), dim))
            written, expected = x.copy(), x.copy()
            np.put_along_axis(written, places, part, dim)
            np.moveaxis(expected, dim, 0)[listed] = np.moveaxis(part, dim, 0)
            at, along = torch.from_numpy(listed), torch.from_numpy(places.copy())
            assert np.array_equal(on_threads(lambda: given.index_select(dim, at)), x.take(listed, dim))
            assert np.array_equal(on_threads(lambda: given.gather(dim, along)), np.take_along_axis(x, places, dim))
            assert np.array_equal(on_threads(lambda: given.scatter(dim, along, put)), written)
            assert np.array_equal(on_threads(lambda: given.index_copy(dim, at, torch.from_numpy(part))), expected)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex128"])
def test_rows_selected_by_several_index_tensors(dtype):
    """Tests indexing with one index tensor or with two together. An index selects parts of x that have one or more dimensions, contiguous or not."""
    random = np.random.default_rng(0)
    x = random.integers(0, 99, (9, 30, 40, 50)).astype(dtype)
    i, j, k = (random.integers(0, n, (7, 11)) for n in (9, 30, 40))
    given = torch.from_numpy(x)
    for read in (lambda x, i, j, k: x[i], lambda x, i, j, k: x[:, j], lambda x, i, j, k: x[:, :, k], lambda x, i, j, k: x[i, j], lambda x, i, j, k: x[:, j, k],
                 lambda x, i, j, k: x[i, :, k], lambda x, i, j, k: x[i, ..., 1:], lambda x, i, j, k: x[:, j, ::2], lambda x, i, j, k: x[:, j[:1, :1]]):
        assert np.array_equal(on_threads(lambda: read(given, *map(torch.from_numpy, (i, j, k)))), read(x, i, j, k))
    turned = np.ascontiguousarray(x.transpose(1, 0, 2, 3))
    assert np.array_equal(on_threads(lambda: torch.from_numpy(turned).transpose(0, 1)[:, torch.from_numpy(j)]), x[:, j])


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
def test_scatter_keeps_the_last_of_several_values(dtype):
    random = np.random.default_rng(0)
    index, values = random.integers(0, 50, (30, 1001)), random.integers(0, 99, (30, 1001)).astype(dtype)
    expected = np.zeros((30, 50), dtype)
    for row in range(30):
        for at, value in zip(index[row], values[row]):
            expected[row, at] = value
    start = torch.zeros(30, 50, dtype=getattr(torch, dtype))
    assert np.array_equal(on_threads(lambda: start.scatter(1, torch.from_numpy(index), torch.from_numpy(values))), expected)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128"])
def test_scatter_add_adds_in_the_order_of_the_index(dtype):
    random = np.random.default_rng(0)
    index, values = random.integers(0, 50, (30, 1003)), (random.standard_normal((30, 1003)) * 99).astype(dtype)
    expected = np.zeros((30, 50), dtype)
    for row in range(30):
        np.add.at(expected[row], index[row], values[row])
    start, i, source = torch.zeros(30, 50, dtype=getattr(torch, dtype)), torch.from_numpy(index), torch.from_numpy(values)
    assert np.array_equal(on_threads(lambda: start.scatter_add(1, i, source)), expected)
    apart = torch.zeros(30, 100, dtype=start.dtype)[:, ::2]
    assert np.array_equal(apart.scatter_add_(1, i, source).numpy(), expected)
    assert np.array_equal(on_threads(lambda: start.t().contiguous().scatter_add(0, i.t(), source.t())), expected.T)
    assert np.array_equal(torch.bincount(i[0]).numpy(), np.bincount(index[0]))
