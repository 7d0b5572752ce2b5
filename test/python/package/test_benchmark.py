"""Checks that measurements and tables of utils.benchmark have PyTorch's texts, and that Timer measures time."""
import gradus
import pytest
from both import submodule
from nn_programs import attempt, same

SPREADS = [[1e-4, 1.1e-4, 1.2e-4, 1.05e-4, 1.3e-4], [1e-3, 1.1e-3], [2e-4] * 5, [1e-2, 9e-2, 2e-2, 1e-1, 5e-2], [3.3e-6], [1.2, 1.21, 1.22, 1.23, 1.24, 1.25], [5e-8] * 4]


def measurement(t, times, number=10, **task):
    benchmark = submodule(t, "utils.benchmark")
    task = {"stmt": "x + y", "setup": "pass", **task}
    kind = benchmark.TaskSpec if t is gradus else submodule(t, "utils.benchmark.utils.common").TaskSpec
    return benchmark.Measurement(number, times, kind(**task))


@same(tolerance=1e-9)
def test_properties_and_repr_of_measurements(t):
    for times in SPREADS:
        for task in ({}, {"label": "L", "sub_label": "s", "description": "d"}, {"stmt": "a\nb", "setup": "x = 1\ny = 2", "num_threads": 2}, {"setup": "x = 1", "sub_label": "s"}):
            m = measurement(t, times, **task)
            yield repr(m).split("\n")[1:], m.median, m.mean, m.iqr, m.significant_figures, m.has_warnings, m.times, m.title, m.as_row_name, m.stmt, m.num_threads
            yield m.meets_confidence(), m.meets_confidence(0.5), m.task_spec.summarize()


@same(tolerance=1e-6)
def test_formatting_of_numbers_and_units(t):
    benchmark = submodule(t, "utils.benchmark")
    for x in (1.5e-9, 3e-6, 0.0123, 0.999, 1.0, 12.0, 12345.0):
        yield benchmark.select_unit(x), [benchmark.trim_sigfig(x, n) for n in (1, 2, 4)], benchmark.unit_to_english(benchmark.select_unit(x)[0])
    yield benchmark.ordered_unique([3, 1, 3, 2, 1])


@same
def test_compare_prints_the_tables_of_pytorch(t):
    results = [measurement(t, times, label=label, sub_label=f"s{i % 3}", description=f"d{i % 2}", num_threads=1 + i % 2)
               for i, times in enumerate(SPREADS) for label in ("first", "second" if i % 2 else "first")]
    compare = submodule(t, "utils.benchmark").Compare(results)
    yield str(compare)
    compare.trim_significant_figures()
    yield str(compare)
    compare.highlight_warnings()
    yield str(compare)
    for rowwise in (False, True):
        compare.colorize(rowwise=rowwise)
        yield str(compare)
    yield attempt(compare.extend_results, [3])[0]


def test_timer_timeit():
    benchmark = submodule(gradus, "utils.benchmark")
    timer = benchmark.Timer("x + step\n", setup="\n    x = torch.ones(3)\n    ", globals={"step": 2}, label="add", num_threads=1)
    before = gradus.get_num_threads()
    one = timer.timeit(100)
    assert one.number_per_run == 100 and len(one.times) == 1 and one.median > 0 and gradus.get_num_threads() == before
    assert repr(one).split("\n")[1] == "add" and "setup: x = torch.ones(3)" in repr(one)


def test_blocked_and_adaptive_autorange():
    """The statement advances a fake clock by 1/1024 of a second, so that the number of runs in each block is known."""
    benchmark = submodule(gradus, "utils.benchmark")
    calls, clock = [], [0.0]
    timer = benchmark.Timer("clock[0] += 1 / 1024", timer=lambda: clock[0], globals={"clock": clock})
    blocks = timer.blocked_autorange(min_run_time=8 / 1024, callback=lambda *call: calls.append(call))
    assert calls == [(1, 1 / 1024)] * 8 and blocks.raw_times == [1 / 1024] * 8 and blocks.median == 1 / 1024
    assert len(timer.adaptive_autorange(0.5, min_run_time=8 / 1024).times) == 8 and len(timer.adaptive_autorange(0.5, min_run_time=1, max_run_time=15 / 1024).times) == 16


def test_wrong_arguments_of_timer_are_refused():
    benchmark = submodule(gradus, "utils.benchmark")
    for call, error in ((lambda: benchmark.Timer(3), ValueError), (lambda: benchmark.Timer(language="c++"), NotImplementedError), (lambda: benchmark.Timer(language="x"), ValueError),
                        (lambda: benchmark.Timer(global_setup="x"), ValueError), (lambda: benchmark.Timer().autorange(), NotImplementedError),
                        (lambda: benchmark.Timer().collect_callgrind(), NotImplementedError)):
        with pytest.raises(error):
            call()
