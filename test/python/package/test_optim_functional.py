"""Compares the functional optimizers (torch.optim.adam.adam and others) with PyTorch, with random options."""
import importlib
import inspect
import random
import sys

import numpy as np
import pytest
from nn_programs import gradus
from oracle import torch

# FUNCTIONS maps the name of an optimizer to (names of its state lists, {option: values from which the test chooses}). ADAM holds options that several
# optimizers share.
ADAM = {"beta1": [0.9, 0.5], "beta2": [0.999, 0.7], "lr": [0.1, 1e-3], "weight_decay": [0.0, 0.1], "eps": [1e-8, 1e-3]}
FUNCTIONS = {
    "adadelta": (["square_avgs", "acc_deltas"], {"lr": [1.0, 0.1], "rho": [0.9, 0.5], "eps": [1e-6], "weight_decay": [0.0, 0.1], "maximize": [False, True]}),
    "adagrad": (["state_sums"], {"lr": [0.1], "weight_decay": [0.0, 0.1], "lr_decay": [0.0, 0.1], "eps": [1e-10], "maximize": [False, True]}),
    "adam": (["exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"],
             {**ADAM, "amsgrad": [False, True], "maximize": [False, True], "decoupled_weight_decay": [False, True]}),
    "adamax": (["exp_avgs", "exp_infs"], {**ADAM, "maximize": [False, True]}),
    "adamw": (["exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"], {**ADAM, "amsgrad": [False, True], "maximize": [False, True]}),
    "asgd": (["axs", "mus", "etas"], {"lambd": [1e-4, 0.1], "lr": [0.1], "t0": [1e6, 0.0], "alpha": [0.75], "weight_decay": [0.0, 0.1], "maximize": [False, True]}),
    "nadam": (["exp_avgs", "exp_avg_sqs", "mu_products"],
              {**ADAM, "momentum_decay": [4e-3, 0.1], "decoupled_weight_decay": [False, True], "maximize": [False, True]}),
    "radam": (["exp_avgs", "exp_avg_sqs"], {**ADAM, "decoupled_weight_decay": [False, True], "maximize": [False, True]}),
    "rmsprop": (["square_avgs", "grad_avgs", "momentum_buffer_list"],
                {"lr": [0.1], "alpha": [0.9], "eps": [1e-8], "weight_decay": [0.0, 0.1], "momentum": [0.0, 0.9], "centered": [False, True], "maximize": [False, True]}),
    "rprop": (["prevs", "step_sizes"], {"step_size_min": [1e-6], "step_size_max": [50.0], "etaminus": [0.5], "etaplus": [1.2], "maximize": [False, True]}),
    "sgd": (["momentum_buffer_list"], {"weight_decay": [0.0, 0.1], "momentum": [0.0, 0.9], "lr": [0.1], "dampening": [0.0, 0.3], "nesterov": [False],
                                       "maximize": [False, True]}),
}
SCALARS = {"mus", "etas", "mu_products"}
SIZES = [(2, 3), (4,), ()]


def function(t, name):
    return getattr(importlib.import_module(f"{t.__name__}.optim.{name}"), name)


def arrays(seed, count):
    generator = np.random.default_rng(seed)
    return [generator.normal(size=size).tolist() for _ in range(count) for size in SIZES]


def run(t, name, options, steps=3, **more):
    """Returns the parameters and states after `steps` steps of the functional optimizer `name`."""
    states, _ = FUNCTIONS[name]

    def tensors(values):
        return [t.tensor(value, dtype=t.float64) for value in values]

    params = tensors(arrays(0, 1))
    lists = [[t.tensor(1.0 if state == "mus" else 0.1) for _ in SIZES] if state in SCALARS else [p.abs() / 2 + 0.01 for p in params] for state in states]
    if name == "sgd":
        lists = [[None for _ in params]]
    else:
        if not options.get("amsgrad", True):
            lists[-1] = []  # PyTorch's fused step takes no list of maxima without amsgrad
        lists.append([t.tensor(0.0, dtype=t.float64) for _ in params])
    results = []
    for step in range(steps):
        grads = tensors(arrays(step + 1, 1))
        results.append(function(t, name)(params, grads, *lists, **options, **more))
        results.append([[tensor if tensor is None else tensor.tolist() for tensor in values] for values in (params, grads, *lists)])
    return results


def close(got, wanted):
    if isinstance(wanted, list):
        return len(got) == len(wanted) and all(map(close, got, wanted))
    return got == wanted or (wanted is not None and abs(got - wanted) <= 1e-8 * max(1, min(abs(wanted), sys.float_info.max)))


@pytest.mark.parametrize("more", [{}, {"foreach": False}, {"differentiable": True, "foreach": False}], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functional_steps_agree_with_pytorch(name, more):
    if name == "sgd" and "differentiable" in more:
        pytest.skip("sgd has no such argument")
    draw = random.Random(0)
    for _ in range(8):
        options = {key: draw.choice(values) for key, values in FUNCTIONS[name][1].items()}
        got, wanted = (run(t, name, options, **more) for t in (gradus, torch))
        assert close(got, wanted), options


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_of_functional_optimizers(name):
    """Names, order, kinds and defaults of the parameters of functional optimizers are PyTorch's."""
    ours, theirs = ([(p.name, p.kind, p.default) for p in inspect.signature(function(t, name)).parameters.values()] for t in (gradus, torch))
    assert ours == theirs


@pytest.mark.parametrize("name", ["adagrad", "adam", "adamw", "sgd"])
def test_grad_scale_and_found_inf_of_fused_steps(name):
    options = {key: values[0] for key, values in FUNCTIONS[name][1].items()}
    if name == "sgd":
        options["momentum"] = 0.9
    for found in (0.0, 1.0):
        got, wanted = (run(t, name, options, steps=1, fused=True, foreach=False, grad_scale=t.tensor(4.0), found_inf=t.tensor(found)) for t in (gradus, torch))
        assert got[0] is None and close(got[1][0], wanted[1][0]), "parameters"
        assert found == 1.0 or close(got[1][1], wanted[1][1]), "gradients"
    errors = []
    for t in (gradus, torch):
        with pytest.raises(AssertionError) as caught:
            run(t, name, options, foreach=False, grad_scale=t.tensor(4.0))
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"asgd", "sgd"}))
def test_state_steps_that_are_numbers_are_refused(name):
    options = {key: values[0] for key, values in FUNCTIONS[name][1].items()}
    lists = [[] for _ in FUNCTIONS[name][0]]
    for t in (gradus, torch):
        with pytest.raises(RuntimeError, match="API has changed, `state_steps` argument must contain a list of singleton tensors"):
            function(t, name)([], [], *lists, [1], **options)


def test_optim_functional_module_exports_all_functions():
    from gradus.optim import _functional

    assert all(getattr(_functional, name) is function(gradus, name) for name in FUNCTIONS)
    assert all(hasattr(gradus.optim, name) for name in FUNCTIONS)
