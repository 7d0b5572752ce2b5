"""Compares data loading with PyTorch: the same batches in the same order from the same random numbers, with workers and without."""
import gc
import multiprocessing
import os
import random
import signal
import threading
import time
import warnings
from collections import namedtuple

import pytest

import gradus
import gradus.utils.data
from oracle import torch

pytestmark = [pytest.mark.forks, pytest.mark.filterwarnings("ignore:This DataLoader will create")]
LIBRARIES = {"gradus": gradus, "torch": torch}
Point = namedtuple("Point", "x y")


class Drawing:
    """A dataset whose samples are random numbers from every generator that a worker process has."""

    def __init__(self, library):
        self.library = library

    def __len__(self):
        return 13

    def __getitem__(self, i):
        return i, self.library.rand(1), random.random(), {"x": self.library.full((2,), float(i))}


class Numbers:
    def __len__(self):
        return 6

    def __getitem__(self, i):
        return gradus.tensor(i)


def iterable_dataset(library):
    class Stream(library.utils.data.IterableDataset):
        def __iter__(self):
            info = library.utils.data.get_worker_info()
            worker = info.id if info else 0
            return iter([100 * worker + i for i in range([7, 3, 5][worker])])

    return Stream()


def without_tensors(value):
    """Returns `value` with each tensor in it replaced by a list, so that values of both libraries can be compared."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {key: without_tensors(item) for key, item in value.items()}
    return [without_tensors(item) for item in value] if isinstance(value, (list, tuple)) else value


def two_passes(library, make_dataset, options):
    """Returns all batches of two passes, and a random number drawn after each pass."""
    library.manual_seed(5)
    random.seed(5)
    if "generator" in options:
        generator = library.Generator()
        generator.manual_seed(options["generator"])
        options = {**options, "generator": generator}
    loader = library.utils.data.DataLoader(make_dataset(library), **options)
    return [[[without_tensors(batch) for batch in loader], library.rand(1).tolist()] for _ in range(2)]


@pytest.mark.parametrize("options", [
    {}, {"batch_size": 4, "shuffle": True}, {"batch_size": 4, "shuffle": True, "generator": 3, "drop_last": True}, {"batch_size": None},
    {"batch_size": 3, "shuffle": True, "num_workers": 2}, {"batch_size": 3, "shuffle": True, "num_workers": 2, "persistent_workers": True},
    {"num_workers": 3, "generator": 4, "prefetch_factor": 5}, {"batch_size": None, "num_workers": 1},
], ids=str)
def test_batches_of_map_style_datasets_are_those_of_pytorch(options):
    assert two_passes(gradus, Drawing, options) == two_passes(torch, Drawing, options)


@pytest.mark.parametrize("options", [
    {"batch_size": 2}, {"batch_size": 2, "num_workers": 3}, {"batch_size": None, "num_workers": 3, "persistent_workers": True},
    {"batch_size": 2, "drop_last": True, "num_workers": 2},
], ids=str)
def test_batches_of_iterable_datasets_are_those_of_pytorch(options):
    assert two_passes(gradus, iterable_dataset, options) == two_passes(torch, iterable_dataset, options)


def test_numpy_is_seeded_in_workers_as_in_pytorch():
    numpy = pytest.importorskip("numpy", reason="what is seeded")

    class Draws:
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return numpy.random.rand()

    options = {"num_workers": 2, "shuffle": True}
    assert two_passes(gradus, lambda library: Draws(), options) == two_passes(torch, lambda library: Draws(), options)


def test_samplers_draw_the_indices_of_pytorch():
    def draw(library):
        library.manual_seed(1)
        data = library.utils.data
        samplers = [data.RandomSampler(range(10)), data.RandomSampler(range(10), replacement=True, num_samples=70),
                    data.RandomSampler(range(10), num_samples=25), data.SubsetRandomSampler([3, 5, 7]),
                    data.WeightedRandomSampler([0.1, 0.5, 0.4], 20), data.WeightedRandomSampler([0.1, 0.5, 0.4], 3, replacement=False),
                    data.BatchSampler(data.SequentialSampler(range(7)), 3, True), data.BatchSampler(data.RandomSampler(range(7)), 3, False),
                    *(data.distributed.DistributedSampler(range(11), num_replicas=3, rank=rank, drop_last=drop)
                      for rank in range(3) for drop in (False, True))]
        return [(len(sampler), list(sampler)) for sampler in samplers]

    assert draw(gradus) == draw(torch)


def test_random_split_agrees_with_pytorch():
    def split(library):
        library.manual_seed(2)
        generator = library.Generator()
        generator.manual_seed(3)
        first = library.utils.data.random_split(range(11), [5, 6])
        second = library.utils.data.random_split(range(11), [0.5, 0.25, 0.25], generator=generator)
        return [list(part) for part in (*first, *second)]

    assert split(gradus) == split(torch)


def test_dataset_classes():
    data = gradus.utils.data
    tensors = data.TensorDataset(gradus.arange(4), gradus.arange(4) * 10)
    assert len(tensors) == 4 and [x.item() for x in tensors[2]] == [2, 20]
    joined = tensors + tensors
    assert isinstance(joined, data.ConcatDataset) and len(joined) == 8 and joined[5][0].item() == 1 and joined[-1][1].item() == 30
    assert list(iterable_dataset(gradus) + iterable_dataset(gradus)) == [*range(7), *range(7)]
    assert data.StackDataset([1, 2], [3, 4]).__getitems__([1, 0]) == [(2, 4), (1, 3)]
    assert data.StackDataset(a=[1, 2], b=data.Subset([5, 6, 7], [2, 0])).__getitems__([0]) == [{"a": 1, "b": 7}]
    assert data.Subset("abcd", [3, 1]).__getitems__([1]) == ["b"]


def bad_calls(library):
    data = library.utils.data
    DataLoader, stream = data.DataLoader, iterable_dataset(library)

    class Half(data.Subset):
        def __getitem__(self, index):
            return 1

    return {
        "workers": lambda: DataLoader([1], num_workers=-1),
        "timeout": lambda: DataLoader([1], timeout=-1),
        "timeout without workers": lambda: iter(DataLoader([1], timeout=1)),
        "prefetch without workers": lambda: DataLoader([1], prefetch_factor=2),
        "prefetch": lambda: DataLoader([1], num_workers=1, prefetch_factor=-1),
        "persistent without workers": lambda: DataLoader([1], persistent_workers=True),
        "context without workers": lambda: DataLoader([1], multiprocessing_context="fork"),
        "context": lambda: DataLoader([1], num_workers=1, multiprocessing_context="x"),
        "no context": lambda: DataLoader([1], num_workers=1, multiprocessing_context=3),
        "shuffled stream": lambda: DataLoader(stream, shuffle=True),
        "sampled stream": lambda: DataLoader(stream, sampler=[1]),
        "batch-sampled stream": lambda: DataLoader(stream, batch_sampler=[[1]]),
        "shuffle and sampler": lambda: DataLoader([1], shuffle=True, sampler=[0]),
        **{f"batch sampler and {name}": lambda name=name, value=value: DataLoader([1], batch_sampler=[[0]], **{name: value})
           for name, value in {"batch_size": 2, "shuffle": True, "sampler": [0], "drop_last": True}.items()},
        "dropping without batches": lambda: DataLoader([1], batch_size=None, drop_last=True),
        "batch size": lambda: DataLoader([1], batch_size=0),
        "empty and shuffled": lambda: DataLoader([], shuffle=True),
        "changing the size": lambda: setattr(DataLoader([1]), "batch_size", 2),
        "an object": lambda: next(iter(DataLoader([object()]))),
        "lists of two lengths": lambda: next(iter(DataLoader([[1], [1, 2]], batch_size=2))),
        "sizes of tensors": lambda: data.TensorDataset(library.zeros(2), library.zeros(3)),
        "nothing to join": lambda: data.ConcatDataset([]),
        "a stream to join": lambda: data.ConcatDataset([stream]),
        "far negative index": lambda: data.ConcatDataset([[1]])[-2],
        "no stream in a chain": lambda: list(data.ChainDataset([[1]])),
        "stack of two lengths": lambda: data.StackDataset([1], [1, 2]),
        "empty stack": lambda: data.StackDataset(),
        "half a subset": lambda: Half([1], [0]),
        "split of another length": lambda: data.random_split([1, 2], [1, 2]),
        "fraction": lambda: data.random_split([1, 2], [-0.5, 1.5]),
        "no samples": lambda: data.RandomSampler([1], num_samples=0),
        "replacement": lambda: data.RandomSampler([1], replacement=1),
        "weights": lambda: data.WeightedRandomSampler([[1.0]], 1),
        "bool of samples": lambda: data.WeightedRandomSampler([1.0], True),
        "drop_last": lambda: data.BatchSampler([1], 1, 1),
        "no sample": lambda: data.Dataset()[0],
        "rank": lambda: data.distributed.DistributedSampler([1], num_replicas=1, rank=1),
        "pickling a pass": lambda: iter(DataLoader([1])).__getstate__(),
    }


@pytest.mark.parametrize("what", bad_calls(gradus))
def test_wrong_calls_raise_the_exception_class_of_pytorch(what):
    with pytest.raises(Exception) as expected:
        bad_calls(torch)[what]()
    with pytest.raises(type(expected.value)):
        bad_calls(gradus)[what]()


SAMPLES = {
    "tensors": lambda l: [l.tensor([1.0, 2.0]), l.tensor([3.0, 4.0])],
    "numbers": lambda l: [1.5, 2.5],
    "integers": lambda l: [1, 2],
    "booleans": lambda l: [True, False],
    "text": lambda l: ["a", "b"],
    "bytes": lambda l: [b"a", b"b"],
    "tuples": lambda l: [(1, "a"), (2, "b")],
    "lists": lambda l: [[1, 2.0], [3, 4.0]],
    "named tuples": lambda l: [Point(1, 2), Point(3, 4)],
    "dictionaries": lambda l: [{"x": 1, "y": [1]}, {"x": 2, "y": [2]}],
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_default_collate_and_default_convert_agree_with_pytorch(kind):
    for function in ("default_collate", "default_convert"):
        ours, theirs = (getattr(library.utils.data, function)(SAMPLES[kind](library)) for library in (gradus, torch))
        assert type(ours).__name__ == type(theirs).__name__ and without_tensors(ours) == without_tensors(theirs)
    assert str(getattr(gradus.utils.data.default_collate(SAMPLES[kind](gradus)), "dtype", "")).split(".")[-1] == \
        str(getattr(torch.utils.data.default_collate(SAMPLES[kind](torch)), "dtype", "")).split(".")[-1]


def test_default_collate_and_default_convert_of_numpy_arrays():
    numpy = pytest.importorskip("numpy", reason="what is collated")
    collate, convert = gradus.utils.data.default_collate, gradus.utils.data.default_convert
    batch = collate([numpy.ones(2, dtype="int16"), numpy.zeros(2, dtype="int16")])
    assert batch.dtype is gradus.int16 and batch.tolist() == [[1, 1], [0, 0]]
    assert collate([numpy.float32(1), numpy.float32(2)]).dtype is gradus.float32
    with pytest.raises(TypeError, match="found <U1"):
        collate([numpy.array(["a"])])
    assert convert({"x": numpy.ones(1)})["x"].dtype is gradus.float64
    assert convert(numpy.array(["a"])).dtype.kind == "U"


# Tests of loaders with worker processes.


def descriptors():
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def nothing_is_left():
    """Fails a test after which a child process or a file descriptor remains."""
    gc.collect()
    before = descriptors()
    yield
    gc.collect()
    assert multiprocessing.active_children() == [] and descriptors() <= before


def loader(dataset, **options):
    return gradus.utils.data.DataLoader(dataset, **{"num_workers": 2, **options})


class Failing(Numbers):
    def __init__(self, fail):
        self.fail = fail

    def __getitem__(self, i):
        if i == 3:
            self.fail()
        return i


def raise_key_error():
    raise KeyError("three\nlines")


class Picky(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


def raise_picky():
    raise Picky(1, 2)


def test_a_complete_and_an_abandoned_pass_with_workers(nothing_is_left):
    assert [batch.tolist() for batch in loader(Numbers(), batch_size=4)] == [[0, 1, 2, 3], [4, 5]]
    for batch in loader(Numbers()):
        break


@pytest.mark.parametrize(("fail", "kind"), [(raise_key_error, KeyError), (raise_picky, RuntimeError)])
def test_an_exception_in_a_worker_is_raised_with_its_traceback(nothing_is_left, fail, kind):
    batches = iter(loader(Failing(fail)))
    assert [next(batches).tolist() for _ in range(3)] == [[0], [1], [2]]
    with pytest.raises(kind) as found:
        next(batches)
    assert "in DataLoader worker process 1.\nOriginal Traceback" in str(found.value) and fail.__name__ in str(found.value)
    assert [batch.tolist() for batch in batches] == [[4], [5]]
    del batches, found


def test_a_worker_that_dies_is_an_error(nothing_is_left):
    for end in (lambda: os._exit(3), lambda: os.kill(os.getpid(), signal.SIGKILL)):
        with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly"):
            list(loader(Failing(end)))


def test_a_slow_worker_is_a_timeout_error(nothing_is_left):
    with pytest.raises(RuntimeError, match="timed out after 0.1 seconds"):
        list(loader(Failing(lambda: time.sleep(1)), timeout=0.1))


def test_a_batch_that_cannot_be_pickled_is_an_error(nothing_is_left):
    with pytest.raises(Exception, match="in DataLoader worker process"):
        list(loader([lambda: 1], batch_size=None))


def test_an_exception_in_worker_init_fn_is_raised(nothing_is_left):
    def begin(worker):
        raise ValueError(f"worker {worker}")

    with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker process 0"):
        list(loader(Numbers(), worker_init_fn=begin))


def test_persistent_workers_serve_several_passes(nothing_is_left):
    class Pids(Numbers):
        def __getitem__(self, i):
            return os.getpid()

    batches = loader(Pids(), persistent_workers=True)
    first = {batch.item() for batch in batches}
    next(iter(batches))
    assert {batch.item() for batch in batches} == first and len(first) == 2
    del batches


def test_large_indices_and_batches_cause_no_deadlock(nothing_is_left):
    """The lists of indices and the samples are larger than a pipe's buffer, so the loader and the worker write at the same time. This causes no
    deadlock."""
    indices = [[i] * 100000 for i in range(8)]

    class Large:
        def __getitems__(self, chosen):
            return [gradus.full((50000,), float(chosen[0]))]

        def __getitem__(self, index):
            raise AssertionError

    assert [batch[0, 0].item() for batch in loader(Large(), batch_sampler=indices, num_workers=1, prefetch_factor=4)] == [*range(8)]


def test_batches_out_of_order_with_in_order_false():
    class Uneven(Numbers):
        def __getitem__(self, i):
            if i == 0:
                self.others.wait()
            # Index 0 waits until index 5 is requested. The loader requests index 5 only after receiving batch 3, so batch 3 comes before batch 0.
            if i == 5:
                self.others.set()
            return i

    dataset = Uneven()
    dataset.others = multiprocessing.get_context("fork").Event()
    batches = [batch.item() for batch in loader(dataset, in_order=False, multiprocessing_context="fork")]
    assert sorted(batches) == [*range(6)] and batches.index(0) > batches.index(3)


def test_get_worker_info():
    class Info(Numbers):
        def __getitem__(self, i):
            info = gradus.utils.data.get_worker_info()
            assert info.dataset is self
            return info.id, info.num_workers, info.seed, gradus.initial_seed(), gradus.get_num_threads()

    assert gradus.utils.data.get_worker_info() is None
    for i, (worker, workers, seed, own_seed, threads) in enumerate(loader(Info(), batch_size=None)):
        assert (worker, workers, threads) == (i % 2, 2, 1) and seed == own_seed


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_started_by_spawn_and_forkserver(method):
    data = gradus.utils.data.TensorDataset(gradus.arange(3))
    batches = loader(data, num_workers=1, multiprocessing_context=method)
    assert [batch[0].tolist() for batch in batches] == [[0], [1], [2]]


def test_loading_in_a_thread_and_in_a_forked_process(nothing_is_left):
    found = []
    thread = threading.Thread(target=lambda: found.extend(batch.item() for batch in loader(Numbers())))
    thread.start()
    thread.join()
    assert found == [*range(6)]
    batches = iter(loader(Numbers()))
    next(batches)
    pid = os.fork()
    if pid == 0:
        del batches  # deletes the child's copy of the iterator, which must not shut down the parent's workers
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert [batch.item() for batch in batches] == [1, 2, 3, 4, 5]
    del batches


def test_pin_memory_warns():
    with pytest.warns(UserWarning, match="pin_memory"):
        assert len(list(gradus.utils.data.DataLoader([1], pin_memory=True))) == 1


def test_an_iterable_dataset_longer_than_its_length_warns():
    stream = iterable_dataset(gradus)
    type(stream).__len__ = lambda self: 2
    batches = gradus.utils.data.DataLoader(stream)
    assert len(batches) == 2
    with pytest.warns(UserWarning, match="reported to be 2"):
        list(batches)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in gradus.utils.data.DataLoader(stream):
            pass


def test_a_prefetch_factor_of_0_is_refused():
    """PyTorch raises an error of the same class, but it also warns when its incomplete iterator is freed."""
    with pytest.raises(AssertionError, match="prefetch_factor"):
        iter(gradus.utils.data.DataLoader([1], num_workers=1, prefetch_factor=0))
