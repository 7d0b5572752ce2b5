"""Compare, which prints measurements as one table for each label."""
import math
from enum import Enum

from .measurement import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

__all__ = ["Colorize", "Compare"]

_BEST, _GOOD, _BAD, _VERY_BAD, _BOLD, _END = "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m", "\033[1m", "\033[0m"


class Colorize(Enum):
    """How Compare colors times: not at all, or by comparison with the best time of the column or of the row."""

    NONE, COLUMNWISE, ROWWISE = "none", "columnwise", "rowwise"


def _coloured(text, value, best):
    """Returns `text`, which shows the time `value`, in a color that tells how `value` compares with the shortest time `best`.

    The colors mean: within 1 % or 100 ns of `best`; within 10 % of it; at least twice `best`; at least 5 times `best`. Other times have no color.
    """
    if value <= best * 1.01 or value <= best + 100e-9:
        return _BEST + _BOLD + text + _END * 2
    if value <= best * 1.1:
        return _GOOD + _BOLD + text + _END * 2
    if value >= best * 5:
        return _VERY_BAD + _BOLD + text + _END * 2
    return _BAD + text + _END * 2 if value >= best * 2 else text


class _Column:
    """The format of the times in a column, which aligns their decimal points."""

    def __init__(self, results, scale, trims, warns):
        found = [result for result in results if result]
        self._scale, self._trims, self._warns = scale, trims, warns and any(result.has_warnings for result in found)
        digits = [math.ceil(math.log10(result.median / scale)) for result in found]
        decimals = min(max(result.significant_figures - n, 0) for n, result in zip(digits, found)) if trims else 1
        self._template = f"{{:>{max(digits) + decimals + (decimals > 0)}.{decimals}f}}"

    def text(self, result):
        """Returns the time of a measurement as text, or spaces of the same width if `result` is None."""
        if result is None:
            return " " * len(self._written(1, 1, ""))
        warning = f" (! {result.iqr / result.median * 100:.0f}%)" if result.has_warnings else ""
        return self._written(result.median / self._scale, result.significant_figures, warning)

    def _written(self, value, figures, warning):
        """Returns the number `value` as text, rounded to `figures` digits if the table trims digits, followed by the text `warning`."""
        return self._template.format(trim_sigfig(value, figures) if self._trims else value) + (warning.rjust(7) if self._warns else "")


class _Table:
    """A table of times, with a row for each (threads, env, name) and a column for each description."""

    def __init__(self, results, colorize, trims, warns):
        self._results, self._colorize, self._warns = results, colorize, warns
        self._unit, self._scale = select_unit(min(result.median for result in results))
        self._rows = sorted(ordered_unique((r.num_threads, r.env, r.as_row_name) for r in results), key=lambda row: (row[0], row[1] or ""))
        self._columns = ordered_unique(r.description for r in results)
        self._found = {((r.num_threads, r.env, r.as_row_name), r.description): r for r in results}
        self._texts = [_Column([self._at(row, column) for row in self._rows], self._scale, trims, warns) for column in self._columns]
        names = {result.env or "Unspecified env" for result in results}
        self._env_width = max(map(len, names)) + 4 if len(names) > 1 else 4

    def _at(self, row, column):
        """Returns the measurement in a row and column of the table, or None if there is none."""
        return self._found.get((row, column))

    def _row_name(self, row, before):
        """Returns the name of `row`. In a table with several envs, the row's env precedes the name if its env or number of threads differs from
        that of `before`, the preceding row."""
        shows = self._env_width > 4 and (before is None or row[:2] != before[:2])
        return "  " + (f"({row[1] or 'Unspecified env'})" if shows else "").ljust(self._env_width) + row[2]

    def _best(self, row, column):
        """Returns the smallest time of `row` if times are compared by row; otherwise that of `column` among rows with the same number of threads."""
        rows = [row] if self._colorize is Colorize.ROWWISE else [other for other in self._rows if other[0] == row[0]]
        columns = self._columns if self._colorize is Colorize.ROWWISE else [column]
        return min(self._at(r, c).median for r in rows for c in columns if self._at(r, c))

    def render(self):
        """Returns the table as text."""
        names = [self._row_name(row, before) for row, before in zip(self._rows, [None, *self._rows])]
        cells = [[text.text(self._at(row, column)) for column, text in zip(self._columns, self._texts)] for row in self._rows]
        header = ["", *(column or "" for column in self._columns)]
        widths = [max(map(len, column)) for column in zip(header, *([name, *row] for name, row in zip(names, cells)))]
        lines = ["  |  ".join(text.center(width) for text, width in zip(header, widths))]
        total, threads = len(lines[0]), None
        for row, name, texts in zip(self._rows, names, cells):
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(total, "-"))
            lines.append("  |  ".join([name.ljust(widths[0]), *(self._cell(row, column, text.center(width)) for column, text, width in
                                                                zip(self._columns, texts, widths[1:]))]))
        label = self._results[0].label
        warned = self._warns and any(result.has_warnings for result in self._results)
        return "\n".join([f"[{(' ' + (label or '') + ' ').center(total - 2, '-')}]", *lines, "", f"Times are in {unit_to_english(self._unit)}s ({self._unit}).",
                          *(["(! XX%) Measurement has high variance, where XX is the IQR / median * 100."] if warned else []), ""])

    def _cell(self, row, column, text):
        """Returns the text of a cell in its color."""
        result = self._at(row, column)
        return text if result is None or self._colorize is Colorize.NONE else _coloured(text, result.median, self._best(row, column))


class Compare:
    """Measurements that print() shows side by side. Measurements of the same task are merged.

    >>> from gradus.utils.benchmark import Measurement, TaskSpec
    >>> print(Compare([Measurement(1, [2e-6] * 5, TaskSpec("x + y", "pass", description="ours"))]))
    [--------  --------]
                 |  ours
    1 threads: ---------
          x + y  |  2.0
    <BLANKLINE>
    Times are in microseconds (us).
    <BLANKLINE>
    """

    def __init__(self, results):
        self._results, self._trims, self._colorize, self._warns = [], False, Colorize.NONE, False
        self.extend_results(results)

    def extend_results(self, results):
        """Adds measurements. Raises ValueError if an element is not a Measurement."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self):
        """Makes print() show only the significant digits of the times."""
        self._trims = True

    def colorize(self, rowwise=False):
        """Makes print() show the times in colors. The color of a time tells how the time compares with the best one in its column or, if `rowwise` is
        true, in its row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self):
        """Makes print() mark times with a large interquartile range."""
        self._warns = True

    def print(self):
        """Prints the tables."""
        print(self)

    def __str__(self):
        groups = {}
        for result in Measurement.merge(self._results):
            groups.setdefault(result.label, []).append(result)
        return "\n".join(_Table(group, self._colorize, self._trims, self._warns).render() for group in groups.values())
