"""Makes random indices for Gradus, PyTorch and NumPy. An index is first made as a list of parts. For example, x[0, :, [1, 2]] has three parts: 0, a
slice and a list. The parts are then converted for each library."""
import math

import numpy as np

import gradus
from oracle import torch


class ElementIndex:
    """A list of integers or a bool mask as one part of an index, e.g. [1, 2] in x[0, [1, 2]]. `array` holds the integers or bools. `form` says
    whether the index passes them as a list, a tensor, ..."""

    def __init__(self, array, form):
        self.array = array
        self.form = form

    def for_gradus(self):
        if self.form == "list":
            return self.array.tolist()
        if self.form == "numpy":
            return self.array
        return gradus.tensor(self.array)

    def for_torch(self):
        return torch.from_numpy(self.array.copy())

    def __repr__(self):
        return f"{self.form}({self.array.tolist()}, {self.array.dtype})"


def random_shape(rng):
    return tuple(0 if rng.random() < 0.03 else rng.randint(1, 5) for _ in range(rng.randrange(5)))


def random_slice(rng, size, steps):
    bounds = [None, *range(-size - 2, size + 3)]
    return slice(rng.choice(bounds), rng.choice(bounds), rng.choice(steps))


def random_mask(rng, sizes):
    span = rng.randint(1, len(sizes))
    return np.array([rng.random() < 0.5 for _ in range(math.prod(sizes[:span]))], dtype=bool).reshape(sizes[:span])


def random_numbers(rng, size, shape):
    """Returns an array of random indices from -size to size - 1, whose shape broadcasts with `shape`."""
    shape = tuple(1 if rng.random() < 0.1 else n for n in shape[rng.randrange(len(shape)):])
    numbers = np.array([rng.randrange(-size, size) for _ in range(math.prod(shape))], dtype=np.int64).reshape(shape)
    return numbers.astype(np.int32) if rng.random() < 0.2 else numbers


class IndexMaker:
    """Makes the parts of one index (integers, slices, arrays, ...). The arrays among them broadcast with each other."""

    def __init__(self, rng, steps, names):
        self.rng = rng
        self.steps = steps
        self.names = names
        self.shape = rng.choice([(2,), (3,), (2, 3), (1,), (3, 1)])

    def part(self, sizes):
        """Returns (part, n). `part` is a random part of an index (an integer, a slice, None, an array, ...). It indexes the first n dimensions of an
        array of shape `sizes`. n is 0 for None and True, and may be more than 1 for masks."""
        rng, kind = self.rng, self.rng.random()
        if kind < 0.25 and sizes[0] > 0:
            number = rng.randrange(-sizes[0], sizes[0])
            return rng.choice([number, np.int64(number), gradus.tensor(number)]), 1
        if kind < 0.35:
            return None, 0
        if kind < 0.38 and self.names:
            return True, 0
        if kind < 0.5 and self.names:
            mask = random_mask(rng, sizes)
            count = int(mask.sum())
            if self.shape == (1,) or self.shape == (count,) or count == 1:
                self.shape = self.shape if count == 1 else (count,)
                return ElementIndex(mask, rng.choice(["list", "numpy", "tensor"] if mask.size else ["numpy", "tensor"])), mask.ndim
        if kind < 0.75 and self.names and sizes[0] > 0:
            numbers = random_numbers(rng, sizes[0], self.shape)
            return ElementIndex(numbers, rng.choice(["list", "numpy", "tensor"] if numbers.dtype == np.int64 else ["numpy", "tensor"])), 1
        return random_slice(rng, sizes[0], self.steps), 1

    def cover(self, sizes):
        """Returns random parts of an index (integers, slices, arrays, ...) that together index exactly the dimensions whose sizes are `sizes`."""
        parts = []
        while sizes:
            part, span = self.part(sizes)
            parts.append(part)
            sizes = sizes[span:]
        return parts


def random_index(rng, shape, steps=(None, 1, 2, 3, -1, -2), names=True):
    """Returns a random index for a tensor of the shape `shape`, as a list of its parts (integers, slices, Ellipsis, arrays, ...)."""
    maker = IndexMaker(rng, steps, names)
    end = rng.randint(0, len(shape))
    parts = maker.cover(shape[:end])
    if rng.random() < 0.3:
        parts += [Ellipsis, *maker.cover(shape[rng.randint(end, len(shape)):])]
    return parts


def as_index(parts, convert):
    index = tuple(convert(part) if isinstance(part, ElementIndex) else part for part in parts)
    return index[0] if len(index) == 1 else index


def for_gradus(parts):
    return as_index(parts, ElementIndex.for_gradus)


def for_torch(parts):
    """Returns the index for PyTorch, in which Gradus tensors are replaced by ints, because PyTorch does not know them."""
    return as_index([int(part) if isinstance(part, gradus.Tensor) else part for part in parts], ElementIndex.for_torch)


def in_two_steps(array, parts):
    """Returns NumPy indices (first, second) for which array[first][second] is the result of the index `parts`. `first` has the slices, integers and
    None and makes a view. `second` has the arrays, with full slices between them."""
    views, places, dim = [], [], 0
    spans = [span_of(part) for part in parts]
    for i, part in enumerate(parts):
        if part is Ellipsis:
            rest = array.ndim - sum(spans)
            views.append(Ellipsis)
            dim += rest
        elif part is True:
            views.append(None)
            places.append((dim, np.array([0])))
            dim += 1
        elif isinstance(part, ElementIndex):
            views += [slice(None)] * spans[i]
            places.append((dim, part.array))
            dim += spans[i]
        else:
            views.append(int(part) if isinstance(part, gradus.Tensor) else part)
            dim += part is None or isinstance(part, slice)
    names, at = [], 0
    for dim, named in places:
        names += [slice(None)] * (dim - at) + [named]
        at = dim + (named.ndim if named.dtype == bool else 1)
    return tuple(views), tuple(names)


def span_of(part):
    """Returns the number of dimensions that a part of an index (an integer, a slice, None, an array, ...) indexes."""
    if isinstance(part, ElementIndex):
        return part.array.ndim if part.array.dtype == bool else 1
    return 0 if part is None or part is Ellipsis or part is True else 1
