"""Compares complex32 with PyTorch. Operators that PyTorch has for complex32 on the CPU give PyTorch's results. All other operators give the result of
complex64, rounded once to complex32."""
import io
import pickle
import warnings
import zipfile

import numpy as np
import pytest

import gradus
from beside_torch import check
from oracle import needs_torch, torch

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental", "ignore:Casting complex values to real")
NUMBERS = "[[1 + 2j, 3 - 4.5j, 0.1j], [-2.25, 1e-3 + 7e3j, -0.5 - 0.3j]]"

SAME = """
torch.complex32 is torch.chalf
torch.complex32; torch.complex32.abbr, torch.complex32.itemsize, torch.complex32.is_complex, torch.complex32.is_floating_point, torch.complex32.is_signed
torch.complex32.to_real(), torch.complex32.to_complex(), torch.half.to_complex(), torch.bfloat16.to_complex()
torch.finfo(torch.complex32)
torch.finfo(torch.complex32) == torch.finfo(torch.half)
torch.iinfo(torch.complex32)
pickle.loads(pickle.dumps(torch.complex32))
torch.can_cast(torch.complex32, torch.half), torch.can_cast(torch.half, torch.complex32), torch.can_cast(torch.complex128, torch.complex32)
torch.set_default_dtype(torch.complex32)
c
c.chalf() is c
c.real, c.imag
c.tolist()
c.type()
c.type('torch.ComplexHalfTensor')
c.element_size(), c.nbytes, c.is_complex(), c.is_floating_point()
c[0, 1].item()
float(c[0, 0])
bool(c[0, 0])
f'{c[0, 1]}'
c.numpy()
np.asarray(c)
torch.view_as_real(c)
torch.view_as_complex(torch.ones(3, 2, dtype=torch.half))
torch.view_as_complex(torch.ones(3, 2, dtype=torch.bfloat16))
torch.complex(torch.ones(2, dtype=torch.half), torch.zeros(2, dtype=torch.half))
torch.complex(torch.ones(2, dtype=torch.int), torch.zeros(2, dtype=torch.half))
c.view(torch.half), c.view(torch.int32), c.view(torch.int16)
zeros(2).view(torch.complex32)
torch.empty(2, 0, dtype=torch.complex32)
torch.zeros(2, dtype=torch.complex32), torch.ones(2, dtype=torch.complex32), torch.full((2,), 1 + 0.1j, dtype=torch.complex32)
torch.full((2,), 1e6, dtype=torch.complex32), tensor([1e6], dtype=torch.complex32), c.clone().fill_(1e9)
torch.zeros_like(c), torch.ones_like(c), c.new_full((2,), 1j), torch.scalar_tensor(2 - 1j, dtype=torch.complex32)
torch.arange(3, dtype=torch.complex32)
torch.manual_seed(3); torch.randn(2, 3, dtype=torch.complex32), torch.randn(20, dtype=torch.complex32), torch.rand(3, dtype=torch.complex32), torch.rand_like(c)
torch.empty(3, dtype=torch.complex32).random_(0, 5)
zeros(2, dtype=torch.half) * 1j, zeros(2, dtype=torch.bfloat16) * 1j
torch.set_default_dtype(torch.half); r = tensor([1j]), zeros(2, dtype=torch.int32) * 1j; torch.set_default_dtype(torch.float32); r
torch.ones(2, 3, 4, 5).chalf(memory_format=torch.channels_last).stride()
c + c, c - 2 * c, c * c, c + 0.1, 0.1 * c, c * (0.1 + 0.3j), 1 - c, c * True
torch.add(c, c, alpha=0.1)
c + torch.ones(3), c + torch.ones(3, dtype=torch.half), c + torch.ones(3, dtype=torch.bfloat16), c * torch.ones(3, dtype=torch.float64), c + torch.ones(3, dtype=torch.int64)
-c, c.neg(), +c
c.abs(), c.conj(), c.conj().resolve_conj(), c.conj_physical(), c.mH
c == c, c != c.conj(), c == 1 + 2j, torch.isclose(c, c * 1.0005, rtol=1e-2), torch.allclose(c, c)
c.isfinite(), c.isinf(), c.isnan(), c.isreal()
torch.isfinite(tensor([complex(float('inf'), 0), complex(0, float('nan'))], dtype=torch.complex32))
c.norm(), c.norm(1), c.norm(3), c.norm(5), c.norm(float('inf')), c.norm(0)
c[:, 1], c[0], c[..., None], c[torch.tensor([1, 0])], c[c.real > 0]
c.clone().index_fill_(0, tensor([1]), 1j), c.clone().masked_fill_(c.real > 0, 1j), c.clone().index_copy_(0, tensor([1]), c[:1])
c[:, :1].clone().index_add_(0, tensor([1, 1]), c[:, :1]), torch.zeros_like(c).index_put((tensor([0, 0]),), c, accumulate=True)
torch.cat([c, c.t().contiguous().view(2, 3)]), torch.cat([c, torch.ones(1, 3)]), torch.stack([c, c]), torch.block_diag(c, c)
torch.where(c.real > 0, c, -c), torch.where(c.real > 0, c, 1j), torch.tril(c), torch.triu(c), c.roll(1, 1), c.t().reshape(-1)
torch.nonzero(c), c.repeat_interleave(2, 0), c.expand(2, 2, 3), c.as_strided((2, 2), (1, 2), 1), torch.diag_embed(c)
x = c.clone(); x[0] = 5 - 1j; x.real.mul_(2); x.imag[1] = 7; x
x = c.clone(); x.copy_(torch.ones(3, dtype=torch.complex128) * (1 / 3 + 2j / 3)); x
c.storage().dtype, c.untyped_storage().nbytes()
torch.from_dlpack(c), torch.from_dlpack(c.t())
torch.equal(torch.from_dlpack(c).view(torch.int32), c.view(torch.int32))
copy.deepcopy(c)
torch.testing.assert_close(c, c * 1.0004)
torch.testing.assert_close(c, c * 1.01)
torch.zeros(2, 3, dtype=torch.complex32, device='meta')
(c.to('meta') * 2).dtype, c.to('meta').real.dtype
torch.nn.Linear(2, 3, dtype=torch.complex32).weight.dtype
torch.fft.fft(c)
c < c
torch.linalg.svd(c)
""".strip().splitlines()


