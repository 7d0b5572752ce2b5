"""The class DataLoader, which iterates over batches of a dataset. ``_utils`` fetches samples. ``_workers`` has the iterator with worker processes."""
from __future__ import annotations

import functools
import itertools
import math
import multiprocessing
import os
import warnings
from typing import Generic, TypeVar

import gradus
from gradus.utils.data._utils.collate import default_collate, default_convert
from gradus.utils.data._utils.fetch import MapFetcher, StreamFetcher
from gradus.utils.data._utils.worker import get_worker_info
from gradus.utils.data.dataset import Dataset, IterableDataset
from gradus.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)

_FIXED = frozenset(["batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"])


class DataLoader(Generic[T_co]):
    """Iterates over the batches of a dataset, in order or shuffled. Batches are made in this process or by worker processes.

    Args:
        dataset: a ``Dataset``, any object with ``__getitem__`` and ``__len__``, or an ``IterableDataset``.
        batch_size (int, optional): the number of samples in a batch; None yields single samples.
        shuffle (bool, optional): uses a new random order in each pass.
        sampler (iterable, optional): the indices in the order to use, instead of ``shuffle``.
        batch_sampler (iterable, optional): lists of indices, instead of ``batch_size``, ``shuffle``, ``sampler`` and ``drop_last``.
        num_workers (int): the number of processes that make batches; 0 for this process. The order of batches does not depend on it.
        collate_fn (callable, optional): makes a batch from a list of samples; ``default_collate`` when None.
        pin_memory (bool): only causes a warning, because there is no accelerator to pin memory for.
        drop_last (bool): skips a last batch with fewer samples.
        timeout (float): seconds to wait for a worker's batch; 0 for no limit.
        worker_init_fn (callable, optional): called with the worker's number in each worker, after seeding.
        multiprocessing_context (str or context, optional): how workers are started: ``"fork"``, ``"spawn"`` or ``"forkserver"``.
        generator (Generator, optional): the generator for shuffling and the workers' seeds; the default generator when None.
        prefetch_factor (int, optional): the number of batches that each worker makes in advance; 2 when None.
        persistent_workers (bool): does not end the workers between passes.
        pin_memory_device (str): exists for compatibility with PyTorch and has no effect.
        in_order (bool): returns workers' batches in order; False returns each batch as soon as it is available.

    In a worker ``gradus``, ``random`` and, if it was imported before, ``numpy.random`` are seeded from the loader's base seed and the worker's
    number. A worker uses one thread.

    Raises ValueError for arguments that exclude each other. An exception in a worker is raised again by the iteration, with the same class and the
    worker's traceback in the text. The iteration raises RuntimeError if a worker dies or the timeout passes.

    >>> loader = DataLoader(range(5), batch_size=2)
    >>> [batch.tolist() for batch in loader], len(loader)
    ([[0, 1], [2, 3], [4]], 3)
    """

    _initialized = False

    def __init__(self, dataset: Dataset[T_co], batch_size: int | None = 1, shuffle: bool | None = None, sampler=None, batch_sampler=None,
                 num_workers: int = 0, collate_fn=None, pin_memory: bool = False, drop_last: bool = False, timeout: float = 0, worker_init_fn=None,
                 multiprocessing_context=None, generator=None, *, prefetch_factor: int | None = None, persistent_workers: bool = False,
                 pin_memory_device: str = "", in_order: bool = True):
        _check_worker_options(num_workers, timeout, prefetch_factor, persistent_workers)
        is_stream = isinstance(dataset, IterableDataset)
        if is_stream:
            _check_stream_options(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if is_stream:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self.persistent_workers = persistent_workers
        self._reported_length = None  # the last result of len() if the dataset is an IterableDataset; None before the first call
        self._iterator = None  # the iterator that owns the persistent workers; None if there is none yet
        self._initialized = True
        self._warn_of_many_workers()

    def __setattr__(self, name, value):
        if self._initialized and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self):
        """The multiprocessing context in which workers are started, or None for the default context."""
        return self._multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context):
        if context is not None:
            if self.num_workers == 0:
                raise ValueError("multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                                 f"num_workers={self.num_workers}")
            if isinstance(context, str):
                methods = multiprocessing.get_all_start_methods()
                if context not in methods:
                    raise ValueError(f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                                     f"multiprocessing_context={context!r}")
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError("multiprocessing_context option should be a valid context object or a string specifying the start "
                                f"method, but got multiprocessing_context={context}")
        self._multiprocessing_context = context

    @property
    def _index_sampler(self):
        """The sampler of lists of indices, or of single indices if batch_sampler is None."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __iter__(self):
        if self.pin_memory:
            warnings.warn("'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.",
                          stacklevel=2)
        if self.num_workers == 0:
            if self.timeout != 0:
                raise AssertionError("loading without workers requires timeout == 0")
            return _SingleProcessDataLoaderIter(self)
        if self.prefetch_factor == 0:
            raise AssertionError("prefetch_factor must be greater than 0 for loading with workers")
        # imported here because few programs use workers
        from gradus.utils.data._workers import _MultiProcessingDataLoaderIter

        self._warn_of_many_workers()
        if not self.persistent_workers:
            return _MultiProcessingDataLoaderIter(self)
        if self._iterator is None:
            self._iterator = _MultiProcessingDataLoaderIter(self)
        else:
            self._iterator.begin_again()
        return self._iterator

    def __len__(self):
        if not isinstance(self.dataset, IterableDataset):
            return len(self._index_sampler)
        length = self._reported_length = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else math.ceil(length / self.batch_size)

    def _warn_of_many_workers(self):
        """Warns if there are more workers than CPUs that this process may use."""
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if available is not None and self.num_workers > available:
            warnings.warn(f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of worker "
                          f"in current system is {available}, which is smaller than what this DataLoader is going to create. Please be "
                          "aware that excessive worker creation might get DataLoader running slow or even freeze, lower the worker "
                          "number to avoid potential slowness/freeze if necessary.", stacklevel=3)


def _check_worker_options(num_workers, timeout, prefetch_factor, persistent_workers):
    """Raises ValueError for invalid or contradictory options of workers."""
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0:
        if prefetch_factor is not None:
            raise ValueError("prefetch_factor option could only be specified in multiprocessing. let num_workers > 0 to enable "
                             "multiprocessing, otherwise set prefetch_factor to None.")
        if persistent_workers:
            raise ValueError("persistent_workers option needs num_workers > 0")
    elif prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")


def _check_stream_options(shuffle, sampler, batch_sampler):
    """Raises ValueError for options that an IterableDataset, which has no indices, does not support."""
    for name, value in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
        if value is not None:
            raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}")


class _DatasetKind:
    """PyTorch's names for the kinds of datasets: read by index, or iterated over."""

    Map, Iterable = 0, 1


class _InfiniteConstantSampler:
    """Yields None endlessly, as the sampler for an IterableDataset, which has no indices."""

    def __iter__(self):
        return itertools.repeat(None)


class _BaseDataLoaderIter:
    """Base of iterators over a DataLoader. A subclass defines _start and _next_batch."""

    def __init__(self, loader):
        self._loader = loader
        self._is_stream = isinstance(loader.dataset, IterableDataset)
        self._make_fetcher = functools.partial(StreamFetcher if self._is_stream else MapFetcher,
                                               in_batches=loader.batch_sampler is not None, collate_fn=loader.collate_fn,
                                               drop_last=loader.drop_last)
        self._indices = iter(loader._index_sampler)
        # Draws the workers' seed even if num_workers is 0. The program's later random numbers then do not depend on num_workers.
        self._base_seed = gradus.empty((), dtype=gradus.int64).random_(generator=loader.generator).item()
        self._yielded = 0
        self._start()

    def __iter__(self):
        return self

    def __next__(self):
        batch = self._next_batch()
        self._yielded += 1
        expected = self._loader._reported_length
        if self._is_stream and expected is not None and self._yielded > expected:
            warnings.warn(f"Length of IterableDataset {self._loader.dataset} was reported to be {expected} (when accessing "
                          f"len(dataloader)), but {self._yielded} samples have been fetched. With workers, each has to take its own part "
                          "of the stream.", stacklevel=2)
        return batch

    def __len__(self):
        return len(self._loader._index_sampler)

    def __getstate__(self):
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Iterator that fetches samples in this process."""

    def _start(self):
        self._fetcher = self._make_fetcher(self._loader.dataset)

    def _next_batch(self):
        return self._fetcher.fetch(next(self._indices))


def __getattr__(name):
    if name != "_MultiProcessingDataLoaderIter":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from ._workers import _MultiProcessingDataLoaderIter  # imported here because few programs use workers

    return _MultiProcessingDataLoaderIter
