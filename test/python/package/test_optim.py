"""Compares optimizers with PyTorch: the same gradients give the same parameters, states can be exchanged, and errors have the same class."""
import copy
import io
import pickle
import warnings

import pytest

import gradus
from oracle import torch

STEPS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("SGD", {"lr": 0.1, "fused": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.01, "betas": (0.5, 0.9), "maximize": True, "foreach": True}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.5, "amsgrad": True, "eps": 1e-3}),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 0.05, "momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.5, "weight_decay": 0.1, "maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.1, "betas": (0.5, 0.9), "weight_decay": 0.1}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.1}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("ASGD", {"lr": 0.1}),
    ("ASGD", {"lr": 0.1, "lambd": 0.01, "alpha": 0.5, "t0": 2, "weight_decay": 0.1, "maximize": True}),
    ("Adafactor", {"lr": 0.1}),
    ("Adafactor", {"lr": 0.1, "eps": (1e-5, 1e-2), "d": 1.5, "weight_decay": 0.1, "beta2_decay": -0.5, "maximize": True}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.4, 1.3), "step_sizes": (0.01, 1.0)}),
]
NAMES = [f"{name}-{'-'.join(options) or 'defaults'}" for name, options in STEPS]


def params_of(library, dtype="float32"):
    generator = torch.Generator().manual_seed(0)
    values = [torch.randn(shape, generator=generator, dtype=torch.float64).tolist() for shape in [(3, 4), (4,), ()]]
    return [library.tensor(value, dtype=getattr(library, dtype), requires_grad=True) for value in values]


def take_steps(library, params, optimizer, count, seed):
    """Takes `count` steps with gradients that depend on the parameters and on the step. The last parameter has a gradient in every second step
    only."""
    generator = torch.Generator().manual_seed(seed)
    for step in range(count):
        optimizer.zero_grad()
        loss = library.zeros((), dtype=params[0].dtype)
        for param in params[:len(params) - step % 2]:
            noise = library.tensor(torch.randn(param.shape, generator=generator, dtype=torch.float64).tolist(), dtype=param.dtype)
            loss = loss + (param * param * 0.5 + param * noise).sum()
        loss.backward()
        optimizer.step()


def assert_close(ours, theirs, tolerance=2e-6):
    for a, b in zip(ours, theirs):
        difference = (torch.tensor(a.tolist(), dtype=torch.float64) - b.detach().double()).abs().max().item()
        assert difference <= tolerance * max(1.0, b.detach().double().abs().max().item())


@pytest.mark.parametrize(("name", "options"), STEPS, ids=NAMES)
def test_parameters_after_steps_are_those_of_pytorch(name, options):
    ours, theirs = params_of(gradus), params_of(torch)
    our_optimizer, their_optimizer = getattr(gradus.optim, name)(ours, **options), getattr(torch.optim, name)(theirs, **options)
    take_steps(gradus, ours, our_optimizer, 6, seed=1)
    take_steps(torch, theirs, their_optimizer, 6, seed=1)
    assert_close(ours, theirs)
    assert repr(our_optimizer) == repr(their_optimizer)


@pytest.mark.parametrize(("name", "options"), STEPS, ids=NAMES)
def test_states_are_exchanged_through_files(name, options):
    """Each library continues from the state that the other library saved in a file."""
    ours, theirs = params_of(gradus), params_of(torch)
    our_optimizer, their_optimizer = getattr(gradus.optim, name)(ours, **options), getattr(torch.optim, name)(theirs, **options)
    take_steps(gradus, ours, our_optimizer, 3, seed=1)
    take_steps(torch, theirs, their_optimizer, 3, seed=1)
    from_us, from_them = io.BytesIO(), io.BytesIO()
    gradus.save(our_optimizer.state_dict(), from_us)
    torch.save(their_optimizer.state_dict(), from_them)
    from_us.seek(0)
    from_them.seek(0)
    our_new, their_new = getattr(gradus.optim, name)(ours), getattr(torch.optim, name)(theirs)
    our_new.load_state_dict(gradus.load(from_them))
    their_new.load_state_dict(torch.load(from_us))
    take_steps(gradus, ours, our_new, 3, seed=2)
    take_steps(torch, theirs, their_new, 3, seed=2)
    assert_close(ours, theirs)
    assert repr(our_new) == repr(their_new)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
@pytest.mark.parametrize(("name", "options"), [STEPS[1], STEPS[6], STEPS[9]], ids=["SGD", "Adam", "AdamW"])
def test_steps_in_other_dtypes(name, options, dtype):
    """The tolerance is a few rounding errors of the largest parameter, because in 16-bit dtypes PyTorch rounds after every operator, and Gradus once
    for each step."""
    ours, theirs = params_of(gradus, dtype), params_of(torch, dtype)
    take_steps(gradus, ours, getattr(gradus.optim, name)(ours, **options), 3, seed=1)
    take_steps(torch, theirs, getattr(torch.optim, name)(theirs, **options), 3, seed=1)
    assert_close(ours, theirs, 8 * torch.finfo(getattr(torch, dtype)).eps if dtype != "float64" else 1e-14)