@pytest.mark.parametrize("expression", SAME)
def test_expressions_that_pytorch_computes_in_complex32(expression):
    *statements, last = expression.split("; ")
    check("; ".join([f"c = tensor({NUMBERS}, dtype=torch.complex32)", *statements, last]))


OTHERS = [dtype for dtype in "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128 float8_e4m3fn float8_e5m2".split()]


@pytest.mark.parametrize("dtype", OTHERS)
@pytest.mark.parametrize("step", [1, 2])
def test_conversions_to_and_from_complex32(dtype, step):
    """Every dtype is converted to complex32 and back, from contiguous tensors and others, with more elements than a conversion buffer holds."""
    needs_torch()
    values = np.random.default_rng(5).normal(size=(700, 2)) * 40
    results = []
    for module in (gradus, torch):
        real = module.from_numpy(values)
        x = module.view_as_complex(real)[::step]
        wide = (x if "complex" in dtype else real[::step, 0]).to(getattr(module, dtype))
        near = x.to(module.complex32)
        there, back = wide.to(module.complex32), near.to(getattr(module, dtype))
        assert there.dtype == module.complex32 and back.dtype == getattr(module, dtype)
        results.append((module.view_as_real(there).double().tolist(), module.view_as_real(back.to(module.complex128)).tolist()))
    assert results[0] == results[1]


def loss(x):
    return (x * x.conj()).real.float().sum()


GRADIENTS = ["x.chalf().abs().float().sum()", "m.view_as_real(x.chalf()).float().sum()", "loss(x.chalf())", "loss(x.chalf() * (0.5 - 2j))", "loss(m.cat([x.chalf(), x.to(m.complex64)]))",
             "loss(x.chalf()[1:])", "x.chalf().real.float().sum()", "loss(x.chalf().to(m.complex128))", "loss(m.where(x.real > 0, x.chalf(), 2j))", "loss(x.chalf().conj() + x.real.half())"]


