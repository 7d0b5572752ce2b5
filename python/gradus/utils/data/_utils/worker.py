"""The loop of a worker process, and what it and the loader say to each other.

Each worker has a pipe of its own. The loader sends ``(number, index)`` for a task and None for another pass over the data, and closes the
pipe to end the worker; so a worker also ends when the process of its loader is gone. The worker answers each task by ``(number, batch)``,
where a ``Failure`` or a ``StreamEnd`` may stand for the batch, and None by None.
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
    """Which worker this process is: ``id`` of ``num_workers``, its ``seed``, and its copy of the ``dataset``."""

    id: int
    num_workers: int
    seed: int
    dataset: object


def get_worker_info():
    """Returns the :class:`WorkerInfo` of this process, or None in a process that is no worker.

    >>> get_worker_info() is None
    True
    """
    return _worker_info


class _KeyErrorText(str):
    """A KeyError shows its argument by ``repr``; this one keeps its lines."""

    def __repr__(self):
        return str(self)


class Failure:
    """An exception on its way from a worker, with its traceback as text: the objects of a traceback cannot travel."""

    def __init__(self, exception, where):
        self.kind = type(exception)
        text = "".join(traceback.format_exception(self.kind, exception, exception.__traceback__))
        self.message = f"Caught {self.kind.__name__} {where}.\nOriginal {text}"

    def reraise(self):
        """Raise an exception of the same class; RuntimeError if that class wants other arguments than a message."""
        message = _KeyErrorText(self.message) if self.kind is KeyError else self.message
        try:
            exception = self.kind(message)
        except Exception:
            raise RuntimeError(self.message) from None
        raise exception


class StreamEnd:
    """The answer of a worker whose part of the stream has ended."""


_CLOSED = object()


def worker_loop(pipe, inherited, make_fetcher, dataset, base_seed, init_fn, worker_id, num_workers):
    """Run a worker until its pipe is closed.

    ``inherited`` are ends of pipes that belong to the loader: a forked child has copies, which would keep the pipes open.
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
        pass  # The loader has been interrupted too, or does not wait for this batch any more.


def _introduce(dataset, base_seed, worker_id, num_workers):
    """Makes this process a worker: it gets one thread, its own random generators, and the result of ``get_worker_info``."""
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
    """Returns a queue that a thread fills from the pipe, so that the loader never waits to write to a worker that itself waits for the loader to read."""
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
    try:
        send(pipe, (number, answer))
    except OSError:
        raise
    except Exception as exception:  # The batch cannot be pickled; nothing has been sent.
        send(pipe, (number, Failure(exception, where)))