def test_a_tensor_learning_rate_changed_between_steps():
    ours, theirs = params_of(gradus), params_of(torch)
    our_optimizer = gradus.optim.AdamW(ours, lr=gradus.tensor(0.1))
    their_optimizer = torch.optim.AdamW(theirs, lr=torch.tensor(0.1))
    for library, params, optimizer in ((gradus, ours, our_optimizer), (torch, theirs, their_optimizer)):
        take_steps(library, params, optimizer, 1, seed=1)
        optimizer.param_groups[0]["lr"].fill_(0.01)
        take_steps(library, params, optimizer, 1, seed=2)
    assert_close(ours, theirs)


def test_steps_use_a_state_changed_by_the_program():
    """The program replaces a parameter, and replaces, changes and clears entries of the optimizer's state. The next step uses the new values."""
    ours, theirs = params_of(gradus), params_of(torch)
    our_optimizer, their_optimizer = gradus.optim.Adam(ours), torch.optim.Adam(theirs)
    for library, params, optimizer in ((gradus, ours, our_optimizer), (torch, theirs, their_optimizer)):
        take_steps(library, params, optimizer, 2, seed=1)
        optimizer.state[params[0]]["exp_avg"] = library.ones(3, 4)
        optimizer.state[params[1]]["exp_avg_sq"].zero_()
        take_steps(library, params, optimizer, 1, seed=2)
        optimizer.state.clear()
        take_steps(library, params, optimizer, 1, seed=3)
        params[0] = library.ones(2, 2, requires_grad=True)
        optimizer.param_groups[0]["params"][0] = params[0]
        take_steps(library, params, optimizer, 2, seed=4)
    assert_close(ours, theirs)


def test_step_with_a_closure():
    w = gradus.ones(2, requires_grad=True)
    optimizer = gradus.optim.SGD([w], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with gradus.no_grad():
        assert optimizer.step(closure).item() == 2.0
    assert w.tolist() == [0.0, 0.0]


def test_zero_grad():
    w = gradus.ones(2, requires_grad=True)
    optimizer = gradus.optim.SGD([w])
    w.sum().backward()
    grad = w.grad
    optimizer.zero_grad(set_to_none=False)
    assert w.grad is grad and grad.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert w.grad is None


def test_hooks_run_around_the_outermost_step():
    calls = []

    class Counting(gradus.optim.SGD):
        def step(self, closure=None):
            calls.append("step")
            return super().step(closure)

    optimizer = Counting([gradus.ones(1, requires_grad=True)])
    handles = [optimizer.register_step_pre_hook(lambda opt, args, kwargs: calls.append("before")),
               optimizer.register_step_post_hook(lambda opt, args, kwargs: calls.append("after")),
               gradus.optim.optimizer.register_optimizer_step_pre_hook(lambda opt, args, kwargs: calls.append("before all")),
               gradus.optim.optimizer.register_optimizer_step_post_hook(lambda opt, args, kwargs: calls.append("after all"))]
    optimizer.step()
    assert calls == ["before all", "before", "step", "after", "after all"]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert calls[5:] == ["step"]


def test_a_step_pre_hook_with_an_invalid_result_is_an_error():
    optimizer = gradus.optim.SGD([gradus.ones(1, requires_grad=True)])
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        optimizer.step()


def test_state_dict_hooks():
    optimizer = gradus.optim.SGD([gradus.ones(1, requires_grad=True)])
    calls = []
    optimizer.register_state_dict_pre_hook(lambda opt: calls.append("second"))
    optimizer.register_state_dict_pre_hook(lambda opt: calls.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda opt, state: {**state, "more": 1})
    optimizer.register_load_state_dict_pre_hook(lambda opt, state: {key: state[key] for key in ("state", "param_groups")})
    optimizer.register_load_state_dict_post_hook(lambda opt: calls.append("loaded"))
    state = optimizer.state_dict()
    assert state["more"] == 1 and calls == ["first", "second"]
    optimizer.load_state_dict(state)
    assert calls[-1] == "loaded"


def test_parameter_groups():
    a, b, c = (gradus.ones(1, requires_grad=True) for _ in range(3))
    optimizer = gradus.optim.SGD([{"params": a}, {"params": [b], "lr": 0.5}], lr=0.1)
    optimizer.add_param_group({"params": iter([c])})
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.5, 0.1]
    assert optimizer.param_groups[2]["params"][0] is c


