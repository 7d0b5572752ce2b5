"""Checks that all public names of PyTorch exist. A call either works or raises an exception that says what Gradus lacks."""
import importlib
import inspect

import gradus
import pytest
from both import submodule
from nn_programs import attempt, same

from oracle import needs_torch, torch

MODULES = """nn nn.init nn.utils nn.utils.rnn nn.utils.parametrize nn.utils.parametrizations nn.utils.prune nn.utils.stateless nn.modules nn.grad nn.attention
nn.attention.bias nn.attention.flex_attention nn.parallel optim optim.lr_scheduler optim.swa_utils optim.optimizer amp amp.autocast_mode amp.grad_scaler
distributions distributions.transforms distributions.constraints distributions.kl testing utils.data utils.checkpoint utils.benchmark utils.hooks utils.dlpack
utils.model_zoo overrides hub jit distributed distributed.nn autograd autograd.function autograd.functional autograd.graph autograd.forward_ad
autograd.grad_mode autograd.gradcheck autograd.profiler func profiler""".split()
# Names that are absent because they are for sparse tensors, or are internal modules that PyTorch exports by accident.
ABSENT = {"utils.model_zoo": {"tqdm"}, "utils.hooks": {"BackwardHook"}, "utils.checkpoint": {"SAC_IGNORED_OPS"}, "distributed.nn": {"Function", "RemoteModule", "group"}, "distributed": {"GroupName", "Logger", "breakpoint"}}


def public(module):
    """Returns the names in the module's __all__ or, if it has none, the names of the module's classes and functions that are defined in PyTorch."""
    if hasattr(module, "__all__"):
        return set(module.__all__)
    values = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    return {name for name, value in values.items() if (inspect.isclass(value) or inspect.isfunction(value)) and (value.__module__ or "").startswith("torch")}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_a_module_has_all_public_names_of_pytorch(name):
    needs_torch()
    theirs, ours = importlib.import_module(f"torch.{name}"), submodule(gradus, name)
    missing = sorted(each for each in public(theirs) - ABSENT.get(name, set()) if not hasattr(ours, each))
    assert not missing, f"gradus.{name} has no {', '.join(missing)}"


def test_stand_ins_raise_errors_that_name_what_is_absent():
    stand_in = gradus.testing.FileCheck
    assert stand_in is gradus.testing.FileCheck and stand_in.__name__ == "FileCheck" and not isinstance(3, stand_in)
    with pytest.raises(NotImplementedError, match="gradus.testing.FileCheck: it looks at compiled graphs"):
        stand_in()
    with pytest.raises(NotImplementedError, match="gradus.utils.data.IterDataPipe: data pipes are not part of Gradus"):
        class Pipe(gradus.utils.data.IterDataPipe):
            pass
    with pytest.raises(AttributeError, match="module 'gradus.testing' has no attribute 'Nothing'"):
        gradus.testing.Nothing


@same
def test_factory_kwargs(t):
    for kwargs in (None, {}, {"dtype": t.float64}, {"factory_kwargs": {"device": "cpu"}, "dtype": t.float32}, {"size": 3}, {"dtype": t.float32, "factory_kwargs": {"dtype": t.float32}}):
        yield attempt(t.nn.factory_kwargs, kwargs)


@same
def test_nn_grad_functions_of_convolutions(t):
    grad = submodule(t, "nn.grad")
    t.manual_seed(1)
    for n, (spaces, kernel) in enumerate((((7,), (3,)), ((6, 5), (3, 2)), ((4, 5, 3), (2, 3, 1))), start=1):
        for options in ({}, {"stride": 2, "padding": 1}, {"dilation": 1, "groups": 2}):
            channels = 4 // options.get("groups", 1)
            image, weight = t.randn(2, 4, *spaces), t.randn(6, channels, *kernel)
            places = t.randn_like(getattr(t.nn.functional, f"conv{n}d")(image, weight, **options))
            yield getattr(grad, f"conv{n}d_input")(image.shape, weight, places, **options)
            yield getattr(grad, f"conv{n}d_weight")(image, weight.shape, places, **options)


@same
def test_conv_tbc(t):
    t.manual_seed(1)
    for sizes in (((5, 2, 3), (2, 3, 4), (4,)), ((5, 2, 3), (2, 3, 4), (4,), 1), ((0, 2, 3), (2, 3, 4), (4,), 1), ((5, 2, 3), (2, 3, 4), (3,)), ((5, 2, 3), (2, 2, 4), (4,)),
                  ((5, 2), (2, 2, 4), (4,)), ((5, 2, 3), (2, 3), (4,)), ((5, 2, 3), (2, 3, 4), (4, 1))):
        tensors = [t.randn(size, requires_grad=True) for size in sizes[:3]]
        result = attempt(t.conv_tbc, *tensors, *sizes[3:])
        yield result
        if isinstance(result, t.Tensor) and result.numel():
            yield result.is_contiguous(), t.autograd.grad(result.square().sum(), tensors)


@same
def test_reduction_enums(t):
    numbers = submodule(t, "nn._reduction")
    for word in ("none", "mean", "sum", "other"):
        yield attempt(numbers.get_enum, word)
    for flags in ((True, True), (True, False), (False, True), (False, False), (None, None)):
        yield numbers.legacy_get_string(*flags, emit_warning=False), numbers.legacy_get_enum(*flags, emit_warning=False)


@same
def test_merge_masks_of_multihead_attention(t):
    attention, query, padding = t.nn.MultiheadAttention(4, 2), t.zeros(3, 5, 4), t.eye(5)[:3]
    for mask in (None, t.ones(5, 5), t.arange(150.0).view(6, 5, 5)):
        for key_padding in (None, padding):
            yield attention.merge_masks(mask, key_padding, query)


