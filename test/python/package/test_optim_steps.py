"""Compares many steps of each optimizer with PyTorch, for every dtype. Also tests steps with differentiable=True, L-BFGS, Muon, and averages of
weights."""
import io

import pytest

import gradus
from gradus.optim import swa_utils
from oracle import torch

STEPPED = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True}),
    ("Adam", {"lr": 0.05, "amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.05}),
    ("Adadelta", {"weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.01}),
    ("Adamax", {"lr": 0.05, "weight_decay": 0.1}),
    ("ASGD", {"lr": 0.05, "t0": 10}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.5, "centered": True}),
    ("Rprop", {"lr": 0.05}),
]
IDS = [f"{name}-{index}" for index, (name, _) in enumerate(STEPPED)]


def values(dtype, seed, *shapes):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=getattr(torch, dtype)) for shape in shapes]


def ours_of(tensor):
    """Returns a PyTorch tensor as a Gradus tensor. 16-bit floats are converted through float64, which represents them exactly."""
    if tensor.is_complex():
        return gradus.view_as_complex(ours_of(torch.view_as_real(tensor)).contiguous())
    exact = tensor.detach().double().numpy()
    return gradus.tensor(exact).to(getattr(gradus, str(tensor.dtype).split(".")[1]))


def largest_difference(ours, theirs):
    theirs = theirs.detach()
    if theirs.is_complex():
        ours, theirs = gradus.view_as_real(ours.detach()), torch.view_as_real(theirs)
    mine = torch.tensor(ours.detach().double().numpy())
    return ((mine - theirs.double()).abs() / theirs.double().abs().clamp(min=1)).max().item()


def train(library, name, options, dtype, steps):
    shapes = [(5, 7), (33,), ()]
    params = values(dtype, 0, *shapes)
    if library is gradus:
        params = [ours_of(param) for param in params]
    for param in params:
        param.requires_grad_()
    optimizer = getattr(library.optim, name)(params, **options)
    for step in range(steps):
        for param, grad in zip(params, values(dtype, step + 1, *shapes)):
            param.grad = grad if library is torch else ours_of(grad)
        optimizer.step()
    return params


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize(("name", "options"), STEPPED, ids=IDS)
def test_40_steps_agree_with_pytorch(name, options, dtype):
    tolerance = {"float64": 1e-13, "float32": 1e-5, "complex64": 1e-5}[dtype]
    for ours, theirs in zip(train(gradus, name, options, dtype, 40), train(torch, name, options, dtype, 40)):
        assert largest_difference(ours, theirs) <= tolerance


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("name", "options"), [case for case in STEPPED if case[0] not in ("Adadelta", "Rprop")], ids=lambda value: str(value)[:12])
def test_steps_in_half_types_are_close_to_pytorch(name, options, dtype):
    """The tolerance is a few rounding errors, because in 16-bit dtypes PyTorch rounds after every operator, and Gradus once for each step."""
    options = {**options, "eps": 1e-3} if name not in ("SGD", "ASGD", "Rprop") else options
    for ours, theirs in zip(train(gradus, name, options, dtype, 5), train(torch, name, options, dtype, 5)):
        assert largest_difference(ours, theirs) <= 16 * torch.finfo(getattr(torch, dtype)).eps


def gradient_through_steps(library, name, options):
    """Takes three steps with differentiable=True, so that autograd records them. Returns the derivative of a loss of the result with respect to the
    initial parameter."""
    start, *grads = values("float64", 3, (3, 4), (3, 4), (3, 4), (3, 4))
    if library is gradus:
        start, *grads = map(ours_of, (start, *grads))
    start.requires_grad_()
    param = start * 1
    optimizer = getattr(library.optim, name)([param], differentiable=True, **options)
    for grad in grads:
        param.grad = grad * param
        optimizer.step()
    (param * param).sum().backward()
    return start.grad


# Optimizers whose steps are not differentiable in PyTorch, because they overwrite tensors that backward needs.
WITHOUT_GRADIENT_THERE = {"Adamax", "Rprop"}


@pytest.mark.parametrize(("name", "options"), STEPPED, ids=IDS)
def test_gradients_flow_through_differentiable_steps(name, options):
    """The tolerance is that of float32 although the parameters are float64, because with differentiable=True PyTorch computes the bias corrections in
    float32."""
    ours = gradient_through_steps(gradus, name, options)
    if name in WITHOUT_GRADIENT_THERE or options.get("centered") or options.get("amsgrad"):
        assert ours.isfinite().all() and (ours != 0).any()
    else:
        assert largest_difference(ours, gradient_through_steps(torch, name, options)) <= 2e-5


