"""Timer, which runs a statement repeatedly and measures the time."""
import statistics
import textwrap
import timeit
from enum import Enum

import gradus

from .measurement import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer"]

# the largest number of runs of a statement that are timed together, as in PyTorch
_MOST_RUNS = 2**31 - 1


class Language(Enum):
    """The language of a timed statement. C++ is not supported."""

    PYTHON, CPP = range(2)


def _dedented(code):
    """Returns code without common indentation and surrounding blank lines."""
    return textwrap.dedent(code).removeprefix("\n").rstrip()


class Timer:
    """Measures the time of the statement `stmt`, given as text. The statement `setup` runs before it and is not measured.

    globals: the names that the statement can use; ``torch`` is gradus unless globals define it. num_threads: the number of threads that operators use
    during the measurement. label, sub_label, description, env: names in the tables of Compare. Each label has a table, each sub-label (and each
    env) a row, each description a column. Raises ValueError for an invalid argument, NotImplementedError for C++.
    """

    def __init__(self, stmt="pass", setup="pass", global_setup="", timer=timeit.default_timer, globals=None, label=None, sub_label=None, description=None, env=None,
                 num_threads=1, language=Language.PYTHON):
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            raise NotImplementedError("Timer: statements in C++ cannot be measured")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`.")
        stmt, setup = _dedented(stmt), _dedented(setup)
        self._timer = timeit.Timer(stmt, setup, timer, {"torch": gradus} | (globals or {}))
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _time(self, number):
        """Returns the seconds that `number` runs take, at least 1e-9."""
        return max(self._timer.timeit(number), 1e-9)

    def _measured(self, number, times):
        """Returns a Measurement of this task with the given times, each of which is the time of `number` runs."""
        return Measurement(number, times, self._task_spec)

    def timeit(self, number=1000000):
        """Returns a Measurement with a single time, that of `number` runs. Before them come number / 100 runs (at least 2) that are not measured."""
        with set_torch_threads(self._task_spec.num_threads):
            self._time(max(number // 100, 2))
            return self._measured(number, [self._time(number)])

    def repeat(self, repeat=-1, number=-1):
        """Raises NotImplementedError; blocked_autorange repeats measurements."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback=None):
        """Raises NotImplementedError; blocked_autorange chooses the number of runs."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time):
        """Returns the number of runs to time together, a power of 10. With this number the timer's overhead is at most 1e-4 of the measured time, or
        the measured time exceeds min_run_time. The runs that this method makes also serve as warm-up."""
        overhead, number = statistics.median_low([self._time(0) for _ in range(5)]), 1
        while True:
            time = self._time(number)
            if (overhead / time <= 1e-4 and time >= min_run_time / 1000) or time > min_run_time or number * 10 > _MOST_RUNS:
                return number
            number *= 10

    def _blocks(self, number, is_enough, min_run_time, max_run_time, callback):
        """Measures the time of `number` runs again and again. Returns the list of these times in seconds.

        The measurement ends when the times add up to min_run_time and is_enough(times) is true, or when they add up to max_run_time. callback(number,
        time), unless it is None, is called after each time.
        """
        times = []
        while sum(times) < min_run_time or not is_enough(times):
            times.append(self._time(number))
            if callback:
                callback(number, times[-1])
            if max_run_time and sum(times) > max_run_time:
                break
        return times

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """Times blocks of several runs until their times add up to min_run_time seconds. Returns the Measurement of these times.

        callback: a function that is called with (runs, seconds) after each block.

        >>> Timer("1 + 1").blocked_autorange(min_run_time=0.001).median > 0
        True
        """
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            return self._measured(number, self._blocks(number, lambda times: True, min_run_time, None, callback))

    def adaptive_autorange(self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None):
        """Measures repeatedly, until the interquartile range is below `threshold` times the median or max_run_time seconds have passed. Returns the
        Measurement with all times."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(0.05)

            def is_enough(times):
                return len(times) > 3 and self._measured(number, times).meets_confidence(threshold)

            return self._measured(number, self._blocks(number, is_enough, min_run_time, max_run_time, callback))

    def collect_callgrind(self, number=100, *, repeats=None, collect_baseline=True, retain_out_file=False):
        """Raises NotImplementedError; run the program under valgrind --tool=callgrind to count instructions."""
        raise NotImplementedError("Timer.collect_callgrind: instructions are not counted here; run the program under valgrind --tool=callgrind")
