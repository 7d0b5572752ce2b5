"""Samplers, which determine the order of indices into a dataset. Random samplers draw the same numbers as PyTorch's."""
import itertools
from typing import Generic, TypeVar

import gradus

__all__ = ["BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler"]

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """Base class of samplers. Iteration yields indices, or lists of indices. A subclass needs ``__len__`` only for ``len(loader)``."""

    def __iter__(self):
        raise NotImplementedError


def _check_positive(name, value):
    """Raises ValueError unless `value` is a positive integer."""
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


class SequentialSampler(Sampler):
    """Yields the indices of a dataset in order.

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
    """Yields the indices of a dataset in random order.

    Args:
        data_source: a dataset with a length.
        replacement (bool): draws indices with replacement, so that an index may occur several times.
        num_samples (int, optional): the number of indices; the dataset's length when None. If it exceeds the length and ``replacement`` is False,
            several random permutations are yielded one after the other.
        generator (Generator, optional): the random generator. When None, each pass seeds a new generator from the default one.

    Raises ValueError if num_samples or the dataset's length is 0, TypeError if ``replacement`` is not a bool.

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
        """The number of indices in one pass. By default this is the current length of the dataset, which may change between passes."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        n = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = gradus.Generator()
            generator.manual_seed(gradus.empty((), dtype=gradus.int64).random_().item())
        if self.replacement:
            # PyTorch draws 32 numbers at a time. This code does too, so that it yields the same indices.
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
    """Yields the given indices in random order.

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
    """Yields indices drawn with given probabilities.

    Args:
        weights (sequence): the weight of each index, proportional to its probability.
        num_samples (int): the number of indices.
        replacement (bool): draws indices with replacement, so that an index may occur several times.
        generator (Generator, optional): the random generator; the default generator when None.

    Raises ValueError if the weights are not one-dimensional or num_samples is not positive.

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
    """Yields lists of ``batch_size`` indices of another sampler. A shorter last list is yielded too, unless ``drop_last`` is true.

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
