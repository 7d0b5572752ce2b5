"""Data sets: by index (``Dataset``) or as a stream (``IterableDataset``), and ways to combine and to split them."""
import bisect
import itertools
import math
import warnings
from typing import Generic, Iterable, TypeVar

import gradus

__all__ = ["ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset", "random_split"]

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """A collection of samples by index. A subclass writes ``__getitem__``, and ``__len__`` for most samplers.

    It may write ``__getitems__(indices)``, which returns a list of samples and is used to load a batch in one call.

    >>> class Squares(Dataset):
    ...     def __getitem__(self, index):
    ...         return index * index
    ...     def __len__(self):
    ...         return 3
    >>> len(Squares() + Squares())
    6
    """

    def __getitem__(self, index):
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """A stream of samples: a subclass writes ``__iter__``.

    Each worker process has a copy: ``get_worker_info()`` tells which part of the stream is its own.

    >>> class Counter(IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(2))
    >>> list(Counter() + Counter())
    [0, 1, 0, 1]
    """

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Sample i holds element i of each tensor along the first dimension.

    Raises AssertionError if the first dimensions differ.

    >>> import gradus
    >>> [x.item() for x in TensorDataset(gradus.tensor([1, 2]), gradus.tensor([3, 4]))[1]]
    [2, 4]
    """

    def __init__(self, *tensors):
        if any(tensor.size(0) != tensors[0].size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self):
        return self.tensors[0].size(0)


def _items(dataset, indices):
    """Returns several samples of a data set, by one call of its ``__getitems__`` if it has one."""
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[index] for index in indices]
    items = dataset.__getitems__(indices)
    if len(items) != len(indices):
        raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
    return items


class StackDataset(Dataset):
    """Data sets of the same length side by side: a sample is a tuple, or for data sets given by name a dictionary.

    Raises ValueError if lengths differ, if there are none, or if some are given by name and some are not.

    >>> StackDataset([1, 2], [3, 4])[0]
    (1, 3)
    >>> StackDataset(image=[1, 2], label=[3, 4])[1]
    {'image': 2, 'label': 4}
    """

    def __init__(self, *args, **kwargs):
        if args and kwargs:
            raise ValueError("Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like input/output, "
                             "but both types are given.")
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = kwargs or args
        lengths = [len(dataset) for dataset in self._parts()]
        if any(length != lengths[0] for length in lengths):
            raise ValueError("Size mismatch between datasets")
        self._length = lengths[0]

    def _parts(self):
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def _sample(self, items):
        return dict(zip(self.datasets, items)) if isinstance(self.datasets, dict) else tuple(items)

    def __getitem__(self, index):
        return self._sample([dataset[index] for dataset in self._parts()])

    def __getitems__(self, indices):
        columns = [_items(dataset, indices) for dataset in self._parts()]
        return [self._sample(items) for items in zip(*columns)]

    def __len__(self):
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Data sets one after the other.

    Raises AssertionError if there are none or one is a stream, ValueError for an index below minus the length.

    >>> ConcatDataset([[1, 2], [3]])[-1]
    3
    """

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - self.cumulative_sizes[which - 1] if which else index]

    @staticmethod
    def cumsum(sequence):
        """Returns the lengths of data sets, added up one after another.

        >>> ConcatDataset.cumsum(["ab", "c"])
        [2, 3]
        """
        return list(itertools.accumulate(map(len, sequence)))

    @property
    def cummulative_sizes(self):
        """cumulative_sizes under its older name."""
        warnings.warn("`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning, stacklevel=2)
        return self.cumulative_sizes


class ChainDataset(IterableDataset):
    """Streams one after the other. Raises AssertionError, when it gets there, for what is no ``IterableDataset``."""

    def __init__(self, datasets):
        self.datasets = datasets

    def _streams(self):
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self):
        for dataset in self._streams():
            yield from dataset

    def __len__(self):
        return sum(map(len, self._streams()))


class Subset(Dataset[T_co]):
    """Some samples of a data set, by their indices.

    Raises NotImplementedError for a subclass that writes ``__getitem__`` and not ``__getitems__``: batches would go past it.

    >>> list(Subset("abcd", [3, 0]))
    ['d', 'a']
    """

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices
        if type(self).__getitem__ is not Subset.__getitem__ and type(self).__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{type(self).__name__} overrides __getitem__ but not __getitems__. When subclassing Subset and overriding __getitem__, "
                "you must also override __getitems__, which a DataLoader calls with the indices of a batch, for instance:\n\n"
                "def __getitems__(self, indices):\n    return [self.__getitem__(idx) for idx in indices]")

    def __getitem__(self, index):
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices):
        chosen = [self.indices[index] for index in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(chosen)
        return [self.dataset[index] for index in chosen]

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=None):
    """Split a data set at random into subsets that share nothing.

    Args:
        dataset: what to split.
        lengths (sequence): lengths that add up to that of the data set, or fractions that add up to 1; what rounding leaves goes to
            the first subsets, one each.
        generator (Generator, optional): where the permutation comes from; the default generator.

    Raises ValueError if the lengths do not add up.

    >>> [len(part) for part in random_split(range(10), [0.75, 0.25])]
    [8, 2]
    """
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _lengths_of_fractions(len(dataset), lengths)
    if sum(lengths) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    indices = gradus.randperm(sum(lengths), generator=generator).tolist()
    return [Subset(dataset, indices[end - length:end]) for end, length in zip(itertools.accumulate(lengths), lengths)]


def _lengths_of_fractions(total, fractions):
    for index, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"Fraction at index {index} is not between 0 and 1")
    lengths = [math.floor(total * fraction) for fraction in fractions]
    for index in range(total - sum(lengths)):
        lengths[index % len(lengths)] += 1
    for index, length in enumerate(lengths):
        if length == 0:
            warnings.warn(f"Length of split at index {index} is 0. This might result in an empty dataset.", stacklevel=3)
    return lengths
