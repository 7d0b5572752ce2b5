"""Compares batch, group and instance normalization with PyTorch: layouts, dtypes, statistics and gradients. Also checks that the results have the
same bits with any number of threads."""
import itertools

import numpy as np
import pytest

import gradus
from beside_gradients import agree
from both import same
from oracle import torch

SHAPES = [(4, 3), (2, 3, 4), (2, 3, 5, 5), (2, 20, 3, 3), (3, 70, 2, 2), (2, 3, 2, 3, 4), (1, 5, 40, 70), (300, 17), (5, 130)]
# The tolerance for float32 is large, because PyTorch sums channels_last tensors element by element. Only float64 can reveal small mistakes.
TOLERANCE = {"float64": 1e-9, "float32": 1e-2, "float16": 3e-2, "bfloat16": 2e-1}


def batch_norm(training):
    return lambda m: lambda x, mean, var, weight, bias: m.nn.functional.batch_norm(x, mean, var, weight, bias, training, 0.3, 1e-3)


def arguments(shape, dtype, parameters, layout):
    torch.manual_seed(len(shape))
    x, channels = (torch.randn(shape) * 2 + 5).to(dtype), shape[1]
    if layout == "channels last" and len(shape) == 4:
        x = x.to(memory_format=torch.channels_last)
    elif layout == "transposed":
        x = x.transpose(0, -1).contiguous().transpose(0, -1)
    weight, bias = (torch.randn(channels).to(parameters).requires_grad_() for _ in range(2))
    return x.requires_grad_(), torch.randn(channels).to(parameters), (torch.rand(channels) + 1).to(parameters), weight, bias


@pytest.mark.parametrize("name, parameters", [("float32", "float32"), ("float64", "float64"), ("float16", "float16"), ("float16", "float32"),
                                              ("bfloat16", "bfloat16"), ("bfloat16", "float32")])
def test_batch_norm(name, parameters):
    # Large shapes are left out for 16-bit dtypes, because PyTorch rounds the means to that dtype.
    shapes = [shape for shape in SHAPES if "16" not in name or shape[0] < 20 and shape[-1] < 20]
    for shape, layout, training in itertools.product(shapes, ("contiguous", "channels last", "transposed"), (True, False)):
        x, mean, var, weight, bias = arguments(shape, getattr(torch, name), getattr(torch, parameters), layout)
        agree(batch_norm(training), x, mean, var, weight, bias, tolerance=TOLERANCE[name])
        if layout == "contiguous" and len(shape) == 3:
            agree(batch_norm(training), x, mean, var, None, None, tolerance=TOLERANCE[name])
            agree(batch_norm(True), x, None, None, weight, None, tolerance=TOLERANCE[name])


def test_batch_norm_refuses_invalid_arguments():
    x, ones = torch.ones(2, 3, 4), torch.ones(3)
    for given in ((x.long(), None, None, None, None), (x, None, None, ones.double(), None), (x, ones.double(), ones.double(), None, None), (x, ones[:2], ones, None, None),
                  (x.half(), ones.half(), ones.half(), ones, ones), (x.half(), ones, ones, ones.half(), ones.half()), (x.double(), ones, ones, ones, ones)):
        agree(batch_norm(True), *given)
    agree(batch_norm(False), x, None, None, None, None)


def test_native_batch_norm():
    x, mean, var, weight, bias = arguments((2, 3, 4), torch.float32, torch.float32, "contiguous")
    for training in (True, False):
        agree(lambda m: lambda *given: m.native_batch_norm(*given, training, 0.1, 1e-5), x, weight, bias, mean, var)


@pytest.mark.parametrize("shape, layout", [((8, 3, 200, 200), "contiguous"), ((8, 64, 32, 32), "contiguous"), ((8, 64, 32, 32), "channels last"), ((5000, 40), "contiguous")])
def test_batch_norm_does_not_depend_on_the_number_of_threads(shape, layout):
    gradus.manual_seed(0)
    x = gradus.randn(*shape)
    x = x.to(memory_format=gradus.channels_last) if layout == "channels last" else x
    found, before = [], gradus.get_num_threads()
    for threads in (1, 2, 5):
        gradus.set_num_threads(threads)
        leaf, weight = x.clone().requires_grad_(), gradus.ones(shape[1], requires_grad=True)
        result = gradus.nn.functional.batch_norm(leaf, None, None, weight, training=True)
        found.append([t.detach().flatten() for t in (result, *gradus.autograd.grad(result, [leaf, weight], x))])
    gradus.set_num_threads(before)
    for others in found[1:]:
        assert all(gradus.equal(a, b) for a, b in zip(found[0], others))