def test_names_of_parameters_are_kept():
    optimizer = gradus.optim.SGD([("w", gradus.ones(1, requires_grad=True))])
    assert optimizer.param_groups[0]["param_names"] == ["w"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["w"]


def bad_calls(library):
    leaf = library.ones(1, requires_grad=True)
    SGD, Adam = library.optim.SGD, library.optim.Adam
    named = SGD([("w", leaf)])
    two = SGD([library.ones(1, requires_grad=True), library.ones(1, requires_grad=True)])
    return {
        "a tensor": lambda: SGD(leaf),
        "nothing": lambda: SGD([]),
        "numbers": lambda: SGD([1]),
        "a set": lambda: SGD([{"params": {leaf}}]),
        "no leaf": lambda: SGD([leaf * 2]),
        "in two groups": lambda: SGD([{"params": [leaf]}, {"params": [leaf]}]),
        "some names": lambda: SGD([("w", leaf), library.ones(1, requires_grad=True)]),
        "names and then none": lambda: named.add_param_group({"params": [library.ones(1)]}),
        "no dictionary": lambda: named.add_param_group([leaf]),
        "negative lr": lambda: SGD([leaf], lr=-1),
        "lr of two elements": lambda: SGD([leaf], lr=library.ones(2)),
        "negative momentum": lambda: SGD([leaf], momentum=-1),
        "negative weight decay": lambda: SGD([leaf], weight_decay=-1),
        "nesterov without momentum": lambda: SGD([leaf], nesterov=True),
        "fused and foreach": lambda: SGD([leaf], fused=True, foreach=True),
        "eps": lambda: Adam([leaf], eps=-1.0),
        "beta": lambda: Adam([leaf], betas=(0.9, 1.0)),
        "betas of two kinds": lambda: Adam([leaf], betas=(0.9, library.tensor(0.9))),
        "foreach with a tensor": lambda: Adam([leaf], lr=library.tensor(0.1), foreach=True),
        "state of other groups": lambda: two.load_state_dict(named.state_dict()),
        "state of more groups": lambda: two.load_state_dict({"state": {}, "param_groups": []}),
    }


@pytest.mark.parametrize("what", bad_calls(gradus))
def test_errors_of_optimizers_are_those_of_pytorch(what):
    with pytest.raises((TypeError, ValueError, RuntimeError)) as expected:
        bad_calls(torch)[what]()
    with pytest.raises(type(expected.value)) as found:
        bad_calls(gradus)[what]()
    assert str(found.value).split(", but")[0] == str(expected.value).split(", but")[0]


def test_a_step_with_an_invalid_state_changes_no_parameter():
    w = gradus.ones(2, requires_grad=True)
    optimizer = gradus.optim.Adam([w])
    w.sum().backward()
    optimizer.step()
    before = w.tolist()
    optimizer.state[w]["exp_avg"] = gradus.ones(3)
    with pytest.raises((RuntimeError, ValueError)):
        optimizer.step()
    assert w.tolist() == before and optimizer.state[w]["step"].item() == 1


@pytest.mark.parametrize("copy_of", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"])
def test_copied_optimizers_continue_with_the_same_steps(copy_of):
    params = params_of(gradus)
    optimizer = gradus.optim.AdamW(params)
    take_steps(gradus, params, optimizer, 2, seed=1)
    again = copy_of(optimizer)
    take_steps(gradus, params, optimizer, 1, seed=2)
    take_steps(gradus, again.param_groups[0]["params"], again, 1, seed=2)
    assert [p.tolist() for p in params] == [p.tolist() for p in again.param_groups[0]["params"]]


SCHEDULES = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (e + 1)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.95),
    "StepLR": lambda s, o: s.StepLR(o, 3, 0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [2, 5, 5, 7], 0.3),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.5, 4),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.3, 0.8, 6),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 7, 2.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 5, 0.01),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.001),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, 4),
    "CyclicLR triangular2": lambda s, o: s.CyclicLR(o, [0.01, 0.02], 0.1, 3, 4, mode="triangular2", cycle_momentum=False),
    "CyclicLR exp_range": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, 4, mode="exp_range", gamma=0.9),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.5, 25),
    "OneCycleLR three phases": lambda s, o: s.OneCycleLR(o, [0.5, 0.6], epochs=5, steps_per_epoch=5, three_phase=True,
                                                         anneal_strategy="linear"),
    "SequentialLR": lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 5)], [3, 8]),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9)]),
}


def scheduled(library, optimizer_name="SGD", **options):
    a, b = (library.ones(1, requires_grad=True) for _ in range(2))
    return getattr(library.optim, optimizer_name)([{"params": [a]}, {"params": [b], "lr": 0.3}], **{"lr": 0.1, **options})


