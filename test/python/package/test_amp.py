"""Compares mixed precision with PyTorch: the dtype of every operator's result under autocast, casts and their cache, GradScaler."""
import copy
import pickle

import pytest

import gradus
from oracle import torch

F = "nn.functional."
# Name -> (function, *arguments). A tuple is the shape of a random tensor. The word "classes" stands for a tensor of class labels.
CALLS = {
    "matmul": ("matmul", (2, 3), (3, 4)),
    "mm": ("mm", (2, 3), (3, 4)),
    "bmm": ("bmm", (2, 3, 4), (2, 4, 5)),
    "addmm": ("addmm", (2, 4), (2, 3), (3, 4)),
    "baddbmm": ("baddbmm", (2, 3, 5), (2, 3, 4), (2, 4, 5)),
    "mv": ("mv", (2, 3), (3,)),
    "dot": ("dot", (3,), (3,)),
    "linear": (F + "linear", (2, 3), (4, 3), (4,)),
    "conv1d": (F + "conv1d", (1, 2, 5), (3, 2, 3)),
    "conv2d": (F + "conv2d", (1, 2, 5, 5), (3, 2, 3, 3)),
    "conv_transpose2d": (F + "conv_transpose2d", (1, 2, 5, 5), (2, 3, 3, 3)),
    "prelu": (F + "prelu", (2, 3), (1,)),
    "attention": (F + "scaled_dot_product_attention", (1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8)),
    "cat": ("cat", [(2, 3), (2, 3)]),
    "stack": ("stack", [(2, 3), (2, 3)]),
    "add": ("add", (2, 3), (2, 3)),
    "exp": ("exp", (2, 3)),
    "sum": ("sum", (2, 3)),
    "mean": ("mean", (2, 3)),
    "prod": ("prod", (2, 3)),
    "trace": ("trace", (3, 3)),
    "cdist": ("cdist", (2, 3), (4, 3)),
    "softmax": (F + "softmax", (2, 3), 1),
    "log_softmax": (F + "log_softmax", (2, 3), 1),
    "layer_norm": (F + "layer_norm", (2, 3), [3]),
    "gelu": (F + "gelu", (2, 3)),
    "mse_loss": (F + "mse_loss", (2, 3), (2, 3)),
    "l1_loss": (F + "l1_loss", (2, 3), (2, 3)),
    "smooth_l1_loss": (F + "smooth_l1_loss", (2, 3), (2, 3)),
    "huber_loss": (F + "huber_loss", (2, 3), (2, 3)),
    "kl_div": (F + "kl_div", (2, 3), (2, 3)),
    "soft_margin_loss": (F + "soft_margin_loss", (2, 3), (2, 3)),
    "bce_with_logits": (F + "binary_cross_entropy_with_logits", (2, 3), (2, 3)),
    "poisson_nll_loss": (F + "poisson_nll_loss", (2, 3), (2, 3)),
    "triplet_margin_loss": (F + "triplet_margin_loss", (2, 3), (2, 3), (2, 3)),
    "cross_entropy": (F + "cross_entropy", (2, 3), "classes"),
    "nll_loss": (F + "nll_loss", (2, 3), "classes"),
    "reflection_pad": (F + "pad", (1, 2, 5), (1, 1), "reflect"),
    "constant_pad": (F + "pad", (1, 2, 5), (1, 1)),
    "avg_pool3d": (F + "avg_pool3d", (1, 2, 4, 4, 4), 2),
    "max_pool2d": (F + "max_pool2d", (1, 2, 4, 4), 2),
}


def result_of(library, call, dtypes, autocast):
    """Returns the result of a call under autocast, or the class of its error. Argument i has dtypes[i]; all arguments beyond the list have the last
    of the dtypes."""
    name, *arguments = call
    function = library
    for part in name.split("."):
        function = getattr(function, part)
    library.manual_seed(0)
    dtypes = [getattr(library, dtype) for dtype in dtypes]

    def tensor(shape):
        return library.rand(shape).to(dtypes.pop(0) if len(dtypes) > 1 else dtypes[0])

    def argument(value):
        if value == "classes":
            return library.tensor([0, 2])
        if isinstance(value, tuple) and name != F + "pad" or isinstance(value, tuple) and len(value) > 2:
            return tensor(value)
        return [tensor(item) for item in value] if isinstance(value, list) and isinstance(value[0], tuple) else value

    arguments = [argument(value) for value in arguments]
    try:
        with library.autocast("cpu", **autocast):
            return function(*arguments)
    except (RuntimeError, ValueError) as error:
        return type(error)


