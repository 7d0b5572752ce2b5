"""Checks classes and functions that PyTorch has under several import paths. If Gradus has one of these paths, it must have all of them, with the same
object."""
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gradus
from oracle import needs_torch, torch

# Each line lists the import paths (dotted names) of one class or function that PyTorch has under several names. test/record_paths.py writes the file.
PATHS = [line.split() for line in (Path(__file__).parents[2] / "data" / "torch_paths.txt").read_text().splitlines()]
# Further paths that programs import. Most of them end in a name with a leading underscore, which record_paths.py does not record.
OTHERS = """
nn.modules.module._IncompatibleKeys nn.modules.module._addindent nn.modules.utils._single nn.modules.utils._pair nn.modules.utils._triple
nn.modules.utils._quadruple nn.modules.utils._ntuple nn.modules.utils._reverse_repeat_tuple nn.modules.batchnorm._BatchNorm nn.modules.batchnorm._NormBase
nn.modules.instancenorm._InstanceNorm nn.modules.dropout._DropoutNd nn.modules.loss._Loss nn.modules.loss._WeightedLoss nn.modules.padding._ConstantPadNd
nn.modules.padding._ReflectionPadNd nn.modules.padding._ReplicationPadNd nn.modules.padding._CircularPadNd nn.modules.transformer._get_clones
nn.modules.transformer._get_activation_fn nn.modules.linear.NonDynamicallyQuantizableLinear nn.modules.module._global_forward_hooks
nn.modules.module._global_forward_pre_hooks nn.modules.module._global_backward_hooks nn.modules.module._global_backward_pre_hooks
nn.modules.module._global_buffer_registration_hooks nn.modules.module._global_module_registration_hooks
nn.modules.module._global_parameter_registration_hooks nn.modules.module._global_forward_hooks_always_called
nn.modules.module._global_forward_hooks_with_kwargs nn.init._calculate_fan_in_and_fan_out nn.init._calculate_correct_fan
optim.lr_scheduler._LRScheduler utils.data.dataloader._BaseDataLoaderIter utils.data.dataloader._SingleProcessDataLoaderIter
utils.data.dataloader._MultiProcessingDataLoaderIter utils.data.dataloader._InfiniteConstantSampler utils.data._utils.collate.default_collate
autograd.variable.Variable autograd.gradcheck.gradcheck amp.grad_scaler.GradScaler cuda.amp.grad_scaler.GradScaler cuda.memory.empty_cache
cuda.random.manual_seed cuda.LongTensor storage.UntypedStorage types.Number types.Device types._size _tensor.Tensor return_types.max special.expit
special.gammaln random.default_generator _utils._rebuild_tensor_v3 torch_version.TorchVersion version.__version__ nn.init.xavier_uniform nn.init.kaiming_normal
""".split()


def is_stand_in(value):
    """True if `value` is a placeholder for a class of PyTorch that Gradus lacks. A placeholder need not have all of PyTorch's import paths."""
    return isinstance(value, type) and (value.__doc__ or "").startswith("NotImplementedError: ")


def resolve(path, top="gradus"):
    """Returns the object at a path such as "nn.functional.relu" below the module `top`, or None if there is none."""
    parts = path.split(".")
    for cut in range(len(parts) - 1, -1, -1):
        try:
            value = importlib.import_module(".".join([top, *parts[:cut]]))
        except ModuleNotFoundError:
            continue
        try:
            for part in parts[cut:]:
                value = getattr(value, part)
            return None if is_stand_in(value) else value
        except AttributeError:
            return None
    return None


def test_objects_have_all_paths_of_pytorch():
    assert len(PATHS) > 300
    missing, different, known = [], [], 0
    for paths in PATHS:
        found = {path: resolve(path) for path in paths}
        values = [value for value in found.values() if value is not None]
        known += bool(values)
        if values:
            missing += [path for path, value in found.items() if value is None]
            different += [paths] if any(value is not values[0] for value in values) else []
    assert known > 150 and missing == [] and different == []


@pytest.mark.parametrize("path", OTHERS)
def test_private_paths_that_programs_use_exist(path):
    assert resolve(path) is not None


def test_the_listed_private_paths_exist_in_pytorch():
    needs_torch()
    for path in OTHERS:
        assert resolve(path, "torch") is not None, path