@pytest.mark.parametrize("program", GRADIENTS)
def test_gradients_through_complex32(program):
    needs_torch()
    found = []
    for module in (gradus, torch):
        x = module.tensor([1 + 2j, -3.5 + 0.25j, 0.5 - 1j], dtype=module.complex64, requires_grad=True)
        eval(program, {"m": module, "x": x, "loss": loss}).backward()
        found.append(x.grad.tolist())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-3)


# Operators that PyTorch does not have for complex32. Gradus computes some of them, e.g. products and convolutions, by converting the operands to
# complex64.
BEYOND = ["x.sgn()", "x / y", "x ** 2", "x.exp()", "x.sqrt()", "x.tanh()", "x.angle()", "x.sum()", "x.sum(1)", "x.mean(0)", "x.prod(0)", "x.cumsum(1)", "x.reciprocal()", "m.addcmul(x, x, y, value=0.3)",
          "m.lerp(x, y, 0.3)", "x @ y.mT", "m.matmul(x, y[0])", "m.dot(x[0], y[0])", "m.vdot(x[0], y[0])", "m.einsum('ij,kj->ik', x, y)", "m.outer(x[0], y[0])", "m.addmm(x[:, :3], x, y[:3].mT, beta=0.5)",
          "m.eye(3, dtype=x.dtype)", "m.linspace(0, 1, 5, dtype=x.dtype)", "m.logaddexp(x, y)", "m.var(x, 1)", "m.std(x)", "m.sinc(x)",
          "m.nn.functional.conv1d(x[None], y[:, :3][None])",
          "m.nn.functional.linear(x, y, y[:, 0])", "m.nn.functional.pad(x, (1, 2))", "m.nn.functional.rms_norm(x * 50, [9])", "m.cdist(x.real.float(), y.real.float())",
          "m.cov(x)", "m.matrix_exp(x[:, :4] * 2)", "m.kron(x, y[:1])", "m.scatter_add(x, 0, m.zeros(2, 9, dtype=m.int64), y[:2])", "m.scatter_reduce(x, 0, m.zeros(2, 9, dtype=m.int64), y[:2], 'prod')", "m.unique(x)"]


@pytest.mark.parametrize("expression", BEYOND)
def test_operators_that_pytorch_lacks_are_close_to_complex64(expression):
    """The result in complex32 is close to the result in complex64."""
    generator = np.random.default_rng(2)
    parts = [gradus.from_numpy(generator.normal(size=(4, 9, 2)).astype("float16")) for _ in range(2)]
    x, y = (gradus.view_as_complex(part) for part in parts)
    near = eval(expression, {"m": gradus, "x": x, "y": y})
    wide = eval(expression, {"m": gradus, "x": x.cfloat(), "y": y.cfloat()})
    assert near.dtype == {gradus.complex64: gradus.complex32, gradus.float32: gradus.float16}.get(wide.dtype, wide.dtype) or near.dtype == wide.dtype
    wanted = np.array(wide.tolist())
    np.testing.assert_allclose(np.array(near.tolist()), wanted, rtol=4e-3, atol=4e-3 * np.abs(wanted).max())


def test_sums_and_products_of_many_elements_are_rounded_once():
    """Sums and matrix products are computed in complex64 and rounded to complex32 once. The tensors have more elements than are converted at a time,
    and are contiguous or transposed."""
    generator = np.random.default_rng(4)
    numbers = generator.normal(size=(70, 1300, 2)).astype("float16")
    x = gradus.view_as_complex(gradus.from_numpy(numbers))
    exact = numbers[..., 0].astype("float64") + 1j * numbers[..., 1]
    for found, wanted in ((x.sum(1), exact.sum(1)), (x.t().sum(0), exact.sum(1)), (x @ x.mH, exact @ exact.conj().T), (x * x, exact * exact), (x.t() * x.t(), (exact * exact).T),
                          (gradus.vdot(x[0], x[1]), np.vdot(exact[0], exact[1]))):
        rounded = wanted.real.astype("float16").astype("float64") + 1j * wanted.imag.astype("float16")
        np.testing.assert_allclose(np.array(found.tolist()), rounded, rtol=2e-3, atol=2e-3 * np.abs(wanted).max())