@pytest.mark.parametrize(("name", "options"), STEPPED, ids=IDS)
def test_differentiable_steps_equal_fused_steps(name, options):
    """With differentiable=True an optimizer step is computed by operators that autograd records, otherwise by a fused kernel. Both give the same
    parameters."""
    start, *grads = map(ours_of, values("float64", 4, (3, 4), (3, 4), (3, 4), (3, 4)))
    recorded, stepped = start.clone(), start.clone().requires_grad_()
    kind = getattr(gradus.optim, name)
    first, second = kind([recorded], differentiable=True, **options), kind([stepped], **options)
    for grad in grads:
        recorded.grad = stepped.grad = grad
        first.step()
        second.step()
    assert gradus.allclose(recorded, stepped.detach(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["Adadelta", "Adagrad", "Adam", "AdamW", "ASGD", "NAdam", "RAdam", "RMSprop"])
def test_foreach_and_capturable_are_accepted(name):
    leaf = gradus.ones(1, requires_grad=True)
    options = {"foreach": True} if name == "Adagrad" else {"foreach": True, "capturable": True}
    optimizer = getattr(gradus.optim, name)([leaf], **options)
    leaf.grad = gradus.ones(1)
    optimizer.step()
    assert leaf.item() != 1


@pytest.mark.parametrize("options", [{}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}, {"weight_decay": 0, "ns_steps": 2, "lr": 0.1}])
def test_muon(options):
    """The tolerance is a few rounding errors of bfloat16, because Muon multiplies matrices in bfloat16."""
    def steps(library):
        params = values("float32", 0, (6, 4), (4, 6), (5, 5))
        params = [param if library is torch else ours_of(param) for param in params]
        optimizer = library.optim.Muon(params, **options)
        for step in range(4):
            for param, grad in zip(params, values("float32", step + 1, (6, 4), (4, 6), (5, 5))):
                param.grad = grad if library is torch else ours_of(grad)
            optimizer.step()
        return params

    for ours, theirs in zip(steps(gradus), steps(torch)):
        assert largest_difference(ours, theirs) <= 0.03 * options.get("lr", 1e-2)


def rosenbrock(library, options, steps, dtype):
    w = library.tensor([-1.5, 2.0, 0.3, 1.1], dtype=getattr(library, dtype), requires_grad=True)
    optimizer, losses = library.optim.LBFGS([w], **options), []

    def closure():
        optimizer.zero_grad()
        loss = (100 * (w[1:] - w[:-1] ** 2) ** 2 + (1 - w[:-1]) ** 2).sum()
        loss.backward()
        return loss

    for _ in range(steps):
        losses.append(optimizer.step(closure).item())
    return losses, w, optimizer


@pytest.mark.parametrize("options", [{"line_search_fn": "strong_wolfe"}, {"lr": 1e-3, "max_iter": 5}, {"lr": 0.5, "line_search_fn": "strong_wolfe", "history_size": 3, "max_iter": 7},
                                     {"line_search_fn": "strong_wolfe", "max_eval": 4}])
def test_lbfgs(options):
    ours, theirs = rosenbrock(gradus, options, 8, "float64"), rosenbrock(torch, options, 8, "float64")
    assert ours[0] == pytest.approx(theirs[0], rel=1e-6, abs=1e-9)
    assert largest_difference(ours[1], theirs[1]) <= 1e-6
    states = [optimizer.state_dict()["state"][0] for *_, optimizer in (ours, theirs)]
    assert states[0]["n_iter"] == states[1]["n_iter"] and states[0]["func_evals"] == states[1]["func_evals"]
    assert set(states[0]) == set(states[1]) - {"al"}


def test_lbfgs_continues_from_a_state_of_pytorch():
    theirs = rosenbrock(torch, {"line_search_fn": "strong_wolfe", "max_iter": 5}, 2, "float64")
    file = io.BytesIO()
    torch.save(theirs[2].state_dict(), file)
    file.seek(0)
    w = gradus.tensor(theirs[1].tolist(), dtype=gradus.float64, requires_grad=True)
    optimizer = gradus.optim.LBFGS([w])
    optimizer.load_state_dict(gradus.load(file))
    assert optimizer.param_groups[0]["line_search_fn"] == "strong_wolfe"

    def closure():
        optimizer.zero_grad()
        loss = (100 * (w[1:] - w[:-1] ** 2) ** 2 + (1 - w[:-1]) ** 2).sum()
        loss.backward()
        return loss

    before = optimizer.step(closure).item()
    assert closure().item() < before <= theirs[0][-1]


