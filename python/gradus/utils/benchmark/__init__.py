"""Benchmarks of statements: Timer measures, Measurement holds the times, Compare prints a table of several measurements.

    >>> timer = Timer("x + x", setup="x = torch.ones(10)", label="sum", description="10")
    >>> timer.timeit(100).number_per_run
    100
"""
from gradus import _stand_ins

from .compare import Colorize, Compare
from .measurement import Measurement, TaskSpec, ordered_unique, select_unit, set_torch_threads, trim_sigfig, unit_to_english
from .timer import Language, Timer

__all__ = ["Colorize", "Compare", "Language", "Measurement", "TaskSpec", "Timer", "ordered_unique", "select_unit", "set_torch_threads", "trim_sigfig",
           "unit_to_english"]

__getattr__ = _stand_ins.of_module(__name__)
