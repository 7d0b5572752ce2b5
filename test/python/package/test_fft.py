"""Compares torch.fft with NumPy in higher precision, for every length and algorithm, and compares functions, errors and derivatives with PyTorch."""
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gradus
from both import caught, same
from oracle import needs_torch, torch

LENGTHS = [*range(1, 151), 191, 210, 256, 263, 360, 509, 512, 720, 1000, 1009, 1024, 1155, 2048, 2187, 3125, 4096, 4099, 5040]
LONG = [10007, 16384, 17017, 65536, 65537, 99999, 100000]
# Bounds of max |error| / (root mean square of the result). Errors of good algorithms grow with sqrt(log n), and those of Bluestein's
# algorithm are a few times larger.
TOLERANCE = {"complex64": 2e-6, "complex128": 7e-15}


def numbers(shape, dtype, seed=0):
    pick = np.random.default_rng(seed)
    return (pick.standard_normal(shape) + 1j * pick.standard_normal(shape)).astype(dtype)


def check(result, expected, dtype):
    result = result.resolve_conj().numpy()
    assert result.shape == expected.shape and result.dtype.itemsize in (np.dtype(dtype).itemsize, np.dtype(dtype).itemsize // 2)
    assert np.abs(result - expected).max(initial=0) <= TOLERANCE[dtype] * np.sqrt((np.abs(expected) ** 2).mean())


def transforms(x, dtype):
    """Checks the complex, the real and the inverse real transform of each row of the matrix x, and also of each column of the transposed matrix."""
    n = x.shape[1]
    wide = x.astype(np.complex128)
    half = wide[:, :n // 2 + 1]
    real = np.fft.irfft(half, n, axis=1) * n if n > 1 else half.real
    expected = [np.fft.fft(wide, axis=1), np.fft.ifft(wide, axis=1) * n, np.fft.rfft(wide.real, axis=1), np.fft.fft(wide.real, axis=1), real]
    for turn in (False, True):
        def tensor(a):
            return gradus.from_numpy(np.ascontiguousarray(a.T if turn else a))

        dim = [0 if turn else 1]
        t, parts, short = tensor(x), tensor(x.real), tensor(x[:, :n // 2 + 1])
        found = [gradus._fft_c2c(t, dim, 0, True), gradus._fft_c2c(t, dim, 0, False), gradus._fft_r2c(parts, dim, 0, True), gradus._fft_r2c(parts, dim, 0, False), gradus._fft_c2r(short, dim, 0, n)]
        for a, b in zip(found, expected):
            check(a.T if turn else a, b, dtype)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("lines", [1, 3, 19])
def test_transforms_of_every_length(dtype, lines):
    for n in LENGTHS:
        transforms(numbers((lines, n), dtype), dtype)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("n", LONG)
def test_transforms_of_long_lines(dtype, n):
    transforms(numbers((2, n), dtype), dtype)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_transforms_over_several_dimensions_of_strided_tensors(dtype):
    whole = numbers((6, 5, 8, 7), dtype)
    t = gradus.from_numpy(whole)
    for view, array in ((t, whole), (t[::2, :, 1:, ::3], whole[::2, :, 1:, ::3]), (t.permute(3, 1, 0, 2), whole.transpose(3, 1, 0, 2)), (t[:, :1].expand(6, 4, 8, 7), np.broadcast_to(whole[:, :1], (6, 4, 8, 7)))):
        wide = array.astype(np.complex128)
        for dims in ([0], [3], [1, 2], [3, 0], [0, 1, 2, 3]):
            check(gradus.fft.fftn(view, dim=dims), np.fft.fftn(wide, axes=dims), dtype)
            check(gradus.fft.ifftn(view, dim=dims, norm="ortho"), np.fft.ifftn(wide, axes=dims, norm="ortho"), dtype)
            check(gradus.fft.rfftn(view.real, dim=dims), np.fft.rfftn(wide.real, axes=dims), dtype)
            check(gradus.fft.irfftn(view, dim=dims, norm="forward"), np.fft.irfftn(wide, axes=dims, norm="forward"), dtype)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_two_dimensional_transforms_of_large_batches(dtype):
    """The matrices together do not fit into the cache. Rows and columns are transformed several at a time. The last group of rows or columns is
    incomplete."""
    x = numbers((7, 2, 60, 171), dtype)
    before = gradus.get_num_threads()
    for view, array in ((gradus.from_numpy(x), x), (gradus.from_numpy(x).transpose(0, 1), x.transpose(1, 0, 2, 3)), (gradus.from_numpy(x).transpose(1, 2), x.transpose(0, 2, 1, 3))):
        wide, found = array.astype(np.complex128), []
        for threads in (1, 2):
            gradus.set_num_threads(threads)
            found.append((gradus.fft.fft2(view), gradus.fft.ifft2(view, norm="forward"), gradus.fft.rfft2(view.real), gradus.fft.irfft2(view, norm="forward")))
        gradus.set_num_threads(before)
        for one, two, expected in zip(*found, (np.fft.fft2(wide), np.fft.ifft2(wide, norm="forward"), np.fft.rfft2(wide.real), np.fft.irfft2(wide, norm="forward"))):
            check(one, expected, dtype)
            assert one.resolve_conj().numpy().tobytes() == two.resolve_conj().numpy().tobytes()


def test_transforms_of_flipped_lines():
    x = numbers((3, 40), "complex128")
    check(gradus.fft.fft(gradus.from_numpy(x[:, ::-1].copy()).flip(1)), np.fft.fft(x), "complex128")


def exact_root(n, exponents):
    """Returns exp(-2 pi i e / n) in long double, computed from angles of at most 45 degrees."""
    octant, rest = 8 * exponents // n, 8 * exponents % n
    angle = np.where(octant % 2 == 0, rest, n - rest) * (np.longdouble("0.78539816339744830961566084581987572") / n)
    cosine, sine = np.cos(angle), np.sin(angle)
    steep = np.isin(octant, (1, 2, 5, 6))
    return np.where((octant >= 2) & (octant < 6), -1, 1) * np.where(steep, sine, cosine) + 1j * np.where(octant >= 4, 1, -1) * np.where(steep, cosine, sine)


ACCURATE = [*range(2, 65), 74, 97, 100, 101, 127, 128, 210, 243, 256, 509, 625, 720, 1000, 1009, 1024, 1999, 2000, 4096, 10007, 16384, 100000, 100003, 1 << 20]


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double is no wider than double, so there is nothing to compare with")
@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_accuracy_of_transforms(dtype):
    """The relative error in the 2-norm is at most 3 eps log2(n) (Higham, Accuracy and stability of numerical algorithms, theorem 24.2). The test
    requires a sixth of that bound. It compares some elements of the result with sums in long double."""
    pick = np.random.default_rng(5)
    eps = float(np.finfo(dtype).eps)
    for n in ACCURATE:
        x, elements = numbers(n, dtype), np.sort(pick.choice(n, min(n, 24 if n < 20000 else 5), replace=False))
        # `back` is the first half of a Hermitian spectrum of n elements. back[0] is real. If n is even, back[-1] is real too.
        back = np.concatenate([x.real[:1], x[1:(n + 1) // 2], x.real[n // 2:n // 2 + 1] if n % 2 == 0 else x[:0]])
        roots = exact_root(n, np.arange(n))
        for name, line, found in (("fft", x, gradus.fft.fft(gradus.from_numpy(x))), ("rfft", x.real, gradus.fft.rfft(gradus.from_numpy(x.real.copy()))),
                                  ("hfft", np.concatenate([back, back[1:(n + 1) // 2].conj()[::-1]]), gradus.fft.hfft(gradus.from_numpy(back), n))):
            chosen = elements[elements < found.numel()]
            exact = np.array([(line.astype(np.clongdouble) * roots[k * np.arange(n) % n]).sum() for k in chosen])
            error = np.linalg.norm((found.numpy()[chosen] - exact).astype(complex)) / np.linalg.norm(exact.astype(complex))
            assert error <= 0.5 * eps * np.log2(n), (name, n, error / eps / np.log2(n))


BATCHED = [*range(1, 20), 31, 37, 46, 48, 49, 62, 64, 74, 96, 100, 101, 137, 158, 188, 191, 210, 256, 263, 509, 720, 1009, 1024, 1155, 2022, 2187, 3125, 4099, 10007, 65536]
# Number of inputs in a batch. The widest SIMD vector holds 16 float32 numbers, so 19 inputs fill one vector and a part of a second.
BATCH = 19


def lines_that_differ(dtype):
    """Returns the names of the transforms that violate this rule: a signal transformed alone on one thread, as a row or as a column, gives the same
    bits as in a batch on three threads."""
    found = set()
    for n in BATCHED:
        x = gradus.from_numpy(numbers((BATCH if n < 5000 else 3, n), dtype))
        transforms_of_lines = {"fft": lambda t, d: gradus.fft.fft(t, dim=d, norm="ortho"), "ifft": lambda t, d: gradus.fft.ifft(t, dim=d), "rfft": lambda t, d: gradus.fft.rfft(t.real, dim=d, norm="forward"),
                               "irfft": lambda t, d: gradus.fft.irfft(t, n, dim=d, norm="ortho"), "real fft": lambda t, d: gradus.fft.fft(t.real, dim=d), "hfft": lambda t, d: gradus.fft.hfft(t, n, dim=d)}
        for name, transform in transforms_of_lines.items():
            gradus.set_num_threads(3)
            whole = transform(x, 1).numpy()
            gradus.set_num_threads(1)
            for some in (slice(0, 1), slice(2, 3), slice(3, 9), slice(1, 17)):
                rows, columns = transform(x[some], 1).numpy(), transform(x[some].T.contiguous(), 0).numpy()
                if rows.tobytes() != whole[some].tobytes() or columns.T.tobytes() != whole[some].tobytes():
                    found.add(f"{name} {dtype} {n}")
    return sorted(found)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("level", ["portable", "v2", "v3", "v4"])
def test_transforms_do_not_depend_on_batch_and_number_of_threads(level, dtype):
    program = f"import test_fft; print(test_fft.lines_that_differ({dtype!r}))"
    result = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parent, env=os.environ | {"GRADUS_ISA": level, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True)
    assert result.stdout == "[]\n", result.stdout + result.stderr


def test_out_argument_of_transforms():
    x = gradus.from_numpy(numbers((4, 6), "complex64"))
    out = gradus.empty(6, 4, dtype=gradus.complex64).T
    assert gradus._fft_c2c(x, [1], 0, True, out=out) is out and bool((out == gradus.fft.fft(x)).all())
    kept = gradus.fft.fft(x)
    assert bool((gradus._fft_c2c(x, [1], 0, True, out=x) == kept).all()) and bool((x == kept).all())
    wide = gradus.empty(0, dtype=gradus.complex128)
    assert gradus.fft.fft(kept, out=wide).dtype == gradus.complex128 and wide.shape == (4, 6)


def test_transforms_of_an_empty_batch():
    for function, last in (("fft", 3), ("rfft", 2), ("irfft", 4), ("hfft", 4), ("ihfft", 2)):
        assert getattr(gradus.fft, function)(gradus.empty(0, 3)).shape == (0, last)


FORMS = [dict(), dict(n=3), dict(n=9), dict(dim=0), dict(dim=1, n=4), dict(norm="ortho"), dict(norm="forward", dim=-2)]
MANY = [dict(), dict(s=(3, 5)), dict(dim=(0, 2)), dict(dim=(2, 0), norm="ortho"), dict(s=(-1, 9), dim=(1, 0)), dict(s=4), dict(norm="forward")]
REAL = ("rfft", "ihfft")


def inputs(module, name):
    pick = np.random.default_rng(3)
    real = module.tensor(pick.standard_normal((4, 5, 6)).tolist(), dtype=module.float64)
    if name.rstrip("n2") in REAL:
        return [real, real.transpose(0, 2), module.arange(120).reshape(4, 5, 6)]
    return [real, module.complex(real, real.flip(0)).transpose(1, 2), module.arange(120).reshape(4, 5, 6)]


@pytest.mark.parametrize("name", [f"{f}{n}" for f in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft") for n in ("", "2", "n")])
def test_transforms_agree_with_pytorch(name):
    needs_torch()
    for mine, theirs in zip(inputs(gradus, name), inputs(torch, name)):
        # For fft2 and its relatives s=4 is an error, because s must have one length for each of the two dimensions.
        for options in FORMS if name[-1] == "t" else [o for o in MANY if name[-1] == "n" or o.get("s") != 4]:
            a, b = getattr(gradus.fft, name)(mine, **options), getattr(torch.fft, name)(theirs, **options)
            assert str(a.dtype).split(".")[1] == str(b.dtype).split(".")[1] and a.shape == tuple(b.shape) and a.stride() == b.stride(), (options, a.stride(), b.stride())
            check(a, b.resolve_conj().numpy(), "complex64" if a.dtype in (gradus.float32, gradus.complex64) else "complex128")


@pytest.mark.parametrize("dims", [[0], [1], [2], [0, 2], [2, 0], [0, 1, 2], [1, 0]])
@pytest.mark.parametrize("turned", [False, True])
def test_strides_of_results_of_transforms(dims, turned):
    def strides(module):
        x = module.zeros(4, 5, 6, dtype=module.complex64)
        x = x.permute(2, 0, 1) if turned else x
        found = [module._fft_c2c(x, dims, 0, True), module._fft_r2c(x.real, dims, 0, True), module._fft_r2c(x.real, dims, 0, False), module._fft_c2r(x, dims, 0, 2 * x.shape[dims[-1]] - 1)]
        return [t.stride() for t in found]

    same(strides)


def test_fftfreq_rfftfreq_fftshift_and_ifftshift():
    same(lambda t: [t.fft.fftfreq(5), t.fft.fftfreq(4, 0.5), t.fft.fftfreq(0), t.fft.fftfreq(6, dtype=t.float64), t.fft.rfftfreq(5), t.fft.rfftfreq(4, 0.25), t.fft.rfftfreq(-1)])
    same(lambda t: [t.fft.fftshift(t.arange(12).reshape(3, 4)), t.fft.fftshift(t.arange(12).reshape(3, 4), 1), t.fft.ifftshift(t.arange(15).reshape(3, 5), (0, 1)), t.fft.ifftshift(t.arange(5))])


ERRORS = ["fft.fft(r, 0)", "fft.fft(r, -1)", "fft.irfft(c, 0)", "fft.irfft(c[..., :1])", "fft.irfftn(c[..., :1])", "fft.fft(r, dim=3)", "fft.fft(torch.tensor(1.0))", "fft.rfftn(torch.tensor(1.0))",
          "fft.irfftn(torch.tensor(1.0))", "fft.hfftn(torch.tensor(1.0))", "fft.ihfftn(torch.tensor(1.0))", "fft.fftn(r, dim=(0, 0))",
          "fft.fftn(r, dim=(0, -3))", "fft.rfftn(r, dim=())", "fft.fftn(r, s=(2, 3), dim=(0,))", "fft.fftn(r, s=(2, 3, 4, 5))", "fft.fftn(r, s=(2, 0))", "fft.fftn(r, s=(2, -2))", "fft.irfftn(c, s=(2, 0))",
          "fft.fft2(r[0, 0])", "fft.fftn(r, dim=3)", "fft.fft(torch.empty(3, 0))", "fft.rfft(c)", "fft.ihfft(c)", "fft.rfftn(c)", "fft.rfft2(c)", "fft.ihfftn(c)", "fft.fft(r.half())", "fft.rfft(r.bfloat16())",
          "fft.irfft(r.half())", "fft.fftn(r.half())", "fft.fftfreq(-1)", "fft.fftfreq(5, dtype=torch.int32)", "fft.fftshift(r, 3)", "_fft_c2c(r, [0], 0, True)", "_fft_r2c(c, [0], 0, True)", "_fft_c2r(r, [0], 0, 4)",
          "fft.fft(r, out=torch.empty(0))", "fft.irfft(c, out=torch.empty(0, dtype=torch.complex64))", "fft.hfft2(r, out=torch.empty(0, dtype=torch.complex128))",
          "fft.ihfft(r, out=torch.empty(0))", "fft.ihfft2(r, out=torch.empty(0))", "fft.ihfftn(r, out=torch.empty(0, dtype=torch.int64))"]


@pytest.mark.parametrize("call", ERRORS)
def test_errors_of_transforms_are_those_of_pytorch(call):
    needs_torch()

    def error(module):
        names = {"torch": module, "fft": module.fft, "_fft_c2c": module._fft_c2c, "_fft_r2c": module._fft_r2c, "_fft_c2r": module._fft_c2r}
        return caught(lambda: eval(call, {**names, "r": module.ones(4, 5, 6), "c": module.ones(4, 5, 6, dtype=module.complex64)}))

    assert error(gradus) == error(torch)


def test_low_level_transforms_refuse_wrong_dimensions():
    x = gradus.ones(4, 3, dtype=gradus.complex64)
    for dims, text in (([1], "too few"), ([0, 0], "unique"), ([], "at least one axis")):
        with pytest.raises(RuntimeError, match=text):
            gradus._fft_c2r(x, dims, 0, 6)
    with pytest.raises(IndexError):
        gradus._fft_c2c(x, [2], 0, True)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "rfftn", "irfftn", "hfftn", "ihfftn"])
def test_first_and_second_order_gradients_of_transforms(name):
    needs_torch()

    def derivatives(module):
        x = module.linspace(-1, 1, 24, dtype=module.float64).reshape(4, 6).requires_grad_()
        y = getattr(module.fft, name)(x * x)
        first, = module.autograd.grad((y.abs() ** 2).sum(), x, create_graph=True)
        return [first, *module.autograd.grad((first ** 2).sum(), x)]

    for a, b in zip(derivatives(gradus), derivatives(torch)):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-9)


# Calls of stft and istft. x is a signal, b a batch of two signals, c a complex signal and w a window; s and sb are the transforms of x and b.
FRAMES = ["torch.stft(x, 20)", "torch.stft(x, 20, return_complex=False)", "torch.stft(x, 20, return_complex=True)", "torch.stft(x, 20, window=w.long(), return_complex=True)",
          "torch.stft(x, 20, window=w.to(torch.complex64), return_complex=True)", "torch.stft(x, 20, window=w.double(), return_complex=True)", "torch.stft(x, 20, window=torch.ones(2, 10), return_complex=True)",
          "torch.stft(x, 20, win_length=10, window=torch.ones(10), return_complex=True)", "torch.stft(x, 20, win_length=21, return_complex=True)", "torch.stft(x, 20, win_length=7, return_complex=True)",
          "torch.stft(x, 20, hop_length=0, return_complex=True)", "torch.stft(x, 0, return_complex=True)", "torch.stft(x, 101, center=False, return_complex=True)",
          "torch.stft(x, 20, center=False, return_complex=True)", "torch.stft(x, 20, 10, 9, center=False, align_to_window=True, return_complex=True)", "torch.stft(x, 20, align_to_window=True, return_complex=True)",
          "torch.stft(x.int(), 20, return_complex=True)", "torch.stft(x.bool(), 20, center=False, return_complex=True)", "torch.stft(x.half(), 20, return_complex=True)", "torch.stft(x[None, None], 20, return_complex=True)",
          "torch.stft(c, 20)", "torch.stft(c, 20, onesided=True)", "torch.stft(b, 20, onesided=False, return_complex=True)", "torch.stft(b, 20, 5, 20, w, True, 'replicate', True, True, True)",
          "b.stft(20, return_complex=True)", "torch.stft(x.flip(0)[::2], 21, 4, return_complex=True)", "torch.istft(s, 20)", "torch.istft(sb, 20, normalized=True)", "torch.istft(torch.view_as_real(s), 20)",
          "torch.istft(s, 20, length=50)", "torch.istft(s, 20, length=200)", "torch.istft(s, 18)", "torch.istft(s, 20, onesided=False)", "torch.istft(s, 20, return_complex=True)",
          "torch.istft(torch.stft(c, 20), 20, return_complex=True)", "torch.istft(s, 20, window=torch.zeros(20))", "torch.istft(s, 20, window=w[:10])", "torch.istft(s, 20, window=w[:12], win_length=12)",
          "torch.istft(s, 20, window=w.to(torch.complex64))", "torch.istft(s, 20, center=False)", "torch.istft(s, 20, hop_length=21)", "torch.istft(s, 20, win_length=21)", "torch.istft(s[:, :0], 20)",
          "torch.istft(s[0], 20)", "torch.istft(s[None, None], 20)", "s.istft(20, 5, 20, w, True, False, True, 90, False)", "torch.istft(s.to(torch.complex128), 20)"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", FRAMES)
def test_stft_and_istft(call):
    needs_torch()

    def outcome(module):
        x = module.tensor(numbers(100, "complex64").real.tolist())
        b = module.stack([x, x.flip(0)])
        names = {"torch": module, "x": x, "b": b, "c": module.complex(x, x.flip(0)), "w": module.linspace(1, 2, 20), "s": module.stft(x, 20, return_complex=True), "sb": module.stft(b, 20, return_complex=True)}
        try:
            result = eval(call, names)
        except Exception as error:
            return None, (type(error).__name__, str(error))
        return result.numpy(), (str(result.dtype).split(".")[1], tuple(result.shape), result.stride())

    (mine, about), (theirs, expected) = outcome(gradus), outcome(torch)
    assert about == expected
    if theirs is not None:
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)


def test_gradients_of_stft_and_istft():
    needs_torch()

    def derivatives(module):
        x = module.linspace(-1, 1, 60, dtype=module.float64).reshape(2, 30).requires_grad_()
        window = module.linspace(0.5, 1, 8, dtype=module.float64).requires_grad_()
        s = module.stft(x, 8, 3, window=window, return_complex=True)
        back = module.istft(s * s.abs(), 8, 3, window=window, length=30)
        first = module.autograd.grad((back ** 3).sum(), (x, window), create_graph=True)
        return [back, *first, *module.autograd.grad(sum((g ** 2).sum() for g in first), (x, window))]

    for a, b in zip(derivatives(gradus), derivatives(torch)):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-8, atol=1e-8)