def test_sparse_adam_refuses_dense_gradients():
    for library in (gradus, torch):
        w = library.ones(2, requires_grad=True)
        optimizer = library.optim.SparseAdam([w])
        assert optimizer.step() is None
        w.grad = library.ones(2)
        with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients, please consider Adam instead"):
            optimizer.step()


def averaged(library, use_buffers, **functions):
    utils, nn = library.optim.swa_utils, library.nn
    library.manual_seed(3)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    functions = {name: getattr(utils, function)(*arguments) for name, (function, *arguments) in functions.items()}
    mean = utils.AveragedModel(model, use_buffers=use_buffers, **functions)
    optimizer = library.optim.SGD(model.parameters(), lr=0.1)
    schedule = utils.SWALR(optimizer, swa_lr=0.02, anneal_epochs=3)
    inputs = [library.randn(5, 3) for _ in range(5)]
    rates = []
    for batch in inputs:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        schedule.step()
        rates += schedule.get_last_lr()
        mean.update_parameters(model)
    utils.update_bn(inputs, mean)
    return mean, rates


AVERAGES = [{}, {"avg_fn": ("get_ema_avg_fn", 0.9)}, {"avg_fn": ("get_swa_avg_fn",)}, {"multi_avg_fn": ("get_ema_multi_avg_fn", 0.9)},
            {"multi_avg_fn": ("get_swa_multi_avg_fn",)}]


@pytest.mark.parametrize(("functions", "use_buffers"), [(functions, buffers) for functions in AVERAGES for buffers in (False, True)][:-1], ids=str)
def test_averaged_models_agree_with_pytorch(functions, use_buffers):
    """The last function of AVERAGES is not tested with buffers. PyTorch fails there, because it writes a quotient into an integer buffer."""
    (ours, our_rates), (theirs, their_rates) = averaged(gradus, use_buffers, **functions), averaged(torch, use_buffers, **functions)
    assert our_rates == pytest.approx(their_rates, rel=1e-12)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for mine, their in zip(ours.state_dict().values(), theirs.state_dict().values()):
        assert largest_difference(mine, their) <= 2e-5


def test_wrong_arguments_of_averaged_models_and_swalr():
    model = gradus.nn.Linear(1, 1)
    optimizer = gradus.optim.SGD(model.parameters(), lr=1.0)
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn should be provided"):
        swa_utils.AveragedModel(model, avg_fn=print, multi_avg_fn=print)
    with pytest.raises(ValueError, match="Invalid decay value 2"):
        swa_utils.get_ema_avg_fn(2)
    with pytest.raises(ValueError, match="anneal_strategy must be one of 'cos' or 'linear', instead got x"):
        swa_utils.SWALR(optimizer, 0.1, anneal_strategy="x")
    with pytest.raises(ValueError, match="anneal_epochs must be equal or greater than 0, got -1"):
        swa_utils.SWALR(optimizer, 0.1, anneal_epochs=-1)


FOREACH = [("_foreach_add", "list"), ("_foreach_sub_", "list"), ("_foreach_mul", "number"), ("_foreach_div_", "number"), ("_foreach_mul_", "tensor"), ("_foreach_clamp_min_", "number"),
           ("_foreach_clamp_max_", "number"), ("_foreach_norm", "number"), ("_foreach_zero_", "nothing"), ("_foreach_norm", "nothing")]


@pytest.mark.parametrize(("name", "other"), FOREACH)
def test_foreach_functions(name, other):
    def call(library):
        tensors, others = ([tensor if library is torch else ours_of(tensor) for tensor in values("float32", seed, (3, 2), (4,), ())] for seed in (0, 1))
        arguments = {"list": [others], "number": [2], "tensor": [others[2]], "nothing": []}[other]
        results = getattr(library, name)(tensors, *arguments)
        return tensors if name.endswith("_") else results

    for ours, theirs in zip(call(gradus), call(torch)):
        assert largest_difference(ours, theirs) <= 1e-6


def test_foreach_functions_refuse_lists_of_different_lengths():
    for library in (gradus, torch):
        with pytest.raises(RuntimeError, match="must have the same number of tensors, got 1 and 2"):
            library._foreach_add([library.ones(1)], [library.ones(1)] * 2)
