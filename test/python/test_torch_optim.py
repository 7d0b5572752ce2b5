"""Compares optimizer steps with PyTorch's single-tensor implementations: 50 steps from the same start with the same gradients."""
import numpy
import pytest

import binding as g
from oracle import torch

STEPS, SIZES = 50, [(7, 5), (1003,), (), (0, 3), (40000,)]
FUSED = g.lib.grd_isa().decode() not in ("portable", "x86-64-v2")  # instruction-set levels below v3 have no FMA, so a product is rounded before it is added


def to_gradus(t):
    return g.c.c_void_p(g.from_bytes(t.contiguous().reshape(-1).numpy().tobytes(), t.shape, str(t.dtype).split(".")[1]))


def train(optimizer, step, options, dtype, names, numbers):
    """Returns (PyTorch's parameters, Gradus's parameters) after STEPS steps. The operator named `step` takes Gradus's steps. Its arguments are the
    parameters, the gradients, one list of state tensors for each name in `names`, and the numbers that numbers(step index) returns."""
    generator = torch.Generator().manual_seed(1)
    parameters = [torch.randn(s, generator=generator, dtype=dtype) for s in SIZES]
    ours = [to_gradus(p) for p in parameters]
    state = {n: [to_gradus(torch.zeros_like(p)) for p in parameters] for n in names}
    optimizer = optimizer(parameters, foreach=False, **options)
    for count in range(STEPS):
        for p in parameters:
            p.grad = torch.randn(p.shape, generator=generator, dtype=dtype)
        with g.scope():
            g.call(step, {**numbers(count), **state, "params": ours, "grads": [to_gradus(p.grad) for p in parameters]})
        optimizer.step()
    return parameters, ours


SGD = [{}, {"weight_decay": 0.1}, {"momentum": 0.9}, {"momentum": 0.9, "weight_decay": 0.01, "nesterov": True},
       {"momentum": 0.8, "dampening": 0.3, "maximize": True}]
ADAM = [{}, {"weight_decay": 0.1}, {"amsgrad": True}, {"betas": (0.3, 0.9), "eps": 1e-4, "maximize": True}, {"weight_decay": 0.1, "decoupled": True}]


def check(parameters, ours, ulps):
    for p, mine in zip(parameters, ours):
        wanted, got = p.numpy(), g.numpy_of(mine).astype(p.numpy().dtype)
        scale = max(1, float(numpy.abs(wanted).max(initial=0)))
        assert numpy.all(numpy.abs(got - wanted) <= ulps * numpy.finfo(wanted.dtype).eps * scale)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("options", SGD, ids=str)
def test_sgd_steps_equal_those_of_pytorch(options, dtype):
    """The parameters after steps of SGD have the same bits as in PyTorch if the kernels use FMA instructions."""
    full = {"momentum": 0, "dampening": 0, "weight_decay": 0, "nesterov": False, "maximize": False, **options}
    with g.scope():
        parameters, ours = train(torch.optim.SGD, "sgd_step", {"lr": 0.07, **options}, dtype, ["momentum_buffers"] if full["momentum"] else [],
                                 lambda count: {"momentum_buffers": [], "lr": 0.07, "first": count == 0, **full})
        check(parameters, ours, 0 if FUSED else 16)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("options", ADAM, ids=str)
def test_adam_steps_equal_those_of_pytorch(options, dtype):
    """The parameters may differ in the last bits, because PyTorch's square root is sometimes wrong in the last bit. Gradus's square root is correctly
    rounded."""
    options = dict(options)
    decoupled = options.pop("decoupled", False)
    beta1, beta2 = options.get("betas", (0.9, 0.999))
    full = {"weight_decay": 0, "amsgrad": False, "maximize": False, "eps": 1e-8, **{k: v for k, v in options.items() if k != "betas"}}
    with g.scope():
        steps = [to_gradus(torch.zeros(())) for _ in SIZES]
        names = ["exp_avgs", "exp_avg_sqs"] + ["max_exp_avg_sqs"] * full["amsgrad"]
        parameters, ours = train(torch.optim.AdamW if decoupled else torch.optim.Adam, "adam_step", {"lr": 0.01, **options}, dtype, names,
                                 lambda count: {"max_exp_avg_sqs": [], "steps": steps, "lr": 0.01, "beta1": beta1, "beta2": beta2, "decoupled": decoupled, **full})
        assert [g.numpy_of(s) for s in steps] == [STEPS] * len(SIZES)
        check(parameters, ours, 4)


def test_mismatched_lists_of_tensors_are_refused_before_a_parameter_is_written():
    with g.scope():
        tensors = {n: to_gradus(torch.ones(*s, dtype=d)) for n, s, d in
                   [("p", (2, 3), torch.float32), ("wide", (2, 3), torch.float64), ("long", (7,), torch.float32), ("int", (2, 3), torch.int64)]}
        p, wide, long, integers = tensors.values()
        numbers = {"lr": 1.0, "momentum": 0.9, "dampening": 0.0, "weight_decay": 0.0, "nesterov": False, "maximize": False, "first": False}
        cases = [(([p, p], [p], []), "grads has 1 tensors for 2 parameters"),
                 (([p, p], [p, p], [p]), "momentum_buffers has 1 tensors for 2 parameters"),
                 (([p, p], [p, wide], []), "grads[1] has dtype float64 where the parameter has float32"),
                 (([p], [long], []), "grads[0] has sizes [7] where the parameter has [2, 3]"),
                 (([p, integers], [p, integers], []), "parameters must be floating point or complex, not int64")]
        for (params, grads, buffers), text in cases:
            with pytest.raises(g.GradusError) as error:
                g.call("sgd_step", {"params": params, "grads": grads, "momentum_buffers": buffers, **numbers})
            assert str(error.value) == f"sgd_step: {text}"
        with pytest.raises(g.GradusError) as error:
            g.call("adam_step", {"params": [p], "grads": [p], "exp_avgs": [p], "exp_avg_sqs": [p], "max_exp_avg_sqs": [], "steps": [long], "lr": 1.0, "beta1": 0.9,
                                  "beta2": 0.9, "weight_decay": 0.0, "eps": 0.0, "amsgrad": False, "maximize": False, "decoupled": False})
        assert str(error.value) == "adam_step: steps[0] must be one floating point number"
        assert numpy.all(g.numpy_of(p) == 1)
