"""Compares learning-rate schedules that have random options with PyTorch: fifty steps, states, explicit epochs, resumed schedules, warnings and
errors."""
import inspect
import random
import re
import warnings

import pytest
from nn_programs import gradus
from oracle import torch

DRAWN = {
    "LambdaLR": {"lr_lambda": [lambda e: 0.9**e, lambda e: 1 / (e + 1)]},
    "MultiplicativeLR": {"lr_lambda": [lambda e: 0.95, lambda e: 1 - 1 / (e + 2)]},
    "StepLR": {"step_size": [1, 3, 10], "gamma": [0.1, 0.5, 1.5]},
    "MultiStepLR": {"milestones": [[2, 5, 5, 7], [], [30, 10]], "gamma": [0.1, 0.5]},
    "ConstantLR": {"factor": [0.5, 1.0, 0.0], "total_iters": [0, 1, 5, 60]},
    "LinearLR": {"start_factor": [0.3, 1.0], "end_factor": [0.0, 0.8, 1.0], "total_iters": [1, 6, 60]},
    "ExponentialLR": {"gamma": [0.9, 1.0, 1.01]},
    "PolynomialLR": {"total_iters": [1, 7, 60], "power": [1.0, 2.0, 0.5]},
    "CosineAnnealingLR": {"T_max": [1, 5, 60], "eta_min": [0.0, 0.01]},
    "CosineAnnealingWarmRestarts": {"T_0": [1, 3, 10], "T_mult": [1, 2], "eta_min": [0.0, 0.001]},
    "CyclicLR": {"base_lr": [0.01, [0.01, 0.02]], "max_lr": [0.1, [0.2, 0.3]], "step_size_up": [3, 20], "step_size_down": [None, 4],
                 "mode": ["triangular", "triangular2", "exp_range"], "gamma": [1.0, 0.9], "cycle_momentum": [True, False], "scale_fn": [None, lambda x: 0.5],
                 "scale_mode": ["cycle", "iterations"]},
    "OneCycleLR": {"max_lr": [0.5, [0.5, 0.6]], "total_steps": [51, 60], "pct_start": [0.3, 0.5], "anneal_strategy": ["cos", "linear"],
                   "cycle_momentum": [True, False], "three_phase": [True, False], "div_factor": [25.0, 10.0], "final_div_factor": [1e4, 10.0]},
}


def optimizer_of(t, kind="SGD", **more):
    a, b = (t.ones(1, requires_grad=True) for _ in range(2))
    options = {"lr": 0.1, **({"momentum": 0.9} if kind == "SGD" else {}), **more}
    return getattr(t.optim, kind)([{"params": [a]}, {"params": [b], "lr": 0.3}], **options)


