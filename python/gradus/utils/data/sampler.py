"""Samplers: the order in which the indices of a data set are asked for. Random ones draw exactly as PyTorch's do."""
import itertools
from typing import Generic, TypeVar

import gradus

__all__ = ["BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler"]

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """The base of samplers: iterating over one gives indices, or lists of them. ``__len__`` is wanted by ``len(loader)`` only."""

    def __iter__(self):
        raise NotImplementedError


def _check_positive(name, value):
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


class SequentialSampler(Sampler):
    """The indices in order.

    >>> list(SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler):
    """The indices in random order.

    Args:
        data_source: a data set with a length.
        replacement (bool): an index may come several times.
        num_samples (int, optional): how many indices to draw; the length of the data set. Without replacement, permutations of all indices
            follow one another until there are enough.
        generator (Generator, optional): without one, each pass seeds its own from the default generator.

    Raises ValueError if there is nothing to draw from, TypeError if ``replacement`` is not a bool.

    >>> sorted(RandomSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self):
        """How many indices one pass gives; data sets may grow between passes."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        n = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = gradus.Generator()
            generator.manual_seed(gradus.empty((), dtype=gradus.int64).random_().item())
        if self.replacement:
            # PyTorch draws 32 at a time.
            for _ in range(self.num_samples // 32):
                yield from gradus.randint(n, (32,), dtype=gradus.int64, generator=generator).tolist()
            yield from gradus.randint(n, (self.num_samples % 32,), dtype=gradus.int64, generator=generator).tolist()
        else:
            for _ in range(self.num_samples // n):
                yield from gradus.randperm(n, generator=generator).tolist()
            yield from gradus.randperm(n, generator=generator).tolist()[:self.num_samples % n]

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Given indices in random order.

    >>> sorted(SubsetRandomSampler([5, 7]))
    [5, 7]
    """

    def __init__(self, indices, generator=None):
        self.indices = indices
        self.generator = generator

    def __iter__(self):
        for i in gradus.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Indices drawn with given probabilities.

    Args:
        weights (sequence): a weight for each index; they need not add up to 1.
        num_samples (int): how many to draw.
        replacement (bool): an index may come several times.
        generator (Generator, optional): the default generator.

    Raises ValueError for weights that are not one-dimensional, and for a number of samples that is not positive.

    >>> list(WeightedRandomSampler([0, 1, 0], 2))
    [1, 1]
    """

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        _check_positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = gradus.as_tensor(weights, dtype=gradus.float64)
        if self.weights.dim() != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}")
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self):
        yield from gradus.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist()

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of ``batch_size`` indices of another sampler; the last may be shorter, or with ``drop_last`` is left out.

    >>> list(BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler, batch_size, drop_last):
        _check_positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self):
        indices = iter(self.sampler)
        batch = list(itertools.islice(indices, self.batch_size))
        while len(batch) == self.batch_size or (batch and not self.drop_last):
            yield batch
            batch = list(itertools.islice(indices, self.batch_size))

    def __len__(self):
        return (len(self.sampler) if self.drop_last else len(self.sampler) + self.batch_size - 1) // self.batch_size