def test_complex32_files_are_exchanged_with_pytorch(tmp_path):
    needs_torch()
    values = [1 + 2j, 3 - 4.5j, 0.1j]
    ours, theirs = gradus.tensor(values, dtype=gradus.complex32), torch.tensor(values, dtype=torch.complex32)
    assert pickle.loads(pickle.dumps(ours)).tolist() == ours.tolist()
    gradus.save({"x": ours, "y": ours[1:]}, tmp_path / "ours.pt")
    torch.save({"x": theirs, "y": theirs[1:]}, tmp_path / "theirs.pt")
    for module in (gradus, torch):
        for name in ("ours.pt", "theirs.pt"):
            loaded = module.load(tmp_path / name)
            assert loaded["x"].dtype == module.complex32 and loaded["x"].tolist() == ours.tolist() and loaded["y"].tolist() == ours[1:].tolist()
            assert loaded["y"].untyped_storage().data_ptr() == loaded["x"].untyped_storage().data_ptr()
    names = [zipfile.ZipFile(tmp_path / name).read(f"{name[:-3]}/data.pkl") for name in ("ours.pt", "theirs.pt")]
    assert all(b"complex32" in text and b"_rebuild_tensor_v3" in text for text in names)
    buffer = io.BytesIO()
    gradus.save(ours, buffer)
    buffer.seek(0)
    assert gradus.load(buffer, weights_only=True).dtype == gradus.complex32


def test_vmap_and_jvp_of_complex32():
    x = gradus.tensor([[1 + 2j, 3 - 1j], [0.5j, -2]], dtype=gradus.complex32)
    batched = gradus.vmap(lambda row: (row * row.conj()).sum() + row[0])(x)
    assert batched.dtype == gradus.complex32 and batched.tolist() == [(row * row.conj()).sum().item() + row[0].item() for row in x]
    value, tangent = gradus.func.jvp(lambda z: z * z, (x,), (gradus.ones_like(x),))
    assert tangent.dtype == gradus.complex32 and tangent.tolist() == (2 * x).tolist() and value.tolist() == (x * x).tolist()


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_optimizer_steps_in_complex32(name):
    """An optimizer step in complex32 is the step in complex64, rounded."""
    found = []
    for dtype in (gradus.complex32, gradus.complex64):
        x = gradus.tensor([1 + 2j, -3.5 + 0.25j], dtype=dtype, requires_grad=True)
        optimizer = getattr(gradus.optim, name)([x], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (x * x.conj()).real.sum().backward()
            optimizer.step()
        found.append(x.detach().tolist())
    np.testing.assert_allclose(found[0], found[1], rtol=3e-3)


REFUSED = ["x.sort()", "x.max()", "gradus.linalg.inv(x)", "gradus.linalg.eigh(x)", "gradus.linalg.cholesky(x)", "gradus.stft(x[0].repeat(20), 4, return_complex=True, onesided=False)", "memoryview(x)",
           "gradus.safetensors.save({'x': x})", "gradus.arange(3, dtype=gradus.complex32)", "x.clamp(0)", "x.floor()", "gradus.fft.ifft2(x)", "gradus.fft.irfft(x)"]


@pytest.mark.parametrize("expression", REFUSED)
def test_operators_without_complex32_support_are_refused(expression):
    x = gradus.ones(2, 2, dtype=gradus.complex32)
    with pytest.raises((RuntimeError, NotImplementedError, BufferError, ValueError, TypeError, gradus.safetensors.SafetensorError)):
        eval(expression, {"gradus": gradus, "x": x})


def test_using_complex32_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (gradus.ones(2, dtype=gradus.chalf) * 2).tolist() == [2, 2]
