"""Compares resizing of images with PyTorch: values, first and second derivatives, strides and errors, for random modes, sizes and factors."""
import random

import gradus
import pytest
from nn_programs import attempt, same

MODES = {1: ("nearest", "nearest-exact", "linear", "area"), 2: ("nearest", "nearest-exact", "bilinear", "bicubic", "area"),
         3: ("nearest", "nearest-exact", "trilinear", "area")}
DRAWS = 12


def arguments(draw, mode, sizes):
    options = {"mode": mode}
    if draw.random() < 0.5:
        options["size"] = [draw.randint(2, 13) for _ in sizes]
    else:
        options["scale_factor"] = draw.choice([2, 3, 1.7, 2.3, 1.0, [draw.uniform(0.6, 3) for _ in sizes]])
        options["recompute_scale_factor"] = draw.choice([None, True])
    if mode in ("linear", "bilinear", "trilinear", "bicubic"):
        options["align_corners"] = draw.choice([None, True, False])
        options["antialias"] = len(sizes) == 2 and draw.random() < 0.5
    return options


def cases(t, dim, mode, dtype):
    draw = random.Random(f"{mode} {dim}")
    for _ in range(DRAWS):
        sizes = [draw.randint(2, 9 if dim < 3 else 5) for _ in range(dim)]
        if dim == 1 and draw.random() < 0.3:
            sizes = [draw.randint(20, 60)]
        x = (t.rand(draw.randint(1, 2), draw.choice([2, 3, 18]), *sizes) * 255).to(dtype)
        x = x.to(memory_format=t.channels_last) if dim == 2 and draw.random() < 0.4 else x
        yield x, arguments(draw, mode, sizes)


def resampled(t, x, options):
    x = x.detach().requires_grad_()
    y = t.nn.functional.interpolate(x, **options)
    grad, = t.autograd.grad((y * y).sum(), x, create_graph=True)
    return [y, y.stride(), y.grad_fn.name(), grad, *t.autograd.grad((grad * grad).sum(), x)]


@pytest.mark.parametrize("dim, mode", [(dim, mode) for dim, modes in MODES.items() for mode in modes])
def test_interpolate_in_float64(dim, mode):
    @same(tolerance=1e-8)
    def program(t):
        for x, options in cases(t, dim, mode, t.float64):
            yield options, resampled(t, x, options)

    program()


@pytest.mark.parametrize("dim, mode", [(dim, mode) for dim, modes in MODES.items() for mode in modes])
def test_interpolate_in_float32(dim, mode):
    @same(tolerance=2e-4)
    def program(t):
        for x, options in cases(t, dim, mode, t.float32):
            yield options, t.nn.functional.interpolate(x / 255, **options)

    program()


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_interpolate_in_uint8(mode):
    @same(tolerance=0)
    def program(t):
        for x, options in cases(t, 2, mode, t.uint8):
            yield options, t.nn.functional.interpolate(x, **options)

    program()


@same(tolerance=2e-2)
def test_interpolate_in_half_types(t):
    for dtype in (t.float16, t.bfloat16):
        x = t.rand(1, 2, 5, 6).to(dtype)
        for mode in MODES[2]:
            yield t.nn.functional.interpolate(x, scale_factor=1.5, mode=mode)


@same(tolerance=1e-5)
def test_interpolate_with_lanczos(t):
    for sizes, wanted in (((9, 7), (4, 3)), ((5, 6), (11, 13)), ((40, 31), (7, 5))):
        yield t.nn.functional.interpolate(t.rand(1, 2, *sizes), wanted, mode="lanczos", antialias=True)


@same
def test_errors_of_interpolate(t):
    interpolate, x = t.nn.functional.interpolate, t.ones(1, 1, 3, 3)
    for options in ({}, {"size": 3, "scale_factor": 2}, {"size": (1, 2, 3)}, {"scale_factor": (1, 2, 3)}, {"size": 2.5}, {"size": 2, "mode": "linear"},
                    {"size": 2, "mode": "nearest", "align_corners": True}, {"size": 2, "mode": "other"}, {"size": 2, "antialias": True},
                    {"size": 2, "recompute_scale_factor": True}, {"size": 2, "mode": "lanczos"}):
        yield options, attempt(interpolate, x, **options)[0]
    for size in (0, -1, (2, 0), 2**40, 2**62):
        yield size, attempt(interpolate, x, size)[0], attempt(interpolate, x, size, mode="bilinear")[0]
    yield attempt(interpolate, t.ones(1, 0, 3, 3), 2)[0], attempt(interpolate, t.ones(3, 3), 2)[0], interpolate(t.ones(0, 2, 3, 3), 2)


@same
def test_upsampling_modules(t):
    x = t.rand(1, 2, 3, 4)
    for layer in (t.nn.Upsample(scale_factor=2), t.nn.Upsample((5, 6), mode="bilinear", align_corners=True), t.nn.Upsample(scale_factor=(2, 3), mode="bicubic"),
                  t.nn.UpsamplingNearest2d(scale_factor=2), t.nn.UpsamplingBilinear2d((7, 5))):
        yield repr(layer), sorted(key for key in vars(layer) if not key.startswith("_")), layer(x)
    F = t.nn.functional
    yield attempt(F.upsample, x, 5), attempt(F.upsample_nearest, x, 5), attempt(F.upsample_bilinear, x, 5)


@same
def test_vmap_and_jvp_of_interpolate(t):
    x, interpolate = t.rand(3, 2, 2, 4, 5), t.nn.functional.interpolate
    for options in ({"mode": "nearest"}, {"mode": "bilinear"}, {"mode": "bicubic", "antialias": True}):
        yield t.vmap(lambda x: interpolate(x, (3, 7), **options))(x), t.func.jvp(lambda x: interpolate(x, (3, 7), **options), (x[0],), (x[1],))


def test_antialias_filter_outside_of_the_image_gives_zeros():
    x = gradus.tensor([1.5, 2.5]).view(2, 1, 1, 1)
    for name in ("bilinear", "bicubic", "lanczos"):
        for layout in (gradus.contiguous_format, gradus.channels_last):
            result = getattr(gradus._C.nn, f"_upsample_{name}2d_aa")(x.contiguous(memory_format=layout), [4, 2], False, 0.5, 0.3)
            assert result[:, 0, 0, 0].tolist() == pytest.approx([1.5, 2.5]) and not result[:, :, 3:].any()
