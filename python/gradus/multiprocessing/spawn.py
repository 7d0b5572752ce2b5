"""Starts processes that run one function. An exception in a process is raised in the parent."""
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import traceback
import warnings

__all__ = ["ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "SpawnContext", "spawn", "start_processes"]


class ProcessException(Exception):
    """Raised if a process ended before its function returned."""

    def __init__(self, msg, error_index, pid):
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """Raised in the parent process if the function of a child process raised an exception. The message contains the traceback of that exception."""


class ProcessExitedException(ProcessException):
    """Raised in the parent process if a child process ended with a nonzero exit code or by a signal, and left no traceback."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def _run(fn, index, args, error_file):
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # The parent is also interrupted and reports the interrupt.
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """The processes that one call of start_processes has started."""

    def __init__(self, processes, error_files):
        self.processes = processes
        self.error_files = error_files
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self):
        """Returns the list of process ids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout=None, grace_period=None):
        """Waits until at least one process has ended, or `timeout` seconds have passed. Returns True if all processes have ended.

        If a process has failed, terminates all other processes, and kills those that still run after `grace_period` seconds. Afterwards raises
        ProcessRaisedException or ProcessExitedException for the failed process.
        """
        if not self.sentinels:
            return True
        failed = None
        for sentinel in multiprocessing.connection.wait(self.sentinels.keys(), timeout=timeout):
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        self._end(grace_period)
        self._raise(failed)

    def _end(self, grace_period):
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(grace_period)
            if process.is_alive():
                process.kill()
                process.join()

    def _raise(self, index):
        process, error_file = self.processes[index], self.error_files[index]
        if os.path.exists(error_file):
            with open(error_file, "rb") as file:
                text = pickle.load(file)
            os.unlink(error_file)
            raise ProcessRaisedException(f"\n\n-- Process {index} terminated with the following error:\n{text}", index, process.pid)
        code = process.exitcode
        if code >= 0:
            raise ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"<Unknown signal {-code}>"
        raise ProcessExitedException(f"process {index} terminated with signal {name}", index, process.pid, code, name)


SpawnContext = ProcessContext


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Starts `nprocs` processes, of which process i calls ``fn(i, *args)``, and waits for them unless `join` is False.

    Returns None, or a ProcessContext if `join` is False. Raises the exceptions of ProcessContext.join.
    """
    context = multiprocessing.get_context(start_method)
    processes, error_files = [], []
    for index in range(nprocs):
        descriptor, error_file = tempfile.mkstemp(prefix="gradus-process-")
        os.close(descriptor)
        os.unlink(error_file)
        process = context.Process(target=_run, args=(fn, index, args, error_file), daemon=daemon)
        process.start()
        processes.append(process)
        error_files.append(error_file)
    started = ProcessContext(processes, error_files)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Returns start_processes(fn, args, nprocs, join, daemon) with start_method="spawn", so that each process is a new interpreter.

    Example (not run here, because the new interpreters need a file to import)::

        def work(rank, shared):
            shared[rank] += 1

        if __name__ == "__main__":
            shared = torch.zeros(2).share_memory_()
            torch.multiprocessing.spawn(work, args=(shared,), nprocs=2)
    """
    if start_method != "spawn":
        warnings.warn(f"This method only supports start_method=spawn (got: {start_method}).\nTo use a different start_method use:\n\t\t "
                      "torch.multiprocessing.start_processes(...)", FutureWarning, stacklevel=2)
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
