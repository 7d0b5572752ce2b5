"""Futures, which hold results that another thread may set."""
import threading

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """Holds a result that is set once, possibly by another thread. wait() blocks until the result is set, and returns it.

    >>> future = Future()
    >>> doubled = future.then(lambda done: done.value() * 2)
    >>> future.set_result(4)
    >>> future.done(), doubled.wait()
    (True, 8)
    """

    def __init__(self, *, devices=None):
        self._set = threading.Event()
        self._lock = threading.Lock()
        self._result = self._exception = None
        self._callbacks = []

    def done(self):
        """True if a result or an exception has been set."""
        return self._set.is_set()

    def wait(self):
        """Waits for the result and returns it. If an exception was set instead, raises that exception."""
        self._set.wait()
        return self.value()

    def value(self):
        """Returns the result without waiting, or raises the exception that was set. Raises RuntimeError if neither a result nor an exception has been
        set."""
        if not self.done():
            raise RuntimeError("The Future has no value yet: call wait()")
        if self._exception is not None:
            raise self._exception
        return self._result

    def _finish(self, result, exception):
        with self._lock:
            if self.done():
                raise RuntimeError("Attempting to mark a completed Future as complete again. Note that a Future can only be marked completed once.")
            self._result, self._exception = result, exception
            self._set.set()
        for callback in self._callbacks:
            callback(self)

    def set_result(self, result):
        """Sets the result and calls the callbacks. RuntimeError: a result or an exception has already been set."""
        self._finish(result, None)

    def set_exception(self, result):
        """Sets an exception, which wait() then raises, and calls the callbacks. AssertionError: `result` is not an exception."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def add_done_callback(self, callback):
        """Calls callback(self) as soon as a result or an exception is set, or at once if one is already set."""
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback):
        """Returns a new Future for the result of callback(self). The callback is called as soon as this Future is done. If it raises an exception,
        the new Future gets that exception."""
        result = Future()

        def run(done):
            try:
                result.set_result(callback(done))
            except Exception as error:
                result.set_exception(error)

        self.add_done_callback(run)
        return result


def collect_all(futures):
    """Returns a Future whose result is the list of the given futures. The result is set when all of them are done."""
    result, left, lock = Future(), [len(futures)], threading.Lock()

    def one_done(_):
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            result.set_result(futures)

    for future in futures:
        future.add_done_callback(one_done)
    if not futures:
        result.set_result(futures)
    return result


def wait_all(futures):
    """Waits for all futures and returns the list of their results.

    >>> future = Future()
    >>> future.set_result(1)
    >>> wait_all([future])
    [1]
    """
    return [future.wait() for future in collect_all(futures).wait()]
