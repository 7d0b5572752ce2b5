"""A profiler, which records how often each operator is called by a thread and how long the calls take.

The profiler is a TorchFunctionMode (gradus.overrides), which receives every call of a thread and measures the call's time. Work inside of the
library, including backward passes, counts for the call that started it. Only CPU activity is recorded.
"""
import functools
import json
import os
import socket
import time
from enum import Enum

from gradus import _stand_ins
from gradus.overrides import TorchFunctionMode

__all__ = ["ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "schedule", "supported_activities", "tensorboard_trace_handler"]


class ProfilerActivity(Enum):
    """The kinds of activity. Only CPU activity is recorded."""

    CPU, XPU, MTIA, CUDA, HPU, PrivateUse1 = range(6)


class ProfilerAction(Enum):
    """The action that a schedule returns for a step."""

    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)


def supported_activities():
    """Returns the set of activities that can be recorded, which contains only the CPU.

    >>> supported_activities() == {ProfilerActivity.CPU}
    True
    """
    return {ProfilerActivity.CPU}


def kineto_available():
    """Returns False, because PyTorch's Kineto library is not used."""
    return False


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """Returns a function that maps a step number to a ProfilerAction. After `skip_first` steps there are cycles of `wait` idle steps, `warmup` steps
    and `active` recorded steps. There are `repeat` cycles. If `repeat` is 0, the cycles never end.

    >>> plan = schedule(wait=1, warmup=1, active=2)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if not (wait >= 0 and warmup >= 0 and active > 0 and repeat >= 0 and skip_first >= 0):
        raise AssertionError("Invalid profiler schedule arguments")

    def action(step):
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle, place = divmod(step, wait + warmup + active)
        if 0 < repeat <= cycle or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == wait + warmup + active - 1 else ProfilerAction.RECORD

    return action


class _Event:
    """One recorded call of an operator, or one record_function block. `begin` and `end` are times in nanoseconds. `depth` is the number of enclosing
    events."""

    def __init__(self, name, begin, end, depth):
        self.name = self.key = name
        self.begin, self.end, self.depth = begin, end, depth
        self.children_time = 0

    @property
    def cpu_time_total(self):
        """Returns the time from beginning to end in microseconds."""
        return (self.end - self.begin) / 1000

    @property
    def self_cpu_time_total(self):
        """Returns the time in microseconds without the time of nested events."""
        return self.cpu_time_total - self.children_time / 1000


class _Average:
    """The number of the events of one name, and the sums of their times in microseconds."""

    def __init__(self, key):
        self.key, self.count, self.cpu_time_total, self.self_cpu_time_total = key, 0, 0.0, 0.0

    @property
    def cpu_time(self):
        """Returns the average time of a call in microseconds."""
        return self.cpu_time_total / self.count


class _Events(list):
    """A list of recorded events or of averages."""

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55, max_shapes_column_width=80, header=None, top_level_events_only=False):
        """Returns the events or averages as a text table, sorted by the attribute `sort_by` in descending order."""
        rows = sorted(self, key=lambda row: -getattr(row, sort_by)) if sort_by and all(hasattr(row, sort_by) for row in self) else list(self)
        total = sum(row.self_cpu_time_total for row in self)
        columns = ["Name", "Self CPU %", "Self CPU", "CPU total", "CPU time avg", "# of Calls"]
        cells = [[row.key[:max_name_column_width], f"{100 * row.self_cpu_time_total / total if total else 0:.2f}%", _readable(row.self_cpu_time_total),
                  _readable(row.cpu_time_total), _readable(row.cpu_time_total / getattr(row, "count", 1)), str(getattr(row, "count", 1))] for row in rows[:row_limit]]
        widths = [max(map(len, column)) for column in zip(columns, *cells)]
        line = "  ".join("-" * width for width in widths)
        text = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in [columns, *cells]]
        return "\n".join([*([header] if header else []), line, text[0], line, *text[1:], line, f"Self CPU time total: {_readable(total)}", ""])

    def __str__(self):
        return self.table()

    def total_average(self):
        """Returns one object with the number of all events and the sums of their times in microseconds."""
        average = _Average("Total")
        for event in self:
            average.count += getattr(event, "count", 1)
            average.cpu_time_total += event.cpu_time_total
            average.self_cpu_time_total += event.self_cpu_time_total
        return average


def _readable(microseconds):
    return f"{microseconds / 1e6:.3f}s" if microseconds >= 1e6 else f"{microseconds / 1e3:.3f}ms" if microseconds >= 1e3 else f"{microseconds:.3f}us"


class _Recorder(TorchFunctionMode):
    """The TorchFunctionMode that measures the time of calls."""

    def __init__(self):
        super().__init__()
        self.events, self.open = [], []

    def begin(self, name):
        event = _Event(name, time.perf_counter_ns(), None, len(self.open))
        self.open.append(event)
        self.events.append(event)

    def finish(self):
        event = self.open.pop()
        event.end = time.perf_counter_ns()
        if self.open:
            self.open[-1].children_time += event.end - event.begin

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.begin(f"aten::{func.__name__}")
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self.finish()


_recorders = []  # active recorders, the innermost last


class record_function:
    """Context manager and decorator that records a block of code, or the calls of a function, as an event.

    >>> with profile() as prof, record_function("block"):
    ...     x = gradus.ones(3) + 1
    >>> sorted(event.key for event in prof.events())
    ['aten::add', 'aten::ones', 'block']
    """

    def __init__(self, name, args=None):
        self.name = name

    def __enter__(self):
        self._recorder = _recorders[-1] if _recorders else None
        if self._recorder is not None:
            self._recorder.begin(self.name)
        return self

    def __exit__(self, *exception):
        if self._recorder is not None and self._recorder.open:
            self._recorder.finish()

    def __call__(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with record_function(self.name):
                return function(*args, **kwargs)

        return wrapped


class profile:
    """Context manager that records the operator calls of the current thread.

    Without a schedule everything is recorded, and on_trace_ready(self) is called at the end. With a schedule, each call of step() begins a new step,
    and on_trace_ready(self) is called after the last recorded step of each cycle. Shapes, memory, stacks and flops are not recorded.
    """

    def __init__(self, *, activities=None, schedule=None, on_trace_ready=None, record_shapes=False, profile_memory=False, with_stack=False, with_flops=False,
                 with_modules=False, experimental_config=None, execution_trace_observer=None, acc_events=False, use_cuda=None, custom_trace_id_callback=None,
                 post_processing_timeout_s=None):
        self.activities = set(activities) if activities else supported_activities()
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.on_trace_ready, self.step_num = on_trace_ready, 0
        self._is_scheduled, self._recorder, self._events = schedule is not None, None, []
        self._ends_a_cycle = False  # True if the next recorded step starts a new list of events

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exception):
        self.stop()

    def start(self):
        """Starts the first step."""
        self._enter_step()

    def stop(self):
        """Ends the last step. If that step was recorded, calls on_trace_ready(self)."""
        if self._leave_step() and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self):
        """Ends the current step, increments step_num, and starts the next step. If the schedule returned RECORD_AND_SAVE for the ended step, calls
        on_trace_ready(self) before the next step starts."""
        self._leave_step()
        was_saved = self._was_saved()
        self._ends_a_cycle = self._ends_a_cycle or was_saved
        self.step_num += 1
        if was_saved and self.on_trace_ready is not None:
            self.on_trace_ready(self)
        self._enter_step()

    def _was_saved(self):
        return self._is_scheduled and self.schedule(self.step_num) is ProfilerAction.RECORD_AND_SAVE

    def _enter_step(self):
        if self.schedule(self.step_num) in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            if self._ends_a_cycle:
                self._events, self._ends_a_cycle = [], False
            self._recorder = _Recorder()
            self._recorder.__enter__()
            _recorders.append(self._recorder)
            if self._is_scheduled:
                self._recorder.begin(f"ProfilerStep#{self.step_num}")

    def _leave_step(self):
        """Ends the current step. Returns True if it has been recorded."""
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return False
        while recorder.open:
            recorder.finish()
        _recorders.remove(recorder)
        recorder.__exit__(None, None, None)
        self._events += recorder.events
        return True

    def events(self):
        """Returns the list of all events, sorted by the time at which they began."""
        return _Events(self._events)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        """Returns a list with one object for each event name. The object holds the number of events of that name and the sums of their times.
        The list's method table() returns a text table.

        >>> with profile() as prof:
        ...     x = gradus.ones(3) * 2 * 3
        >>> [(average.key, average.count) for average in prof.key_averages()]
        [('aten::ones', 1), ('aten::mul', 2)]
        """
        found = {}
        for event in self._events:
            average = found.setdefault(event.key, _Average(event.key))
            average.count += 1
            average.cpu_time_total += event.cpu_time_total
            average.self_cpu_time_total += event.self_cpu_time_total
        return _Events(found.values())

    def export_chrome_trace(self, path):
        """Writes the events to a JSON file, which chrome://tracing and Perfetto can read."""
        events = [{"ph": "X", "cat": "cpu_op", "name": event.name, "pid": os.getpid(), "tid": 0, "ts": event.begin / 1000, "dur": event.cpu_time_total} for event in self._events]
        with open(path, "w") as file:
            json.dump({"schemaVersion": 1, "traceEvents": events}, file)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Raises NotImplementedError, because stacks are not recorded."""
        raise NotImplementedError("profile.export_stacks: stacks are not recorded")

    def add_metadata(self, key, value):
        """Does nothing, because traces have no metadata."""

    add_metadata_json = preset_metadata_json = add_metadata


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """Returns a function for on_trace_ready that writes a trace into the folder `dir_name`. NotImplementedError: `use_gzip` is true."""
    if use_gzip:
        raise NotImplementedError("tensorboard_trace_handler: traces are not compressed")

    def handle(prof):
        os.makedirs(dir_name, exist_ok=True)
        name = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        prof.export_chrome_trace(os.path.join(dir_name, f"{name}.{time.time_ns()}.pt.trace.json"))

    return handle


__getattr__ = _stand_ins.of_module(__name__)
