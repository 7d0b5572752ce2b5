"""Compares with PyTorch the times of elementwise functions, reductions, copies, indexing and sorting of 1e3, 1e5 and 4e6 elements.

Most cases run for four dtypes. Functions of two operands run with both operands contiguous, with the first one transposed, and with the second one
broadcast. An example of a command:

    build/venv/bin/python bench/arrays.py --only 'sum' --threads 2
"""
import functools

from beside import compare

SIDES = {"1e3": (25, 40), "1e5": (250, 400), "4e6": (2000, 2000)}
DTYPES = ("float32", "float64", "int64", "bfloat16")
BINARY = ("add", "mul", "sub", "maximum", "lt", "eq")
ARITHMETIC = ("neg", "abs", "relu", "square")
FLOATING = ("exp", "log", "sqrt", "tanh", "sigmoid", "sin", "cos", "erf", "reciprocal", "log1p")
REDUCED = ("sum", "amax", "prod", "argmax", "any")
SCANNED = ("cumsum", "cumprod")


def operand(torch, shape, dtype):
    return torch.randint(1, 1000, shape) if dtype == "int64" else torch.rand(shape, dtype=getattr(torch, dtype) if dtype != "bfloat16" else torch.float32).to(getattr(torch, dtype))


def layouts(torch, shape, dtype):
    """Returns {layout: (x, y)}, two operands for each layout. For "transposed", x is transposed; for "row" and "column", y is a single row or column
    that is broadcast."""
    x, y = operand(torch, shape, dtype), operand(torch, shape, dtype)
    return {"contiguous": (x, y), "transposed": (operand(torch, shape[::-1], dtype).t(), y), "row": (x, operand(torch, shape[1:], dtype)), "column": (x, operand(torch, (shape[0], 1), dtype))}


def elementwise(torch, pairs, dtype):
    for layout, (x, y) in pairs.items():
        for name in BINARY:
            yield f"{name} {layout}", functools.partial(getattr(torch, name), x, y)
        if layout in ("contiguous", "transposed"):
            for name in ARITHMETIC + (FLOATING if dtype != "int64" else ()):
                yield f"{name} {layout}", functools.partial(getattr(torch, name), x)
            yield f"add_ {layout}", functools.partial(x.clone().add_, 0)
            yield f"where {layout}", functools.partial(torch.where, x > y, x, y)
            yield f"clamp {layout}", functools.partial(torch.clamp, x, 0.25 if dtype != "int64" else 250, 0.75 if dtype != "int64" else 750)


def reductions(torch, pairs, dtype):
    for layout in ("contiguous", "transposed"):
        x = pairs[layout][0]
        for name in REDUCED + (("mean", "var", "norm", "logsumexp") if dtype != "int64" else ()):
            if name not in ("var", "logsumexp"):
                yield f"{name} all {layout}", functools.partial(getattr(torch, name), x)
            for dim in (0, 1):
                yield f"{name} {dim} {layout}", functools.partial(getattr(torch, name), x, dim=dim)
        for name in SCANNED:
            for dim in (0, 1):
                yield f"{name} {dim} {layout}", functools.partial(getattr(torch, name), x, dim)
        if dtype != "int64":
            for dim in (0, 1):
                yield f"softmax {dim} {layout}", functools.partial(torch.softmax, x, dim)


def copies(torch, pairs, dtype):
    x, turned = pairs["contiguous"][0], pairs["transposed"][0]
    yield "clone", x.clone
    yield "contiguous transposed", turned.contiguous
    yield "expand", x[:1].expand(x.shape).contiguous
    yield "cat 0", functools.partial(torch.cat, (x, x), 0)
    yield "cat 1", functools.partial(torch.cat, (x, x), 1)
    yield "flip", functools.partial(torch.flip, x, (1,))
    yield "roll", functools.partial(torch.roll, x, 3, 1)
    yield "repeat", functools.partial(x.repeat, 2, 1)
    for to in DTYPES:
        if to != dtype:
            yield f"to {to}", functools.partial(x.to, getattr(torch, to))


def indexing(torch, pairs, dtype):
    x = pairs["contiguous"][0]
    rows, columns = x.shape
    i, j = torch.randint(rows, (rows,)), torch.randint(columns, (columns,))
    places = torch.randint(columns, x.shape)
    mask = x > x.float().mean().to(x.dtype)
    yield "index_select 0", functools.partial(torch.index_select, x, 0, i)
    yield "index_select 1", functools.partial(torch.index_select, x, 1, j)
    yield "x[i]", functools.partial(x.__getitem__, i)
    yield "x[:, j]", functools.partial(x.__getitem__, (slice(None), j))
    yield "x[mask]", functools.partial(x.__getitem__, mask)
    yield "x[::2, ::2] + 1", lambda: x[::2, ::2] + 1
    yield "gather 1", functools.partial(torch.gather, x, 1, places)
    yield "take", functools.partial(torch.take, x, places)
    yield "scatter 1", functools.partial(torch.scatter, x, 1, places, x)
    yield "scatter_add 1", functools.partial(torch.scatter_add, x, 1, places, x)
    yield "index_add 0", functools.partial(torch.index_add, x, 0, i, x)
    yield "masked_fill", functools.partial(torch.masked_fill, x, mask, 1)
    yield "nonzero", functools.partial(torch.nonzero, mask)
    yield "tril", functools.partial(torch.tril, x)


def sorting(torch, pairs, dtype):
    x = pairs["contiguous"][0]
    line = x.reshape(-1)
    for title, values, dims in (("line", line, (0,)), ("rows", x, (0, 1))):
        for dim in dims:
            yield f"sort {title} {dim}", functools.partial(torch.sort, values, dim)
            yield f"argsort {title} {dim}", functools.partial(torch.argsort, values, dim)
            yield f"topk {title} {dim}", functools.partial(torch.topk, values, min(10, values.shape[dim]), dim)
            yield f"kthvalue {title} {dim}", functools.partial(torch.kthvalue, values, values.shape[dim] // 3, dim)
            yield f"median {title} {dim}", functools.partial(torch.median, values, dim)
    if dtype != "bfloat16":
        yield "unique", functools.partial(torch.unique, line)
        yield "searchsorted", functools.partial(torch.searchsorted, torch.sort(x[0])[0], x)
    if dtype == "int64":
        yield "bincount", functools.partial(torch.bincount, line)


def cases(torch, layout):
    found = {}
    for size, shape in SIDES.items():
        for dtype in DTYPES:
            pairs = layouts(torch, shape, dtype)
            for family in (elementwise, reductions, copies, indexing, sorting):
                found |= {f"{size} {dtype} {name}": call for name, call in family(torch, pairs, dtype)}
    return found


if __name__ == "__main__":
    compare(cases, __doc__)