@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize("autocast", [{}, {"dtype": "float16"}], ids=str)
@pytest.mark.parametrize("dtypes", [["float32"], ["bfloat16"], ["float64"], ["bfloat16", "float32"], ["float32", "bfloat16"]], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_results_under_autocast_have_the_dtype_of_pytorch(name, dtypes, autocast):
    ours, theirs = (result_of(library, CALLS[name], list(dtypes), {key: getattr(library, value) if key == "dtype" else value for key, value in autocast.items()})
                    for library in (gradus, torch))
    if isinstance(theirs, type):  # where PyTorch raises an error, Gradus may promote the dtypes instead
        return
    assert not isinstance(ours, type)
    assert str(ours.dtype) == str(theirs.dtype)
    assert torch.allclose(torch.tensor(ours.double().tolist(), dtype=torch.float64), theirs.double(), rtol=0.03, atol=0.03)


def test_autocast_settings_and_nesting():
    for library in (gradus, torch):
        assert (library.is_autocast_enabled("cpu"), library.get_autocast_dtype("cpu"), library.get_autocast_dtype("cuda")) == (False, library.bfloat16, library.float16)
        with library.autocast("cpu", dtype=library.float16):
            assert library.get_autocast_dtype("cpu") == library.float16
            with library.autocast("cpu", enabled=False):
                assert not library.is_autocast_enabled("cpu")
                assert (library.ones(2, 2) @ library.ones(2, 2)).dtype == library.float32
            assert (library.ones(2, 2) @ library.ones(2, 2)).dtype == library.float16
        assert (library.is_autocast_enabled("cpu"), library.get_autocast_dtype("cpu")) == (False, library.bfloat16)
        with pytest.raises(ZeroDivisionError), library.autocast("cpu"):
            raise ZeroDivisionError
        assert not library.is_autocast_enabled("cpu")


def test_autocast_errors_and_warnings():
    for library in (gradus, torch):
        with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
            library.autocast(0)
        with pytest.raises(RuntimeError, match="abacus"):
            library.autocast("abacus")
        with pytest.warns(UserWarning, match="CPU Autocast only supports dtypes of torch.bfloat16, torch.float16 currently."):
            context = library.autocast("cpu", dtype=library.float32)
        with context:
            assert not library.is_autocast_enabled("cpu")
        with pytest.raises(TypeError, match="requires a callable"):
            library.autocast("cpu")(3)


def test_autocast_as_a_decorator():
    @gradus.autocast("cpu")
    def product(x):
        """Returns x @ x."""
        return x @ x

    assert product(gradus.ones(2, 2)).dtype == gradus.bfloat16
    assert product.__doc__ == "Returns x @ x."


def train(library, steps=5):
    library.manual_seed(0)
    model = library.nn.Sequential(library.nn.Linear(4, 8), library.nn.ReLU(), library.nn.Linear(8, 3))
    optimizer = library.optim.SGD(model.parameters(), lr=0.1)
    inputs, classes = library.randn(6, 4), library.tensor([0, 1, 2, 0, 1, 2])
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with library.autocast("cpu"):
            loss = library.nn.functional.cross_entropy(model(inputs), classes)
        loss.backward()
        assert all(param.grad.dtype == library.float32 for param in model.parameters())
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_training_under_autocast_gives_the_losses_of_pytorch():
    assert train(gradus) == pytest.approx(train(torch), rel=0.01)


def test_autocast_casts_a_parameter_once():
    weight = gradus.ones(2, 2, requires_grad=True)
    with gradus.autocast("cpu"):
        first, second = weight @ gradus.ones(2, 2), weight @ gradus.ones(2, 2)
        casts = [result.grad_fn.next_functions[0][0] for result in (first, second)]
        assert casts[0] is casts[1]
        with gradus.no_grad():
            weight.add_(1)
        assert (weight @ gradus.ones(2, 2)).tolist() == [[4, 4], [4, 4]]
    (first + second).sum().backward()
    assert weight.grad.tolist() == [[4, 4], [4, 4]]
    with gradus.autocast("cpu", cache_enabled=False):
        first, second = weight @ gradus.ones(2, 2), weight @ gradus.ones(2, 2)
    assert first.grad_fn.next_functions[0][0] is not second.grad_fn.next_functions[0][0]


def test_custom_fwd_and_custom_bwd():
    from gradus.amp import custom_bwd, custom_fwd

    class Product(gradus.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu")
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x @ x

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            seen.append(gradus.is_autocast_enabled("cpu"))
            return grad.float()

    class Exact(gradus.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=gradus.float32)
        def forward(ctx, x):
            seen.append((x.dtype, gradus.is_autocast_enabled("cpu")))
            return x * 1

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            return grad

    seen, x = [], gradus.ones(2, 2, requires_grad=True)
    with gradus.autocast("cpu"):
        y = Product.apply(x)
        Exact.apply(y)
    y.float().sum().backward()
    assert y.dtype == gradus.bfloat16
    assert seen == [(gradus.float32, False), True]


# ---- GradScaler -----------------------------------------------------------------------------------------------------------------


def scaled(library, grads):
    """Takes a step for each of `grads` with GradScaler. Returns [(scale, parameter) after each step] and the state of the scaler."""
    weight = library.ones(2, requires_grad=True)
    optimizer = library.optim.SGD([weight], lr=0.5)
    scaler = library.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2, growth_factor=4.0)
    seen = []
    for grad in grads:
        optimizer.zero_grad()
        scaler.scale((weight * library.tensor(grad)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        seen.append((scaler.get_scale(), weight.tolist()))
    return seen, scaler.state_dict()


@pytest.mark.parametrize("grads", [[[1.0, 2.0]] * 5, [[1.0, float("inf")], [1.0, 1.0], [float("nan"), 1.0], [1.0, 0.0], [1.0, 0.0]]])
def test_grad_scaler_steps_as_in_pytorch(grads):
    assert scaled(gradus, grads) == scaled(torch, grads)


def test_grad_scaler_states_are_exchanged_with_pytorch():
    state = scaled(torch, [[1.0, 2.0]] * 3)[1]
    scaler = gradus.amp.GradScaler("cpu")
    scaler.load_state_dict(state)
    assert scaler.state_dict() == state
    assert pickle.loads(pickle.dumps(scaler)).state_dict() == copy.deepcopy(scaler).state_dict() == state


def scaler_errors(library):
    weight = library.ones(1, requires_grad=True)
    optimizer = library.optim.SGD([weight], lr=0.5)

    def ready():
        scaler = library.amp.GradScaler("cpu")
        scaler.scale(weight.sum()).backward()
        return scaler

    def unscale_twice():
        scaler = ready()
        scaler.unscale_(optimizer)
        scaler.unscale_(optimizer)

    def step_twice():
        scaler = ready()
        scaler.step(optimizer)
        scaler.step(optimizer)

    def half():
        weight = library.ones(1, dtype=library.float16, requires_grad=True)
        scaler = library.amp.GradScaler("cpu")
        scaler.scale(weight.sum()).backward()
        scaler.unscale_(library.optim.SGD([weight], lr=0.5))

    return {"not scaled": lambda: library.amp.GradScaler("cpu").step(optimizer), "unscale twice": unscale_twice, "step twice": step_twice,
            "closure": lambda: ready().step(optimizer, closure=print), "half": half, "not stepped": lambda: ready().update(),
            "growth": lambda: library.amp.GradScaler("cpu", growth_factor=1.0), "backoff": lambda: library.amp.GradScaler("cpu", backoff_factor=1.0),
            "empty": lambda: library.amp.GradScaler("cpu").load_state_dict({}), "no tensor": lambda: ready().scale(3)}


@pytest.mark.parametrize("what", scaler_errors(gradus))
def test_grad_scaler_errors_are_those_of_pytorch(what):
    with pytest.raises(Exception) as theirs:  # noqa: PT011 (the class is compared)
        scaler_errors(torch)[what]()
    with pytest.raises(type(theirs.value)) as ours:
        scaler_errors(gradus)[what]()
    assert str(ours.value).split(".")[0] == str(theirs.value).split(".")[0]


def test_disabled_grad_scaler():
    for library in (gradus, torch):
        scaler = library.amp.GradScaler("cpu", enabled=False)
        weight = library.ones(1, requires_grad=True)
        optimizer = library.optim.SGD([weight], lr=0.5)
        scaler.scale(weight.sum()).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        assert (weight.item(), scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()) == (0.5, 1.0, {}, False)


def test_deprecated_names_of_autocast_and_grad_scaler():
    for library in (gradus, torch):
        with pytest.warns(FutureWarning, match="torch.cpu.amp.autocast"), library.cpu.amp.autocast():
            assert (library.ones(2, 2) @ library.ones(2, 2)).dtype == library.bfloat16
        with pytest.warns(FutureWarning, match="torch.cpu.amp.GradScaler"):
            assert library.cpu.amp.GradScaler(init_scale=4.0).get_scale() == 4.0
        library.set_autocast_cpu_dtype(library.float16)
        assert (library.is_autocast_cpu_enabled(), library.get_autocast_cpu_dtype()) == (False, library.float16)
        library.set_autocast_dtype("cpu", library.bfloat16)