def comparable(value):
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [comparable(item) for item in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    return "object" if callable(value) or type(value).__module__.startswith(("torch", "gradus")) else value


def recorded(function):
    """Returns the result or the exception of the call, and its warnings, as text. The ends of some texts, which give advice, differ between the
    libraries and are cut."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = comparable(function())
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
    texts = [f"{warning.category.__name__}: {warning.message}" for warning in caught]
    return [re.split(r" Please open an issue|: load the state|\.\\nThis typically", text)[0].replace("gradus", "torch") if isinstance(text, str) else text
            for text in (result, *texts)]


def options_of(optimizer):
    return [{key: comparable(value) for key, value in group.items() if key != "params"} for group in optimizer.param_groups]


def run(t, make, kind, steps=50, epochs=None, **more):
    """Yields the outcome of making a schedule and, for each of `steps` steps, the outcome of step(), the optimizer's options and get_last_lr()."""
    optimizer = optimizer_of(t, kind, **more)
    schedule = None

    def start():
        nonlocal schedule
        schedule = make(t.optim.lr_scheduler, optimizer)
    yield recorded(start)
    if schedule is None:
        return
    yield options_of(optimizer)
    for step in range(steps):
        optimizer.step()
        yield recorded(lambda: schedule.step(*([] if epochs is None else [epochs[step]]))), options_of(optimizer), recorded(schedule.get_last_lr)
        if step == steps // 2:
            yield recorded(schedule.get_lr)
            state = schedule.state_dict()
            yield {key: comparable(value) for key, value in state.items() if key != "_schedulers"}
            schedule.load_state_dict(state)
    yield sorted(key for key in vars(schedule) if not key.startswith("_"))


def compare(make, kind, **more):
    for got, wanted in zip(run(gradus, make, kind, **more), run(torch, make, kind, **more), strict=True):
        assert got == wanted


def draws(name, count):
    draw = random.Random(name)
    return [{key: draw.choice(values) for key, values in DRAWN[name].items()} for _ in range(count)]


@pytest.mark.parametrize("kind", ["SGD", "Adam", "Adagrad"])
@pytest.mark.parametrize("name", DRAWN)
def test_learning_rates_of_schedules(name, kind):
    for options in draws(name, 6):
        compare(lambda s, o: getattr(s, name)(o, **options), kind)


@pytest.mark.parametrize("name", DRAWN)
def test_step_with_explicit_epochs(name):
    for options in draws(name, 3):
        compare(lambda s, o: getattr(s, name)(o, **options), "SGD", epochs=[0, 1, 2, 5, 4, 10, 0, 3.5, 20, 21], steps=10)


@pytest.mark.parametrize("name", DRAWN)
def test_schedules_resumed_with_last_epoch(name):
    def resumed(s, o):
        for group in o.param_groups:
            group.update(initial_lr=group["lr"], max_lr=0.4, min_lr=0.01, base_momentum=0.8, max_momentum=0.9)
        return getattr(s, name)(o, **options, last_epoch=4)
    for options in draws(name, 3):
        compare(resumed, "SGD", steps=20)
        compare(lambda s, o: getattr(s, name)(o, **options, last_epoch=4), "SGD", steps=2)


@pytest.mark.parametrize("name", DRAWN)
def test_schedules_of_tensor_learning_rates(name):
    def run(t):
        a, b = (t.ones(1, requires_grad=True) for _ in range(2))
        optimizer = t.optim.Adam([{"params": [a]}, {"params": [b], "lr": t.tensor(0.25)}], lr=t.tensor(0.5))
        schedule = getattr(t.optim.lr_scheduler, name)(optimizer, **options)
        rates = []
        for _ in range(12):
            optimizer.step()
            schedule.step()
            rates += [group["lr"].item() for group in optimizer.param_groups]
        return rates, [type(group["lr"]).__name__ for group in optimizer.param_groups]
    for options in draws(name, 2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours, theirs = run(gradus), run(torch)
        assert ours[1] == theirs[1] and ours[0] == pytest.approx(theirs[0], rel=1e-6)


def chains():
    def sequence(s, o):
        return s.SequentialLR(o, [s.LinearLR(o, 0.1, total_iters=5), s.CosineAnnealingLR(o, 20), s.ExponentialLR(o, 0.9)], [5, 25])
    return {
        "sequence": sequence,
        "chain": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9), s.StepLR(o, 7, 0.5)]),
        "chain of sequences": lambda s, o: s.ChainedScheduler([sequence(s, o), s.ExponentialLR(o, 0.99)], o),
        "sequence of restarts": lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.5, 3), s.CosineAnnealingWarmRestarts(o, 4)], [3]),
        "sequence of cycles": lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.5, 3), s.CyclicLR(o, 0.01, 0.1, 3)], [3]),
        "no milestone": lambda s, o: s.SequentialLR(o, [s.ExponentialLR(o, 0.9)], []),
        "too many milestones": lambda s, o: s.SequentialLR(o, [s.ExponentialLR(o, 0.9)], [1, 2]),
        "nothing": lambda s, o: s.SequentialLR(o, [], []),
        "no chain": lambda s, o: s.ChainedScheduler([]),
        "another's": lambda s, o: s.ChainedScheduler([s.StepLR(optimizer_of(gradus if "gradus" in s.__name__ else torch), 1)], o),
        "one without get_last_lr": lambda s, o: s.SequentialLR(o, [s.ExponentialLR(o, 0.9), s.ReduceLROnPlateau(o)], [3]),
        "plateau in a chain": lambda s, o: s.ChainedScheduler([s.ExponentialLR(o, 0.9), s.ReduceLROnPlateau(o)]),
    }


@pytest.mark.parametrize("name", chains())
def test_chained_and_sequential_schedules(name):
    compare(chains()[name], "SGD")


WRONG = [
    lambda s, o: s.StepLR(3, 1), lambda s, o: s.StepLR(o, 1, last_epoch=3), lambda s, o: s.LambdaLR(o, [abs] * 3), lambda s, o: s.MultiplicativeLR(o, [abs]),
    lambda s, o: s.ConstantLR(o, 2.0), lambda s, o: s.ConstantLR(o, -0.1), lambda s, o: s.LinearLR(o, 0.0), lambda s, o: s.LinearLR(o, 1.1),
    lambda s, o: s.LinearLR(o, 0.5, 1.5), lambda s, o: s.CosineAnnealingWarmRestarts(o, 0), lambda s, o: s.CosineAnnealingWarmRestarts(o, 1, 0.5),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 2.5), lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, eta_min="x"), lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="x"),
    lambda s, o: s.CyclicLR(3, 0.1, 0.2), lambda s, o: s.CyclicLR(o, [0.1], 0.2), lambda s, o: s.CyclicLR(o, 0.1, [0.2]), lambda s, o: s.CyclicLR(o, 0.1, 0.2, base_momentum=[0.1]),
    lambda s, o: s.OneCycleLR(o, 0.1), lambda s, o: s.OneCycleLR(o, 0.1, total_steps=-1), lambda s, o: s.OneCycleLR(o, 0.1, total_steps=2.5),
    lambda s, o: s.OneCycleLR(o, 0.1, epochs=0, steps_per_epoch=2), lambda s, o: s.OneCycleLR(o, 0.1, epochs=2, steps_per_epoch=-2), lambda s, o: s.OneCycleLR(o, 0.1, epochs=2),
    lambda s, o: s.OneCycleLR(o, 0.1, 10, pct_start=2), lambda s, o: s.OneCycleLR(o, 0.1, 10, anneal_strategy="x"), lambda s, o: s.OneCycleLR(o, [0.1], 10),
    lambda s, o: s.OneCycleLR(o, 0.1, 3), lambda s, o: s.ReduceLROnPlateau(o, factor=1.0), lambda s, o: s.ReduceLROnPlateau(o, mode="x"),
    lambda s, o: s.ReduceLROnPlateau(o, threshold_mode="x"), lambda s, o: s.ReduceLROnPlateau(3), lambda s, o: s.ReduceLROnPlateau(o, min_lr=[1]),
    lambda s, o: s.ReduceLROnPlateau(o).step(), lambda s, o: s.LRScheduler(o), lambda s, o: s.StepLR(o, 1).load_state_dict(3), lambda s, o: s.StepLR(o),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 2).step(-1), lambda s, o: s.PolynomialLR(o, 0), lambda s, o: s.StepLR(o, 0), lambda s, o: s.CosineAnnealingLR(o, 0)]


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_errors_of_schedules_are_those_of_pytorch(wrong):
    compare(wrong, "SGD", steps=4)