def test_importing_a_submodule_does_not_replace_the_function_of_its_name():
    code = """
from gradus.as_torch import install
install()
import torch.autograd.gradcheck
import torch.nn.modules.activation, torch.utils.checkpoint
from torch.nn.modules.batchnorm import _BatchNorm
assert callable(torch.autograd.gradcheck) and torch.autograd.gradcheck.__name__ == "gradcheck"
assert issubclass(torch.nn.BatchNorm2d, _BatchNorm) and torch.nn.modules.activation.MultiheadAttention is torch.nn.MultiheadAttention
import gradus.autograd.gradcheck, sys
assert sys.modules["torch.autograd.gradcheck"] is sys.modules["gradus.autograd.gradcheck"]
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ":".join(sys.path)}).stderr == ""


def test_the_attribute_underscore_grad():
    w, g = gradus.nn.Parameter(gradus.ones(2)), gradus.ones(2)
    w._grad = g
    assert w.grad is g and w._grad is g
    w._grad = None
    assert w.grad is None
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor"):
        w._grad = 3


def test_a_hook_put_into_global_forward_hooks_is_called():
    from gradus.nn.modules import module

    calls = []
    module._global_forward_hooks[-1] = lambda layer, args, output: calls.append(layer)
    try:
        layer = gradus.nn.Identity()
        layer(gradus.ones(1))
    finally:
        del module._global_forward_hooks[-1]
    layer(gradus.ones(1))
    assert calls == [layer]


def test_deprecated_names_of_initializers_warn():
    with pytest.warns(FutureWarning, match="`nn.init.constant` is now deprecated in favor of `nn.init.constant_`"):
        assert gradus.nn.init.constant(gradus.zeros(2), 3).tolist() == [3, 3]
    with pytest.warns(FutureWarning, match="clip_grad_norm_"):
        gradus.nn.utils.clip_grad_norm([gradus.nn.Parameter(gradus.ones(2))], 1.0)


def test_functions_with_several_paths_agree_with_pytorch():

    def results(t):
        x, y = t.arange(6.0).reshape(3, 2), t.ones(3, 2)
        t.manual_seed(0)
        calls = [t.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False), t.instance_norm(x[None], None, None, None, None, True, 0.1, 1e-5, False),
                 t.kl_div(x, y, 2), t.kl_div(x, y, log_target=True), t.dropout(x, 0.5, True), t.alpha_dropout(x, 0.5, False),
                 t.embedding(x, t.tensor([2, 0])), t.binary_cross_entropy_with_logits(x, y, None, None, 0), t.poisson_nll_loss(x, y, True, False, 1e-8, 1),
                 t.cosine_embedding_loss(x, y, y[:, 0]), t.hinge_embedding_loss(x, y, 1.0, 2), t.margin_ranking_loss(x, y, y, 0.5, 0),
                 t.triplet_margin_loss(x, y, y * 2, 1.0, 2.0, 1e-6, False, 0), t.pixel_shuffle(t.arange(4.0).reshape(1, 4, 1, 1), 2), x.where(x > 2, y),
                 x[:2].matrix_power(2), x.clone().cumsum_(0), x.clone().cumprod_(1), x.double().float_power_(2), t.linalg.cross(x.new_ones(2, 3), t.eye(3)[:2]),
                 t.linalg.diagonal(x), t.special.expit(x), t.special.gammaln(x), t.special.psi(x)]
        return [call.tolist() for call in calls]

    for i, (ours, theirs) in enumerate(zip(results(gradus), results(torch))):
        assert gradus.allclose(gradus.tensor(ours), gradus.tensor(theirs), atol=1e-5, equal_nan=True), i


def test_return_types():
    """Each class in return_types is the class of the results of its function."""
    names = [name for name, kind in vars(torch.return_types).items() if isinstance(kind, type) and issubclass(kind, tuple) and name[0] != "_" and not name.endswith("_out")]
    assert len(names) > 30 and not set(names) - set(gradus.return_types.__all__)
    for name in gradus.return_types.__all__:
        kind = getattr(gradus.return_types, name)
        assert (kind.__module__, kind.__name__) == ("torch.return_types", name)
    assert type(gradus.frexp(gradus.ones(1))) is gradus.return_types.frexp and type(gradus.linalg.svd(gradus.ones(2, 2))) is gradus.return_types.linalg_svd