def test_second_order_gradients_of_batch_norm():
    def program(m):
        x = m.linspace(-1, 1, 24, dtype=m.float64).reshape(2, 3, 4).pow(3).requires_grad_()
        weight = m.tensor([1.0, 2.0, -1.0], dtype=m.float64, requires_grad=True)
        slope, = m.autograd.grad(m.nn.functional.batch_norm(x, None, None, weight, training=True).pow(2).sum(), x, create_graph=True)
        return [t.mul(1e6).round() for t in m.autograd.grad(slope.pow(2).sum(), [x, weight])]

    same(program)


def test_local_response_norm():
    for shape, size in itertools.product(((2, 5, 3), (1, 7, 2, 2), (2, 3, 2, 2, 2), (2, 3), (0, 3, 2)), (1, 2, 3, 4, 9)):
        agree(lambda m: m.nn.functional.local_response_norm, torch.randn(shape).requires_grad_(), size, alpha=0.3, beta=0.6, k=1.5)


def test_sync_batch_norm_equals_batch_norm():
    net = gradus.nn.Sequential(gradus.nn.BatchNorm2d(3), gradus.nn.Sequential(gradus.nn.BatchNorm1d(2, affine=False)))
    made = gradus.nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert isinstance(made[0], gradus.nn.SyncBatchNorm) and isinstance(made[1][0], gradus.nn.SyncBatchNorm)
    assert made[0].weight is net[0].weight or list(made.state_dict()) == list(net.state_dict())
    x = gradus.randn(2, 3, 4, 4)
    expected = gradus.nn.BatchNorm2d(3)(x)
    assert gradus.equal(made[0](x), expected)


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16"])
def test_group_norm(name):
    torch.manual_seed(0)
    for shape, groups in (((2, 6, 5), 3), ((2, 4), 2), ((3, 8, 4, 4), 1), ((2, 8, 4, 4), 8), ((1, 4, 60, 61), 2), ((2, 6, 2, 3, 2), 2)):
        if "16" in name and shape[-1] > 20:
            continue
        x = (torch.randn(shape) * 2 + 1).to(getattr(torch, name)).requires_grad_()
        weight, bias = (torch.randn(shape[1]).to(x.dtype).requires_grad_() for _ in range(2))
        for given in ((weight, bias), (weight, None), (None, None)):  # (None, bias) is left out, because PyTorch computes no gradient of a bias without a weight
            agree(lambda m: m.nn.functional.group_norm, x, groups, *given, 1e-3, tolerance=TOLERANCE[name])
        last = x.detach().to(memory_format=torch.channels_last).requires_grad_() if len(shape) == 4 else x.detach().transpose(0, -1).contiguous().transpose(0, -1).requires_grad_()
        agree(lambda m: m.nn.functional.group_norm, last, groups, weight, bias, 1e-3, tolerance=TOLERANCE[name])


@pytest.mark.parametrize("call", [
    lambda m, x, w, b: m.native_layer_norm(x, [3, 4], w.expand(3, 4), b.expand(3, 4), 0.1), lambda m, x, w, b: m.native_layer_norm(x, [4], None, None, 1e-5),
    lambda m, x, w, b: m.native_group_norm(x.reshape(2, 4, 3), w, b, 2, 4, 3, 2, 0.1), lambda m, x, w, b: m.native_group_norm(x.reshape(2, 4, 3), None, None, 2, 4, 3, 4, 1e-5),
])
def test_native_layer_norm_and_native_group_norm(call):
    x, w, b = np.random.default_rng(0).standard_normal((2, 3, 4)), np.arange(1.0, 5.0), np.arange(4.0)
    for ours, theirs in zip(*(call(module, *(module.tensor(a.tolist(), dtype=module.float64) for a in (x, w, b))) for module in (gradus, torch))):
        assert tuple(ours.shape) == tuple(theirs.shape)
        np.testing.assert_allclose(ours.tolist(), theirs.tolist(), rtol=1e-12, atol=1e-12)
