"""The main loop of a worker process, and its protocol with the loader.

Each worker has its own pipe. For each task the loader sends ``(number, index)``. The worker answers with ``(number, batch)``, where batch may be a
``Failure`` or a ``StreamEnd``. To start another pass over the data, the loader sends None, and the worker answers with None. A worker ends when its
pipe is closed, by the loader or because the loader's process has ended.
"""
import queue
import random
import sys
import threading
import traceback
from dataclasses import dataclass

import gradus
from gradus.multiprocessing.reductions import send
from gradus.utils.data._utils.fetch import StreamFetcher

__all__ = ["WorkerInfo", "get_worker_info"]

_worker_info = None


@dataclass(frozen=True)
class WorkerInfo:
    """Describes a worker process: its number ``id`` among ``num_workers``, its random ``seed``, and its copy of the ``dataset``."""

    id: int
    num_workers: int
    seed: int
    dataset: object


def get_worker_info():
    """Returns the :class:`WorkerInfo` of this process, or None if the process is not a worker.

    >>> get_worker_info() is None
    True
    """
    return _worker_info


class _KeyErrorText(str):
    """A string whose repr() is the string itself. The text of a KeyError is the repr() of its argument, which would otherwise escape line breaks."""

    def __repr__(self):
        return str(self)


class Failure:
    """An exception that a worker sends to the loader. It contains the traceback as text, because traceback objects cannot be pickled."""

    def __init__(self, exception, where):
        self.kind = type(exception)
        text = "".join(traceback.format_exception(self.kind, exception, exception.__traceback__))
        self.message = f"Caught {self.kind.__name__} {where}.\nOriginal {text}"

    def reraise(self):
        """Raises an exception of the class that was raised in the worker, or RuntimeError if that class cannot be constructed from a message."""
        message = _KeyErrorText(self.message) if self.kind is KeyError else self.message
        try:
            exception = self.kind(message)
        except Exception:
            raise RuntimeError(self.message) from None
        raise exception


class StreamEnd:
    """The answer of a worker whose copy of an IterableDataset has no more samples."""


_CLOSED = object()


def worker_loop(pipe, inherited, make_fetcher, dataset, base_seed, init_fn, worker_id, num_workers):
    """Runs a worker until its pipe is closed.

    pipe: the worker's end of its pipe. inherited: the loader's ends of pipes, of which a forked worker has copies. The worker closes these, because a
    pipe stays open while a copy of its end is open.
    """
    for connection in inherited:
        connection.close()
    where = f"in DataLoader worker process {worker_id}"
    fetcher = failure = None
    try:
        _introduce(dataset, base_seed, worker_id, num_workers)
        tasks = _read_ahead(pipe)
        try:
            if init_fn is not None:
                init_fn(worker_id)
        except Exception as exception:
            failure = Failure(exception, where)
        while (task := tasks.get()) is not _CLOSED:
            if task is None:
                fetcher = None
                send(pipe, None)
                continue
            number, index = task
            try:
                if failure is None and fetcher is None:
                    fetcher = make_fetcher(dataset)
                answer = failure or fetcher.fetch(index)
            except Exception as exception:
                ended = isinstance(exception, StopIteration) and isinstance(fetcher, StreamFetcher)
                answer = StreamEnd() if ended else Failure(exception, where)
            _send(pipe, number, answer, where)
    except (KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
        pass  # the loader was interrupted too, or no longer waits for this batch


def _introduce(dataset, base_seed, worker_id, num_workers):
    """Makes this process a worker: limits Gradus to one thread, seeds the random generators, and sets the result of ``get_worker_info``."""
    global _worker_info
    seed = base_seed + worker_id
    gradus.set_num_threads(1)
    gradus.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
        numpy.random.seed(numpy.random.SeedSequence(words).generate_state(4))
    _worker_info = WorkerInfo(worker_id, num_workers, seed, dataset)


def _read_ahead(pipe):
    """Returns a queue that a thread fills with messages from the pipe.

    Without this thread the loader and the worker could deadlock, each waiting for the other to read from its full pipe.
    """
    tasks = queue.SimpleQueue()

    def read():
        try:
            while True:
                tasks.put(pipe.recv())
        except (EOFError, OSError):
            tasks.put(_CLOSED)

    threading.Thread(target=read, daemon=True).start()
    return tasks


def _send(pipe, number, answer, where):
    """Sends the answer to task `number`. If the answer cannot be pickled, sends the exception instead."""
    try:
        send(pipe, (number, answer))
    except OSError:
        raise
    except Exception as exception:  # The batch could not be pickled, so nothing has been sent.
        send(pipe, (number, Failure(exception, where)))
