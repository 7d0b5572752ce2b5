"""Tests convolutions. Random cases are compared with PyTorch (values, dtypes, strides, gradients). Other tests are about second derivatives, extreme
arguments, error texts and modules."""
import functools
import math
import random

import pytest
from nn_programs import attempt, same

import gradus
from oracle import torch


def functions(t, n):
    return getattr(t.nn.functional, f"conv{n}d"), getattr(t.nn.functional, f"conv_transpose{n}d")


def draw_case(draw, longest=40):
    """Returns random sizes, strides and settings of a valid convolution. `longest` limits the size of a dimension."""
    n, transposed, groups = draw.choice((1, 2, 2, 3)), draw.random() < 0.4, draw.choice((1, 1, 1, 2, 3))
    depthwise = draw.random() < 0.15
    inner, outer = (1, draw.choice((1, 2))) if depthwise else (draw.choice((1, 2, 3, 5)), draw.choice((1, 2, 6, 9, 17, 33)))
    groups = draw.choice((3, 20)) if depthwise else groups
    each = [(draw.randint(1, 4), draw.randint(1, 3), draw.randint(0, 2), draw.randint(1, 2)) for _ in range(n)]
    kernel, stride, padding, dilation = (list(values) for values in zip(*each))
    size = [draw.randint(max(1, (k - 1) * d + 1 - 2 * p), longest // n) for k, _, p, d in zip(kernel, stride, padding, dilation)]
    settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    channels, weight = groups * inner, [groups * outer, inner, *kernel]
    if transposed:
        size = [draw.randint(1, 24 // n) for _ in range(n)]
        settings["output_padding"] = [draw.randint(0, max(s, d) - 1) for s, d in zip(stride, dilation)]
        grown = [(i - 1) * s - 2 * p + d * (k - 1) + 1 + o
                 for i, s, p, d, k, o in zip(size, stride, padding, dilation, kernel, settings["output_padding"])]
        if min(grown) < 1:
            return draw_case(draw, longest)
        channels = groups * outer
    samples = draw.choice(([], [1], [2], [3], [0] if n < 3 else [2]))
    return n, transposed, [*samples, channels, *size], weight, draw.random() < 0.5, settings


def laid_out(t, x, how):
    """Returns a tensor with the elements of `x` in the memory layout `how`."""
    if how == "channels last" and x.ndim in (4, 5):
        return x.contiguous(memory_format=t.channels_last if x.ndim == 4 else t.channels_last_3d)
    if how == "turned":
        return x.transpose(-1, -2).contiguous().transpose(-1, -2)
    if how == "every second":
        room = t.zeros(*x.shape[:-1], 2 * x.shape[-1], dtype=x.dtype)
        room[..., ::2] = x
        return room[..., ::2]
    if how == "expanded":
        return x[:1].expand(x.shape)
    return x


def assert_close(got, wanted, tolerance):
    assert list(got.shape) == list(wanted.shape) and str(got.dtype).split(".")[1] == str(wanted.dtype).split(".")[1]
    got, wanted = (x.detach().to({True: t.complex128, False: t.float64}[x.dtype.is_complex]) for t, x in ((gradus, got), (torch, wanted)))
    got = torch.from_numpy(got.numpy())
    assert (got - wanted).abs().max().item() <= tolerance * (1 + wanted.abs().max().item()) if wanted.numel() else True


def run_case(seed, dtype, how, tolerance, longest=40):
    draw = random.Random(seed)
    n, transposed, sizes, weight_sizes, has_bias, settings = draw_case(draw, longest)
    outer = settings["groups"] * weight_sizes[1] if transposed else weight_sizes[0]
    made = torch.Generator().manual_seed(seed)
    raw = [torch.randn(*s, generator=made, dtype=torch.float64) for s in (sizes, weight_sizes, [outer])]
    outcomes = []
    for t in (gradus, torch):
        x, weight, bias = (laid_out(t, t.from_numpy(r.numpy()).to(getattr(t, dtype)), how if i < 2 else "").requires_grad_()
                           for i, r in enumerate(raw))
        leaves = [x, weight, bias] if has_bias else [x, weight]
        result = functions(t, n)[transposed](x, weight, bias if has_bias else None, **settings)
        factor = (t.arange(result.numel(), dtype=t.float64) % 7 - 3).to(result.dtype).reshape(result.shape)
        outcomes.append([result, *t.autograd.grad(result, leaves, factor)])
    for got, wanted in zip(*outcomes):
        assert_close(got, wanted, tolerance)
    return outcomes[0][0], outcomes[1][0]


@pytest.mark.parametrize("seed", range(160))
def test_random_convolutions_agree_with_pytorch(seed):
    run_case(seed, "float32", "", 3e-5)


@pytest.mark.parametrize("dtype", ("float32", "float64", "bfloat16"))
@pytest.mark.parametrize("seed", range(600, 660))
def test_convolutions_of_long_rows(seed, dtype):
    run_case(seed, dtype, "", {"float32": 1e-5, "float64": 1e-12, "bfloat16": 3e-2}[dtype], longest=180)


@pytest.mark.parametrize("how", ("channels last", "turned", "every second", "expanded"))
@pytest.mark.parametrize("seed", range(200, 230))
def test_convolutions_of_strided_inputs(seed, how):
    got, wanted = run_case(seed, "float64", how, 1e-12)
    if how == "channels last" and wanted.ndim == 4 and wanted.numel() > 0:
        assert got.is_contiguous(memory_format=gradus.channels_last) == wanted.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("seed", range(800, 840))
def test_expanded_columns_are_convolved_like_their_copies(seed):
    """An image of width 1 and a gradient of the result are expanded along random dimensions, so they have strides of 0. The elements are small integers,
    for which convolutions are exact."""
    draw = random.Random(seed)

    def drawn(*sizes):
        return gradus.tensor([draw.randint(-4, 4) for _ in range(math.prod(sizes))], dtype=gradus.float32).reshape(sizes)

    def expanded(*sizes):
        return drawn(*(1 if draw.random() < 0.5 else size for size in sizes)).expand(sizes)

    samples, channels, outer, length, kernel = (draw.randint(1, most) for most in (40, 5, 5, 40, 3))
    image, weight = expanded(samples, channels, max(length, kernel), 1), drawn(outer, channels, kernel, 1)
    outcomes = []
    for x in (image, image.contiguous()):
        leaves = [x.detach().requires_grad_(), weight.detach().requires_grad_()]
        result = gradus.nn.functional.conv2d(*leaves)
        gradient = expanded(*result.shape) if not outcomes else gradient.contiguous()
        outcomes.append([result, *gradus.autograd.grad(result, leaves, gradient)])
    assert all(got.equal(wanted) for got, wanted in zip(*outcomes))


@pytest.mark.parametrize(("dtype", "tolerance"), (("float16", 4e-3), ("bfloat16", 3e-2), ("complex64", 3e-5), ("complex128", 1e-12)))
@pytest.mark.parametrize("seed", range(300, 315))
def test_convolutions_in_half_and_complex_dtypes(seed, dtype, tolerance):
    run_case(seed, dtype, "", tolerance)


@pytest.mark.parametrize("dtype", ("complex64", "complex128"))
@pytest.mark.parametrize("how", ("", "channels last", "turned", "every second"))
@pytest.mark.parametrize("seed", range(700, 715))
def test_large_complex_convolutions(seed, how, dtype):
    """Complex convolutions, which are computed by three real convolutions, are accurate."""
    got, wanted = run_case(seed, dtype, how, {"complex64": 1e-5, "complex128": 2e-14}[dtype], longest=180)
    if how == "channels last" and wanted.ndim == 4 and wanted.numel() > 0:
        assert got.is_contiguous(memory_format=gradus.channels_last) == wanted.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("dtype", ("uint8", "int8", "int16", "int32", "int64"))
def test_integer_convolutions_wrap_around(dtype):
    """Integer convolutions wrap around at the ends of the dtype, as integer products do."""
    x, weight = gradus.arange(96).reshape(2, 3, 4, 4), gradus.arange(54).reshape(2, 3, 3, 3)
    exact = gradus.nn.functional.conv2d(x.double(), weight.double(), padding=1).long()
    assert gradus.nn.functional.conv2d(x.to(getattr(gradus, dtype)), weight.to(getattr(gradus, dtype)), padding=1).equal(exact.to(getattr(gradus, dtype)))


@pytest.mark.parametrize("seed", range(400, 420))
def test_second_order_gradients_of_convolutions(seed):
    draw, pairs = random.Random(seed), 0
    while not 0 < pairs <= 2000:  # finite differences change one element at a time, so the case must be small
        n, transposed, sizes, weight_sizes, _, settings = draw_case(draw)
        pairs = math.prod(sizes) * math.prod(weight_sizes)
    gradus.manual_seed(seed)
    x, weight = (gradus.randn(*s, dtype=gradus.float64, requires_grad=True) for s in (sizes, weight_sizes))

    def run(x, weight):
        return functions(gradus, n)[transposed](x, weight, None, **settings)

    assert gradus.autograd.gradcheck(run, (x, weight)) and gradus.autograd.gradgradcheck(run, (x, weight))


@pytest.mark.parametrize("dtype", ("float32", "complex64"))
@pytest.mark.parametrize("seed", range(500, 540))
def test_convolutions_do_not_depend_on_the_number_of_threads(seed, dtype):
    n, transposed, sizes, weight_sizes, _, settings = draw_case(random.Random(seed), 40 if dtype == "float32" else 180)
    outcomes, threads = [], gradus.get_num_threads()
    try:
        for count in (1, 3):
            gradus.set_num_threads(count)
            gradus.manual_seed(seed)
            x, weight = (gradus.randn(*s, dtype=getattr(gradus, dtype), requires_grad=True) for s in (sizes, weight_sizes))
            result = functions(gradus, n)[transposed](x, weight, None, **settings)
            outcomes.append([result, *gradus.autograd.grad(result.abs().sin().sum(), (x, weight))])
    finally:
        gradus.set_num_threads(threads)
    assert all(a.equal(b) for a, b in zip(*outcomes))


HUGE = 2**62


@pytest.mark.parametrize("settings", (
    {"padding": HUGE}, {"padding": 2**63 - 1}, {"dilation": HUGE}, {"stride": 0}, {"stride": -1}, {"padding": -1}, {"groups": 0}, {"groups": -1}, {"groups": HUGE},
    {"dilation": 0}, {"padding": 2**31, "dilation": 1}, {"padding": [1, 2, 3]}, {"stride": []}, {"padding": "some"}, {"padding": "same", "stride": 2},
    {"padding": "same", "dilation": HUGE}, {"padding": "same", "dilation": [1, 1, 1]}))
def test_extreme_settings_of_convolutions_are_errors(settings):
    """Extreme settings raise errors and never crash. A result that is too large for any memory is a MemoryError."""
    with pytest.raises((RuntimeError, ValueError, MemoryError)):
        gradus.nn.functional.conv2d(gradus.ones(1, 1, 4, 4), gradus.ones(1, 1, 3, 3), **settings)


@pytest.mark.parametrize("settings", ({"stride": HUGE}, {"padding": HUGE}, {"output_padding": HUGE, "stride": HUGE}, {"output_padding": 1}, {"dilation": HUGE},
                                      {"output_padding": -1}, {"stride": 2**40}))
def test_extreme_settings_of_transposed_convolutions_are_errors(settings):
    with pytest.raises((RuntimeError, ValueError, MemoryError)):
        gradus.nn.functional.conv_transpose2d(gradus.ones(1, 1, 4, 4), gradus.ones(1, 1, 3, 3), **settings)


def test_convolutions_with_huge_stride_padding_and_dilation():
    F, x, weight = gradus.nn.functional, gradus.arange(16.0).reshape(1, 1, 4, 4), gradus.ones(1, 1, 3, 3)
    assert F.conv2d(x, weight, stride=HUGE).tolist() == [[[[45.0]]]]
    assert F.conv2d(x, weight, padding=2**20, dilation=2**20, stride=2**20).shape == (1, 1, 1, 1)
    assert F.conv1d(x.reshape(1, 16), gradus.ones(1, 1, 1), stride=2**40).tolist() == [[0.0]]


def test_convolution_of_meta_tensors_allocates_no_memory():
    x, weight = gradus.empty(2**20, 3, 2**10, 2**10, device="meta"), gradus.empty(64, 3, 3, 3, device="meta")
    assert gradus.nn.functional.conv2d(x, weight, padding=1).shape == (2**20, 64, 2**10, 2**10)


@same
def test_errors_of_convolutions_are_those_of_pytorch(t):
    F, ones = t.nn.functional, t.ones
    yield attempt(F.conv2d, ones(4), ones(1, 1, 3, 3)), attempt(F.conv1d, ones(1, 1, 4, 4), ones(1, 1, 3))
    yield attempt(F.conv2d, ones(1, 2, 4, 4), ones(1, 3, 3, 3)), attempt(F.conv2d, ones(1, 3, 4, 4), ones(2, 3, 5, 5))
    yield attempt(F.conv2d, ones(1, 3, 4, 4), ones(2, 3, 3, 3), ones(3)), attempt(F.conv2d, ones(1, 4, 4, 4), ones(3, 2, 3, 3), groups=2)[0]
    yield attempt(F.conv2d, ones(1, 3, 4, 4), ones(2, 3, 3, 3), padding=-1), attempt(F.conv2d, ones(1, 3, 4, 4), ones(2, 3, 3, 3), stride=0)
    yield attempt(F.conv_transpose2d, ones(1, 3, 4, 4), ones(2, 3, 3, 3)), attempt(F.conv2d, ones(1, 3, 4, 4), ones(2, 3, 3, 3), padding="same", stride=2)


@same
def test_convolutions_without_elements(t):
    """The batch may be empty. In other batches, images and transposed convolutions must have elements. In float32 the answers of PyTorch to output sizes
    of 0 depend on the batch size."""
    F, ones = t.nn.functional, functools.partial(t.ones, dtype=t.float64)
    for n in (1, 2, 3):
        conv, transposed = functions(t, n)
        for samples, size, outer, settings in ((0, 0, 3, {}), (0, 1, 3, {"padding": 1}), (2, 3, 3, {}), (2, 0, 3, {}), (2, 0, 3, {"padding": 1}), (2, 0, 0, {}),
                                               (2, 1, 3, {"padding": 1}), (2, 3, 3, {"padding": 3}), (2, 3, 0, {}), (2, 1, 3, {"stride": 2, "padding": 1})):
            outcome = attempt(transposed, ones(samples, 2, *[size] * n), ones(2, outer, *[2] * n), **settings)
            yield outcome[0] if isinstance(outcome, tuple) else outcome.shape
        yield attempt(transposed, ones(2, *[0] * n), ones(2, 3, *[2] * n))[0], attempt(conv, ones(2, 2, *[0] * n), ones(3, 2, *[2] * n), padding=1)[0]
        yield conv(ones(0, 2, *[0] * n), ones(3, 2, *[1] * n), padding=1).shape
    yield attempt(F.conv_transpose2d, ones(1, 2, 0, 3), ones(2, 3, 2, 2)), attempt(F.conv2d, ones(1, 2, 0, 3), ones(3, 2, 2, 2), padding=1)
    yield attempt(F.conv_transpose3d, ones(1, 2, 1, 2, 1), ones(2, 3, 2, 2, 2), padding=1)
    x, weight = ones(0, 2, 1, 1, requires_grad=True), ones(2, 3, 2, 2, requires_grad=True)
    yield t.autograd.grad(F.conv_transpose2d(x, weight, padding=1).sum(), (x, weight))


def modules(t):
    nn = t.nn
    yield nn.Conv1d(4, 6, 3), (2, 4, 9)
    yield nn.Conv1d(4, 6, 4, padding="same", groups=2, dilation=2), (4, 9)
    yield nn.Conv2d(3, 5, (3, 2), stride=(1, 2), bias=False), (2, 3, 6, 7)
    yield nn.Conv2d(3, 6, 3, padding="valid", dtype=t.float64), (2, 3, 6, 7)
    yield nn.Conv3d(2, 4, 3, padding=1), (1, 2, 3, 4, 5)
    yield nn.ConvTranspose1d(4, 6, 3, 2, output_padding=1), (2, 4, 5)
    yield nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1, groups=2), (4, 5, 6)
    yield nn.ConvTranspose3d(2, 3, 2, 2, bias=False), (1, 2, 3, 2, 2)
    for mode in ("reflect", "replicate", "circular"):
        yield nn.Conv1d(2, 3, 3, padding=2, padding_mode=mode), (2, 2, 7)
        yield nn.Conv2d(2, 3, (3, 5), padding=(1, 2), padding_mode=mode), (2, 2, 5, 6)
        yield nn.Conv2d(2, 3, (3, 4), padding="same", padding_mode=mode), (2, 2, 5, 6)
    yield nn.Conv3d(1, 2, 3, padding=1, padding_mode="circular"), (1, 1, 3, 4, 5)


@same(tolerance=1e-4)
def test_convolution_modules(t):
    for module, sizes in modules(t):
        x = t.randn(*sizes, dtype=module.weight.dtype, requires_grad=True)
        result = module(x)
        result.sin().sum().backward()
        yield repr(module), module.state_dict(), result, x.grad, [p.grad for p in module.parameters()]


@same(tolerance=1e-4)
def test_output_size_of_transposed_convolution_modules(t):
    layer, x = t.nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1), t.randn(1, 2, 5, 5)
    for size in ((9, 9), [10, 10], (1, 3, 9, 10)):
        yield layer(x, output_size=size)
    yield attempt(layer, x, output_size=(8, 9)), attempt(layer, x, output_size=(9,))


@same
def test_errors_of_convolution_modules(t):
    nn = t.nn
    yield attempt(nn.Conv2d, 3, 4, 3, groups=2), attempt(nn.Conv2d, 4, 3, 3, groups=2), attempt(nn.Conv2d, 4, 4, 3, groups=0)
    yield attempt(nn.Conv2d, 4, 4, 3, padding="same", stride=2), attempt(nn.Conv2d, 1, 2), attempt(nn.ConvTranspose2d, 1, 2, 3, padding_mode="circular")
    yield attempt(nn.Conv2d(3, 4, 3), t.ones(1, 2, 5, 5)), attempt(nn.Conv2d(3, 4, 3), t.ones(3, 2, 2))


def test_vmap_of_convolutions():
    gradus.manual_seed(0)
    F, x, weight = gradus.nn.functional, gradus.randn(3, 2, 4, 6, 5), gradus.randn(3, 6, 2, 3, 3)
    got = gradus.func.vmap(lambda a, w: F.conv2d(a, w, groups=2, padding=1))(x, weight)
    wanted = gradus.stack([F.conv2d(a, w, groups=2, padding=1) for a, w in zip(x, weight)])
    assert gradus.allclose(got, wanted, atol=1e-5)
    each = gradus.func.vmap(gradus.func.grad(lambda w, a: F.conv2d(a, w, groups=2).sin().sum()), in_dims=(None, 0))(weight[0], x)
    assert gradus.allclose(each[1], gradus.func.grad(lambda w: F.conv2d(x[1], w, groups=2).sin().sum())(weight[0]), atol=1e-4)


def test_name_of_the_convolution_node():
    x = gradus.ones(1, 1, 3, requires_grad=True)
    assert gradus.nn.functional.conv1d(x, gradus.ones(1, 1, 2)).grad_fn.name() == "ConvolutionBackward0"


def test_long_sums_of_convolutions_lose_little_precision():
    """Each output is a sum of 4,608 products. If the products were added one after the other, the relative error would be 9 eps; the limit is 4
    eps."""
    gradus.manual_seed(0)
    for outer, size in ((16, 5), (1, 5), (1, 40), (3, 40)):
        x, weight = gradus.randn(1, 512, size, size), gradus.randn(outer, 512, 3, 3)
        for function, w in ((gradus.conv2d, weight), (gradus.conv_transpose2d, weight.transpose(0, 1))):
            exact = function(x.double(), w.double(), padding=1)
            error = (function(x, w, padding=1) - exact).square().mean().sqrt() / exact.square().mean().sqrt()
            assert error < 4 * gradus.finfo(gradus.float32).eps