@pytest.mark.parametrize("options", [{"patience": 2}, {"mode": "max", "threshold_mode": "abs", "cooldown": 2, "patience": 1, "min_lr": [0.01, 0.02]}, {"eps": 0.05},
                                     {"threshold": 0.5, "patience": 0, "factor": 0.9}, {"mode": "max", "threshold": 0.2, "min_lr": 0.05}], ids=str)
def test_reduce_lr_on_plateau(options):
    def run(t):
        optimizer = optimizer_of(t)
        schedule = t.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        yield schedule.get_last_lr()
        draw = random.Random(1)
        for step in range(50):
            measure = draw.random() if step % 5 else t.tensor(draw.random())
            yield recorded(lambda: schedule.step(measure, *([step] if step == 30 else []))), options_of(optimizer), schedule.get_last_lr()
            if step == 20:
                schedule.load_state_dict(schedule.state_dict())
        yield {key: comparable(value) for key, value in schedule.state_dict().items()}
    assert list(run(gradus)) == list(run(torch))


@pytest.mark.parametrize("name", [name for name, value in vars(torch.optim.lr_scheduler).items() if inspect.isclass(value) and "LR" in name or name == "ChainedScheduler"]
                         if hasattr(torch, "optim") else [])
def test_signatures_of_schedules(name):
    ours, theirs = ([(p.name, p.kind, p.default) for p in inspect.signature(getattr(t.optim.lr_scheduler, name)).parameters.values()] for t in (gradus, torch))
    assert ours == theirs


@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_swalr_and_averaged_models(strategy):
    """SWALR, and averages of the parameters by each averaging function of swa_utils, agree with PyTorch."""
    def run(t):
        optimizer, swa = optimizer_of(t), t.optim.swa_utils
        schedule = swa.SWALR(optimizer, [0.05, 0.01], anneal_epochs=4, anneal_strategy=strategy)
        rates = []
        for _ in range(8):
            optimizer.step()
            schedule.step()
            rates.append(schedule.get_last_lr())
        yield rates, {key: comparable(value) for key, value in schedule.state_dict().items()}
        for options in ({}, {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.9)}, {"avg_fn": swa.get_ema_avg_fn(0.9)}, {"multi_avg_fn": swa.get_swa_multi_avg_fn()},
                        {"avg_fn": swa.get_swa_avg_fn()}, {"use_buffers": True, "avg_fn": lambda a, b, n: (a + b) / 2}):
            t.manual_seed(0)
            model = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.BatchNorm1d(4))
            average = swa.AveragedModel(model, **options)
            for step in range(4):
                with t.no_grad():
                    for p in model.parameters():
                        p.add_(step)
                average.update_parameters(model)
            swa.update_bn([t.arange(12.0).reshape(4, 3), t.ones(2, 3)], average)
            yield {key: comparable(value) for key, value in average.state_dict().items()}, str(average)
        for wrong in (lambda: swa.SWALR(optimizer, 0.1, anneal_strategy="x"), lambda: swa.SWALR(optimizer, 0.1, anneal_epochs=-1),
                      lambda: swa.SWALR(optimizer, [0.1]), lambda: swa.get_ema_avg_fn(2.0), lambda: swa.get_ema_multi_avg_fn(-1),
                      lambda: swa.AveragedModel(t.nn.Linear(1, 1), avg_fn=abs, multi_avg_fn=abs)):
            yield recorded(wrong)
    for got, wanted in zip(run(gradus), run(torch), strict=True):
        assert_close(got, wanted)


def assert_close(got, wanted):
    if isinstance(wanted, dict):
        assert list(got) == list(wanted)
        got, wanted = list(got.values()), list(wanted.values())
    if isinstance(wanted, (list, tuple)):
        assert len(got) == len(wanted), (got, wanted)
        for a, b in zip(got, wanted):
            assert_close(a, b)
    else:
        assert got == (pytest.approx(wanted, rel=1e-5, abs=1e-6) if isinstance(wanted, float) else wanted)
