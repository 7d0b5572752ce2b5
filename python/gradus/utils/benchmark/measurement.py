"""Measurement: the times of a task, with statistics."""
import contextlib
import dataclasses
import math
import statistics
import textwrap

import numpy

import gradus

__all__ = ["Measurement", "TaskSpec", "ordered_unique", "select_unit", "set_torch_threads", "trim_sigfig", "unit_to_english"]

# A time is shown with at most this number of significant digits.
_MOST_FIGURES = 4
_LEAST_INTERVAL = 25e-9  # seconds; the assumed resolution of the clock, as in PyTorch
_SPREAD, _GREAT_SPREAD = 0.1, 0.25  # values of iqr / median from which a warning and a stronger warning are shown
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}
_UNIT_NAMES = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}


@dataclasses.dataclass(repr=False, frozen=True)
class TaskSpec:
    """The measured statement, and its labels in tables."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self):
        """The label, or the statement if there is none, followed by the sub-label."""
        if self.label is None and "\n" in self.stmt:
            named = f" ({self.sub_label})" if self.sub_label else ""
            return f"stmt:{named}\n{textwrap.indent(self.stmt, '  ')}"
        return (self.stmt if self.label is None else self.label) + (f": {self.sub_label}" if self.sub_label else "")

    def setup_str(self):
        """Returns the setup as text, or "" if there is none."""
        if self.setup in ("", "pass"):
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self):
        """Returns title, description and setup as text."""
        return "\n".join(f"{part}\n" if "\n" in part else part for part in (self.title, self.description or "", self.setup_str()) if part)


_TASK_FIELDS = frozenset(field.name for field in dataclasses.fields(TaskSpec))


@dataclasses.dataclass(repr=False)
class Measurement:
    """The measured times of one task. Attributes of the TaskSpec, such as label, are also attributes of the measurement.

    raw_times: times in seconds. Each one is the total time of number_per_run successive runs of the statement.
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict | None = None

    def __getattr__(self, name):
        if name in _TASK_FIELDS:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute '{name}'")

    @property
    def times(self):
        """The mean time of one run, in seconds, for each time in raw_times."""
        return [time / self.number_per_run for time in self.raw_times]

    def _quantile(self, share):
        """Returns the quantile `share` (from 0 to 1) of the times in seconds, or -1 if there are no times."""
        return float(numpy.quantile(self.times, share)) if self.raw_times else -1.0

    @property
    def median(self):
        """The median of the times, in seconds."""
        return self._quantile(0.5)

    @property
    def mean(self):
        """The mean of the times, in seconds."""
        return statistics.fmean(self.times) if self.raw_times else -1.0

    @property
    def iqr(self):
        """The interquartile range of the times, in seconds."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self):
        """The number of significant digits of the median, from 1 to 4. The error of the median is estimated as half the width of the 90 % confidence
        interval of the mean of the times between the quartiles."""
        n = len(self.raw_times)
        middle = sorted(self.times)[n // 4:math.ceil(3 * n / 4)]
        interval = max(1.645 * statistics.pstdev(middle) / math.sqrt(len(middle)), _LEAST_INTERVAL)
        return min(max(math.floor(math.log10(self.median / interval)), 1), _MOST_FIGURES)

    def meets_confidence(self, threshold=_SPREAD):
        """Returns True if the interquartile range is less than the fraction `threshold` of the median."""
        return self.iqr / self.median < threshold

    @property
    def _warnings(self):
        """The warning about a large interquartile range, or ""."""
        if not self.raw_times or self.meets_confidence(_SPREAD):
            return ""
        cause = "This could indicate system fluctuation." if self.meets_confidence(_GREAT_SPREAD) else "This suggests significant environmental influence."
        return f"\n  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median measurement.\n           {cause}"

    @property
    def has_warnings(self):
        """True if the interquartile range is at least 10 % of the median."""
        return bool(self._warnings)

    @property
    def title(self):
        """The title of the task."""
        return self.task_spec.title

    @property
    def as_row_name(self):
        """The name of the measurement's row in a table."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self):
        unit, scale = select_unit(self.median)
        n = len(self.raw_times)
        lines = [object.__repr__(self), self.task_spec.summarize(), f"  {'Median: ' if n > 1 else ''}{self.median / scale:.2f} {unit}"]
        if n >= 4:
            low, high = (self._quantile(share) / scale for share in (0.25, 0.75))
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        per, threads = "per measurement," if n > 1 else ",", f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        lines.append(f"  {n} measurement{'s' if n > 1 else ''}, {self.number_per_run} runs {per} {threads}")
        return "\n".join(lines) + self._warnings

    @staticmethod
    def merge(measurements):
        """Returns one measurement for each task in `measurements`, with the times of all measurements of that task."""
        times = {}
        for measurement in measurements:
            times.setdefault(measurement.task_spec, []).extend(measurement.times)
        return [Measurement(1, found, task) for task, found in times.items()]


def select_unit(t):
    """Returns (unit, seconds): the name of a unit that suits a time of `t` seconds, and the length of that unit in seconds.

    >>> select_unit(0.02)
    ('ms', 0.001)
    """
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(math.floor(math.log10(t) / 3) if t > 0 else 0, "s")
    return unit, _UNITS[unit]


def unit_to_english(u):
    """Returns the English word for the unit `u`, e.g. "millisecond" for "ms"."""
    return _UNIT_NAMES[u]


def trim_sigfig(x, n):
    """Returns x rounded to n significant digits.

    >>> trim_sigfig(1234.0, 2)
    1200.0
    """
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = 10 ** (math.ceil(math.log10(abs(x))) - n)
    return float(round(x / scale) * scale)


def ordered_unique(elements):
    """Returns the distinct elements in order of their first occurrence."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n):
    """Returns a context manager in which operators use n threads."""
    before = gradus.get_num_threads()
    gradus.set_num_threads(n)
    try:
        yield
    finally:
        gradus.set_num_threads(before)
