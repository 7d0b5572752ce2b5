"""The DataLoader's iterator for num_workers > 0, whose batches are made by worker processes.

Tasks are numbered and assigned to the workers in turn. Every task has exactly one answer. Batches are returned in the order of task numbers, unless
the loader's option in_order is False.
"""
import os
import time
import weakref
from multiprocessing import connection

from gradus import multiprocessing
from gradus.multiprocessing.reductions import receive
from gradus.utils.data._utils.worker import Failure, StreamEnd, worker_loop
from gradus.utils.data.dataloader import _BaseDataLoaderIter

_PATIENCE = 5.0  # seconds to wait for a worker to end before it is terminated, and again before it is killed
# Stands for the answer to a task for which there is no batch to return. Either the worker's IterableDataset had no more samples, or the batch was
# already returned out of order.
_NOTHING = object()


class _Worker:
    """A worker process, and the loader's end of the pipe to the worker."""

    def __init__(self, context, others, arguments):
        self.pipe, end = context.Pipe()
        inherited = [self.pipe, *(other.pipe for other in others)] if context.get_start_method() == "fork" else []
        self.process = context.Process(target=worker_loop, args=(end, inherited, *arguments), daemon=True)
        try:
            self.process.start()
        except BaseException:
            self.pipe.close()
            raise
        finally:
            end.close()
        self.pid = self.process.pid
        self.tasks = 0  # number of tasks sent but not answered
        self.ended = False  # True once the worker's copy of an IterableDataset has no more samples

    def died(self):
        """Returns the RuntimeError for a worker that has died."""
        return RuntimeError(f"DataLoader worker (pid(s) {self.pid}) exited unexpectedly")

    def send(self, message):
        """Sends a message to the worker. Raises RuntimeError if the worker has died."""
        try:
            self.pipe.send(message)
        except (BrokenPipeError, ConnectionResetError):
            raise self.died() from None

    def receive(self):
        """Returns the next message of the worker. Raises RuntimeError if the worker has died."""
        try:
            return receive(self.pipe)
        except (EOFError, ConnectionResetError):
            raise self.died() from None


def _shut_down(workers, owner):
    """Ends the worker processes and frees their resources. Does nothing in a forked child, because the processes are not its children."""
    if os.getpid() != owner:
        return
    for worker in workers:
        worker.pipe.close()
    until = time.monotonic() + _PATIENCE
    for worker in workers:
        worker.process.join(max(0.0, until - time.monotonic()))
        if worker.process.is_alive():
            worker.process.terminate()
            worker.process.join(_PATIENCE)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.process.close()
    workers.clear()


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Iterator over a DataLoader with workers. It is used for one pass, or with ``persistent_workers`` for all passes."""

    def _start(self):
        """Starts the worker processes and the first pass."""
        loader = self._loader
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self._workers = []
        self._shut_down = weakref.finalize(self, _shut_down, self._workers, os.getpid())
        for worker_id in range(loader.num_workers):
            self._workers.append(_Worker(context, self._workers, (self._make_fetcher, loader.dataset, self._base_seed,
                                                                  loader.worker_init_fn, worker_id, loader.num_workers)))
        self._begin()

    def _begin(self):
        """Starts a pass over the data: creates the sampler's iterator and sends the first tasks."""
        # The base class has already created one iterator of the sampler. A second one is created here, as in PyTorch. A sampler that draws random
        # numbers whenever an iterator is created thus draws as many as in PyTorch.
        self._indices = iter(self._loader._index_sampler)
        self._yielded = 0
        self._next_task = 0  # number of the next task to send
        self._next_given = 0  # number of the next batch to return
        self._next_worker = 0
        self._answers = {}  # maps task numbers to answers that arrived before their turn
        for worker in self._workers:
            worker.tasks = 0
            worker.ended = False
        for _ in range(self._loader.prefetch_factor * len(self._workers)):
            self._deal()

    def begin_again(self):
        """Starts another pass with the same workers. Answers that remain from the previous pass are discarded."""
        for worker in self._workers:
            worker.send(None)
        for worker in self._workers:
            while worker.receive() is not None:
                pass
        self._begin()

    def _deal(self):
        """Sends the next index, or list of indices, of the sampler as a task to the next worker. Does nothing if there are no more indices, or if no
        worker can take a task."""
        worker = self._choose_worker()
        if worker is None:
            return
        try:
            index = next(self._indices)
        except StopIteration:
            return
        worker.send((self._next_task, index))
        worker.tasks += 1
        self._next_task += 1

    def _choose_worker(self):
        """Returns the next worker in turn that can take a task, or None."""
        for _ in self._workers:
            worker = self._workers[self._next_worker]
            self._next_worker = (self._next_worker + 1) % len(self._workers)
            if not worker.ended and (self._loader.in_order or worker.tasks < self._loader.prefetch_factor):
                return worker
        return None

    def _next_batch(self):
        """Returns the next batch, waiting for workers as necessary. Raises StopIteration at the end of the pass."""
        while True:
            while self._next_given in self._answers:
                answer = self._answers.pop(self._next_given)
                self._next_given += 1
                if answer is not _NOTHING:
                    return self._give(answer)
            if self._next_given == self._next_task:
                if not self._loader.persistent_workers:
                    self._shut_down()
                raise StopIteration
            number, answer = self._receive()
            if self._loader.in_order or answer is _NOTHING:
                self._answers[number] = answer
            else:
                self._answers[number] = _NOTHING
                return self._give(answer)

    def _give(self, answer):
        """Sends another task to a worker. Then returns `answer`, or raises the worker's exception if `answer` is a Failure."""
        self._deal()
        if isinstance(answer, Failure):
            answer.reraise()
        return answer

    def _receive(self):
        """Waits for an answer of any worker. Returns (task number, answer). Raises RuntimeError if a worker has died or after the timeout."""
        by_pipe = {worker.pipe: worker for worker in self._workers if worker.tasks}
        by_sentinel = {worker.process.sentinel: worker for worker in by_pipe.values()}
        ready = connection.wait([*by_pipe, *by_sentinel], self._loader.timeout or None)
        if not ready:
            raise RuntimeError(f"DataLoader timed out after {self._loader.timeout} seconds")
        worker = next((by_pipe[source] for source in ready if source in by_pipe), None)
        if worker is None:
            worker = by_sentinel[ready[0]]
            if not worker.pipe.poll():
                raise worker.died()
        number, answer = worker.receive()
        worker.tasks -= 1
        if not isinstance(answer, StreamEnd):
            return number, answer
        worker.ended = True
        self._deal()
        return number, _NOTHING