def options_of(optimizer):
    """Returns the options of an optimizer's parameter groups, without the parameters. Tensors are converted to numbers."""
    return [{key: value.item() if hasattr(value, "item") else value for key, value in group.items() if key != "params"}
            for group in optimizer.param_groups]


@pytest.mark.parametrize("optimizer_name", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_agree_with_pytorch(name, optimizer_name):
    """The schedules give the same learning rates in both libraries, and halfway each library continues from the other's state."""
    ours, theirs = scheduled(gradus, optimizer_name), scheduled(torch, optimizer_name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        our_schedule, their_schedule = (SCHEDULES[name](library.optim.lr_scheduler, optimizer)
                                        for library, optimizer in ((gradus, ours), (torch, theirs)))
        for step in range(20):
            assert options_of(ours) == options_of(theirs)
            assert our_schedule.get_last_lr() == their_schedule.get_last_lr()
            for thing in (ours, theirs, our_schedule, their_schedule):
                thing.step()
            if step == 9:
                state = our_schedule.state_dict()
                our_schedule.load_state_dict(their_schedule.state_dict())
                their_schedule.load_state_dict(state)


@pytest.mark.parametrize("options", [{"patience": 2}, {"mode": "max", "threshold_mode": "abs", "cooldown": 2, "patience": 1,
                                                       "min_lr": [0.01, 0.02]}], ids=["min", "max"])
def test_reduce_lr_on_plateau_agrees_with_pytorch(options):
    ours, theirs = scheduled(gradus), scheduled(torch)
    schedules = [gradus.optim.lr_scheduler.ReduceLROnPlateau(ours, **options), torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **options)]
    for measure in torch.rand(40, generator=torch.Generator().manual_seed(0)).tolist():
        for schedule in schedules:
            schedule.step(measure)
        assert options_of(ours) == options_of(theirs)


def test_a_schedule_changes_a_tensor_learning_rate_in_place():
    rate = gradus.tensor(0.5)
    optimizer = gradus.optim.SGD([gradus.ones(1, requires_grad=True)], lr=rate)
    schedule = gradus.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] is rate and rate.item() == 0.25


def test_a_schedule_step_before_the_optimizer_step_warns():
    schedule = gradus.optim.lr_scheduler.StepLR(scheduled(gradus), 1)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule.step()
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.get_lr()


def bad_schedules(library):
    optimizer, schedules = scheduled(library), library.optim.lr_scheduler
    other = schedules.StepLR(scheduled(library), 1)
    return {
        "no optimizer": lambda: schedules.StepLR(3, 1),
        "no initial rate": lambda: schedules.StepLR(scheduled(library), 1, last_epoch=3),
        "too many functions": lambda: schedules.LambdaLR(optimizer, [abs, abs, abs]),
        "no function": lambda: schedules.MultiplicativeLR(optimizer, 3),
        "factor": lambda: schedules.ConstantLR(optimizer, 2.0),
        "start": lambda: schedules.LinearLR(optimizer, 0.0),
        "restart": lambda: schedules.CosineAnnealingWarmRestarts(optimizer, 0),
        "mode": lambda: schedules.CyclicLR(optimizer, 0.1, 0.2, mode="x"),
        "no momentum": lambda: schedules.CyclicLR(library.optim.Adagrad([library.ones(1, requires_grad=True)]), 0.1, 0.2),
        "rates": lambda: schedules.CyclicLR(optimizer, [0.1], 0.2),
        "no steps": lambda: schedules.OneCycleLR(optimizer, 0.1),
        "steps": lambda: schedules.OneCycleLR(optimizer, 0.1, total_steps=-1),
        "start of the cycle": lambda: schedules.OneCycleLR(optimizer, 0.1, 10, pct_start=2),
        "strategy": lambda: schedules.OneCycleLR(optimizer, 0.1, 10, anneal_strategy="x"),
        "plateau factor": lambda: schedules.ReduceLROnPlateau(optimizer, factor=1.0),
        "plateau mode": lambda: schedules.ReduceLROnPlateau(optimizer, mode="x"),
        "no schedule": lambda: schedules.SequentialLR(optimizer, [], []),
        "milestones": lambda: schedules.SequentialLR(other.optimizer, [other], [1]),
        "other optimizer": lambda: schedules.ChainedScheduler([other], optimizer),
    }


@pytest.mark.parametrize("what", bad_schedules(gradus))
def test_errors_of_schedules_have_the_class_of_pytorch(what):
    with pytest.raises((TypeError, ValueError, KeyError)) as expected:
        bad_schedules(torch)[what]()
    with pytest.raises(type(expected.value)):
        bad_schedules(gradus)[what]()