@pytest.mark.filterwarnings("ignore:`nn.Container`")
@same
def test_nn_container(t):
    net = t.nn.Container(a=t.nn.Linear(1, 2), b=t.nn.ReLU())
    yield repr(net), list(net.state_dict())


@same
def test_swap_in_optimizer_params_and_state(t):
    w, other = t.ones(3, requires_grad=True), t.zeros(3, requires_grad=True)
    optimizer = t.optim.Adam([w], lr=0.5)
    w.sum().backward()
    optimizer.step()
    state, other.grad = optimizer.state_dict(), t.ones(3)
    state["param_groups"][0]["lr"] = 0.25
    with t.optim.swap_in_optimizer_params_and_state(optimizer, {"w": other}, state):
        optimizer.step()
        yield optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["params"][0] is other
    yield w, other, optimizer.param_groups[0]["lr"], optimizer.state[w]


@same
def test_checkpoint_with_context_fn(t):
    checkpoint, seen = submodule(t, "utils.checkpoint"), []

    class Says:
        def __init__(self, word):
            self.word = word

        def __enter__(self):
            seen.append(self.word)

        def __exit__(self, *exception):
            seen.append(f"{self.word} is over")

    x = t.ones(2, requires_grad=True)
    y = checkpoint.checkpoint(lambda v: v.exp().sin(), x, use_reentrant=False, context_fn=lambda: (Says("first"), Says("second")))
    yield list(seen)
    y.sum().backward()
    yield seen, x.grad, [v.requires_grad for v in checkpoint.detach_variable((x, t.ones(1)))], checkpoint.get_device_states(x)


@same
def test_pytree_register_dataclass(t):
    import dataclasses

    pytree = submodule(t, "utils._pytree")

    @dataclasses.dataclass
    class Pair:
        x: object
        y: object = 3
        z: int = dataclasses.field(default=4, init=False)

    pytree.register_dataclass(Pair)
    leaves, spec = pytree.tree_flatten({"a": Pair(1, [2])})
    yield leaves, vars(pytree.tree_unflatten([5, 6], spec)["a"]), vars(pytree.tree_map(str, Pair(1, (2,))))
    yield attempt(pytree.register_dataclass, object)[0]
    yield pytree.arg_tree_leaves(1, (2, [3]), x={"a": 4}), pytree.tree_map(pytree.map_only(int)(lambda n: -n), [1, "a", 2])
    tree = pytree.treespec_dict(a=pytree.treespec_tuple([pytree.treespec_leaf()] * 2), b=pytree.treespec_leaf())
    yield pytree.tree_unflatten([1, 2, 3], tree), pytree.is_structseq(t.ones(2).max(0)), pytree.is_namedtuple_instance((1,)), attempt(pytree.treespec_tuple, [3])[0]


@same
def test_minor_functions_of_jit_onnx_hooks_and_utils(t):
    jit, onnx, hooks = submodule(t, "jit"), submodule(t, "onnx"), submodule(t, "utils.hooks")
    yield [issubclass(each, Warning) for each in (jit.TracerWarning, jit.ScriptWarning)], issubclass(jit.TracingCheckError, Exception)
    net = t.nn.Linear(1, 1)
    with onnx.select_model_mode_for_export(net, onnx.TrainingMode.EVAL):
        yield net.training
    yield net.training, hooks.unserializable_hook(lambda: 0).__torch_unserializable__
    yield [int(each) for each in submodule(t, "utils.dlpack").DLDeviceType], submodule(t, "hub").MODULE_HUBCONF
    state = {"module.weight": 1, "module.bias": 2, "other": 3}
    submodule(t, "nn.modules.utils").consume_prefix_in_state_dict_if_present(state, "module.")
    yield sorted(state.items()), [attempt(submodule(t, "nn.modules.utils")._list_with_default, *args) for args in (([None, 3], [5, 6]), (4, [5]), ([1, 2], [3, 4]), ([None, 2], [7, 8, 9]))]
    net = t.func.replace_all_batch_norm_modules_(t.nn.Sequential(t.nn.BatchNorm1d(2), t.nn.Linear(2, 2)))
    yield sorted(net.state_dict()), net[0].track_running_stats


@same(tolerance=1e-2)
def test_checkpoint_inside_of_autocast(t):
    """The second forward pass of a checkpoint casts as the first one did, although backward is called outside of autocast."""
    checkpoint, net, x = submodule(t, "utils.checkpoint").checkpoint, t.nn.Sequential(t.nn.Linear(3, 3), t.nn.Tanh()), t.ones(2, 3)
    with t.autocast("cpu"):
        y = checkpoint(net, x, use_reentrant=False)
    y.float().sum().backward()
    yield y, net[0].weight.grad


def test_error_classes_of_devices():
    """Error classes of absent devices exist, because programs use them in except clauses."""
    assert gradus.OutOfMemoryError is gradus.cuda.OutOfMemoryError and issubclass(gradus.OutOfMemoryError, RuntimeError)
    with pytest.raises(NotImplementedError, match="gradus.cuda.Event: there is no CUDA"):
        gradus.cuda.Event(enable_timing=True)


@pytest.mark.filterwarnings("ignore:.*cummulative_sizes")
@same
def test_concat_dataset_cumsum(t):
    concat = submodule(t, "utils.data").ConcatDataset
    data = concat([range(3), range(2)])
    yield concat.cumsum([[1, 2], [3]]), data.cumulative_sizes, data.cummulative_sizes
