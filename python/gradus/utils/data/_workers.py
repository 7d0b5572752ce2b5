"""Passes over the data whose batches are made by worker processes.

Tasks are numbered and dealt to the workers in turn; every task has exactly one answer. Batches are given out by number.
"""
import os
import time
import weakref
from multiprocessing import connection

from gradus import multiprocessing
from gradus.multiprocessing.reductions import receive
from gradus.utils.data._utils.worker import Failure, StreamEnd, worker_loop
from gradus.utils.data.dataloader import _BaseDataLoaderIter

_PATIENCE = 5.0  # The seconds after which a worker that does not end is killed.
_NOTHING = object()  # The batch of a task that yields none, or that was already yielded out of order.


class _Worker:
    """A process and the loader's end of its pipe."""

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
        self.tasks = 0  # The number of tasks that were sent and not answered.
        self.ended = False  # True once the worker's part of a stream has ended.

    def died(self):
        return RuntimeError(f"DataLoader worker (pid(s) {self.pid}) exited unexpectedly")

    def send(self, message):
        try:
            self.pipe.send(message)
        except (BrokenPipeError, ConnectionResetError):
            raise self.died() from None

    def receive(self):
        try:
            return receive(self.pipe)
        except (EOFError, ConnectionResetError):
            raise self.died() from None


def _shut_down(workers, owner):
    """Ends the processes and frees what they hold. Does nothing in a forked child, which inherits the iterator but not the processes."""
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
    """Passes over the data with workers: one, or with ``persistent_workers`` one after another."""

    def _start(self):
        loader = self._loader
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self._workers = []
        self._shut_down = weakref.finalize(self, _shut_down, self._workers, os.getpid())
        for worker_id in range(loader.num_workers):
            self._workers.append(_Worker(context, self._workers, (self._make_fetcher, loader.dataset, self._base_seed,
                                                                  loader.worker_init_fn, worker_id, loader.num_workers)))
        self._begin()

    def _begin(self):
        # PyTorch starts its sampler a second time here. A sampler that draws numbers when it starts must draw as often.
        self._indices = iter(self._loader._index_sampler)
        self._yielded = 0
        self._next_task = 0  # The number of the next task to send.
        self._next_given = 0  # The number of the batch whose turn it is.
        self._next_worker = 0
        self._answers = {}  # Batches that arrived early, by number.
        for worker in self._workers:
            worker.tasks = 0
            worker.ended = False
        for _ in range(self._loader.prefetch_factor * len(self._workers)):
            self._deal()

    def begin_again(self):
        """Begin another pass with the same workers; what is left of the last one is thrown away."""
        for worker in self._workers:
            worker.send(None)
        for worker in self._workers:
            while worker.receive() is not None:
                pass
        self._begin()

    def _deal(self):
        """Sends the next index to the worker whose turn it is. Does nothing if no index or no worker is left."""
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
        for _ in self._workers:
            worker = self._workers[self._next_worker]
            self._next_worker = (self._next_worker + 1) % len(self._workers)
            if not worker.ended and (self._loader.in_order or worker.tasks < self._loader.prefetch_factor):
                return worker
        return None

    def _next_batch(self):
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
        self._deal()
        if isinstance(answer, Failure):
            answer.reraise()
        return answer

    def _receive(self):
        """Returns the next answer of a worker, whichever sends one first."""
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
