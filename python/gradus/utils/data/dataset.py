"""Datasets that are read by index (``Dataset``) or as a stream (``IterableDataset``), and functions that combine and split them."""
import bisect
import itertools
import math
import warnings
from typing import Generic, Iterable, TypeVar

import gradus

__all__ = ["ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset", "random_split"]

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """A collection of samples that are read by index. A subclass defines ``__getitem__``, and ``__len__``, which most samplers call.

    A subclass may define ``__getitems__(indices)``, which returns a list of samples, so that a batch is loaded by one call.

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
    """A stream of samples. A subclass defines ``__iter__``.

    Each worker process iterates over its own copy of the dataset. ``__iter__`` can call ``get_worker_info()`` to yield only this worker's share of
    the samples.

    >>> class Counter(IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(2))
    >>> list(Counter() + Counter())
    [0, 1, 0, 1]
    """

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """A dataset of tensors t0, t1, ... Its sample i is the tuple (t0[i], t1[i], ...).

    Raises AssertionError if the first dimensions of the tensors have different sizes.

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
    """Returns the list of samples at `indices`, by one call of ``__getitems__`` if the dataset defines it."""
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[index] for index in indices]
    items = dataset.__getitems__(indices)
    if len(items) != len(indices):
        raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
    return items


class StackDataset(Dataset):
    """Combines datasets of equal length. Sample i is a tuple with sample i of each dataset, or a dictionary of these samples if the datasets
    are keyword arguments.

    Raises ValueError if the lengths differ, if there are no datasets, or if there are both positional and keyword arguments.

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
        """Returns the datasets."""
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def _sample(self, items):
        """Returns one sample of this dataset: a tuple or dictionary of `items`, which holds one sample of each dataset."""
        return dict(zip(self.datasets, items)) if isinstance(self.datasets, dict) else tuple(items)

    def __getitem__(self, index):
        return self._sample([dataset[index] for dataset in self._parts()])

    def __getitems__(self, indices):
        columns = [_items(dataset, indices) for dataset in self._parts()]
        return [self._sample(items) for items in zip(*columns)]

    def __len__(self):
        return self._length


class ConcatDataset(Dataset[T_co]):
    """The concatenation of datasets.

    Raises AssertionError if there are no datasets or one is an IterableDataset. Indexing raises ValueError for an index below -len(dataset).

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
        """Returns the cumulative sums of the datasets' lengths.

        >>> ConcatDataset.cumsum(["ab", "c"])
        [2, 3]
        """
        return list(itertools.accumulate(map(len, sequence)))

    @property
    def cummulative_sizes(self):
        """The attribute cumulative_sizes under its old, misspelled name. Reading it warns."""
        warnings.warn("`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning, stacklevel=2)
        return self.cumulative_sizes


class ChainDataset(IterableDataset):
    """The concatenation of several IterableDatasets. Iteration raises AssertionError if one of the datasets is not an IterableDataset."""

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
    """The samples of a dataset at given indices.

    Raises NotImplementedError if a subclass overrides ``__getitem__`` but not ``__getitems__``, because batches are loaded by ``__getitems__`` only.

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
    """Returns a list of disjoint subsets of a dataset. The samples of each subset are chosen at random.

    Args:
        dataset: the dataset, with a length.
        lengths (sequence): the subsets' lengths, which add up to the dataset's length, or fractions that add up to 1. Fractions are rounded down; the
            remaining samples go to the first subsets, one each.
        generator (Generator, optional): the generator of the permutation; the default generator when None.

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
    """Returns one integer length per fraction. The lengths add up to `total`. Warns of a length of 0.

    Raises ValueError for a fraction outside [0, 1].
    """
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
