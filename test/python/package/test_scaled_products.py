"""Compares products of scaled float8 matrices with PyTorch."""
import pytest

import gradus
from both import same
from oracle import needs_torch, torch

M, N, K = 15, 32, 16
KINDS = ("float8_e4m3fn", "float8_e5m2")


@pytest.fixture(autouse=True)
def without_onednn():
    """Disables oneDNN. On some CPUs PyTorch computes these products with oneDNN, which accepts fewer dtypes."""
    needs_torch()
    with torch.backends.mkldnn.flags(enabled=False):
        yield


def floats(t, sizes, step=1):
    """Returns numbers from -2 to 2 whose neighbours differ. The numbers are multiples of 1/4, which both float8 dtypes represent exactly."""
    n = 1
    for size in sizes:
        n *= size
    return ((t.arange(n, dtype=t.float32) * step * 7 % 17) / 4 - 2).reshape(sizes)


def matrices(t, a=KINDS[0], b=KINDS[0]):
    return floats(t, (M, K)).to(getattr(t, a)), floats(t, (N, K), step=3).to(getattr(t, b)).t()


def attempt(call):
    """Returns the dtype and elements of a call's result, or the class and text of its error."""
    try:
        result = call()
    except (ValueError, RuntimeError, IndexError) as error:
        return type(error).__name__, str(error)
    return str(result.dtype).split(".")[1], result.double().tolist()


@pytest.mark.parametrize("a", KINDS)
@pytest.mark.parametrize("b", KINDS)
@pytest.mark.parametrize("out", [None, *KINDS, "float16", "bfloat16", "float32", "float64", "int32"])
def test_scaled_mm_with_a_scale_for_each_matrix(a, b, out):
    def program(t):
        dtype = out and getattr(t, out)
        x, y = matrices(t, a, b)
        scale, twice, bias = t.tensor(0.25), t.tensor([2.0]), floats(t, (N,))
        yield attempt(lambda: t._scaled_mm(x, y, scale, twice, out_dtype=dtype))
        yield attempt(lambda: t._scaled_mm(x, y, scale, twice, bias, out_dtype=dtype))
        yield attempt(lambda: t._scaled_mm(x, y, scale, twice, bias.to(t.float16), t.tensor(4.0), out_dtype=dtype, use_fast_accum=True))
        yield attempt(lambda: t._scaled_mm_v2(x, y, [scale], [0], [0], [twice], [0], [0], bias, dtype))

    same(lambda t: list(program(t)))


@pytest.mark.parametrize("out", [None, "float32", "bfloat16"])
def test_scaled_mm_with_scales_of_rows_and_columns(out):
    def program(t):
        dtype = out and getattr(t, out)
        x, y = matrices(t)
        rows, columns = 2.0 ** floats(t, (M, 1)).floor(), 2.0 ** floats(t, (1, N)).floor()
        yield attempt(lambda: t._scaled_mm(x, y, rows, columns, floats(t, (N,)), out_dtype=dtype))
        yield attempt(lambda: t._scaled_mm(x, y.contiguous(), rows, columns, out_dtype=dtype))
        yield attempt(lambda: t._scaled_mm_v2(x, y, [rows], [1], [0], [columns], [1], [0], floats(t, (N,)), dtype, [-1, -2]))
        kind = t.nn.functional.ScalingType.RowWise
        yield attempt(lambda: t.nn.functional.scaled_mm(x, y, rows, kind, columns, kind, output_dtype=dtype))

    same(lambda t: list(program(t)))


def test_scaled_mm_is_accurate_to_the_precision_of_its_dtype():
    for sizes in ((M, K, N), (1, 300, 5), (70, 0, 3), (0, 3, 4)):
        m, k, n = sizes
        x, y = torch.randn(m, k).to(torch.float8_e4m3fn), torch.randn(k, n).to(torch.float8_e4m3fn)
        rows, columns, bias = torch.rand(m, 1), torch.rand(1, n), torch.randn(n)
        exact = x.double() * rows.double() @ (y.double() * columns.double()) + bias
        ours = [gradus.tensor(each.float().tolist()).reshape(each.shape) for each in (x, y, rows, columns, bias)]
        result = gradus._scaled_mm(ours[0].to(gradus.float8_e4m3fn), ours[1].to(gradus.float8_e4m3fn), *ours[2:], out_dtype=gradus.float32)
        assert result.shape == (m, n)
        torch.testing.assert_close(torch.tensor(result.tolist()).reshape(m, n).double(), exact, rtol=1e-6, atol=1e-6 * max(k, 1) ** 0.5)


def test_out_argument_of_scaled_mm():
    def program(t):
        x, y = matrices(t)
        one = t.ones(1)
        for dtype in (t.float32, t.bfloat16, t.float8_e5m2):
            out = t.empty(0, dtype=dtype)
            yield attempt(lambda: t._scaled_mm(x, y, one, one, out=out))
            yield attempt(lambda: out)
            yield attempt(lambda: t._scaled_mm(x, y, one, one, out=out, out_dtype=t.float32))

    same(lambda t: list(program(t)))


def wrong_calls(t):
    x, y = matrices(t)
    one, rows, columns = t.ones(1), t.ones(M, 1), t.ones(1, N)
    v1 = [(x.float(), y, one, one), (x, y.to(t.bfloat16), one, one), (x[0], y, one, one), (x, y[0], one, one), (x, x, one, one), (x, y, t.ones(2), one), (x, y, rows, one),
          (x, y, rows, columns.t()), (x, y, t.ones(M, 2)[:, :1], columns), (x, y, one.double(), one), (x, y, one, t.ones(1, dtype=t.int32)), (x, y, one, one, t.ones(31)),
          (x, y, one, one, t.ones(N, 1)), (x, y, one, one, t.ones(N, dtype=t.complex64)), (x, y, one, one, None, t.ones(2)), (x, y, one, one, None, one.double())]
    for args in v1:
        yield attempt(lambda args=args: t._scaled_mm(*args))
    whole, by_row = ([one], [0], [0], [one], [0], [0]), ([rows], [1], [0], [columns], [1], [0])
    v2 = [(x[0], y, *whole, None, None), (x, y[0], *whole, None, None), (x, y[:3], *whole, None, None), (x, y, *whole, t.ones(31), None), (x, y, *whole, t.ones(N).double(), None),
          (x.float(), y, *whole, None, None), (x, y, [one], [0], [1], [one], [0], [0], None, None), (x, y, [one], [0], [0], [one], [1], [0], None, None),
          (x, y, [one], [3], [0], [one], [3], [0], None, None), (x, y, [one], [0, 0], [0], [one], [0], [0], None, None), (x, y, [one, one], [0], [0], [one], [0], [0], None, None),
          (x, y, [one.double()], [0], [0], [one], [0], [0], None, None), (x, y, [rows], [0], [0], [one], [0], [0], None, None), (x, y, [one], [0], [0], [columns], [0], [0], None, None),
          (x, y, [t.ones(M)], [1], [0], [columns], [1], [0], None, None), (x, y, [rows], [1], [0], [t.ones(N)], [1], [0], None, None),
          (x, y, [t.ones(16, 1)], [1], [0], [columns], [1], [0], None, None), (x, y, [rows], [1], [0], [t.ones(1, 31)], [1], [0], None, None),
          (x, y, [t.ones(1, M).t()], [1], [0], [columns], [1], [0], None, None), (x, y, [rows], [1], [0], [t.ones(N, 1)], [1], [0], None, None),
          (x, y, *whole, None, None, [1]), (x, y, *whole, None, None, [0, 1]), (x, y, *whole, None, None, [1, 5]), (x, y.t(), *whole, None, None, [1, 1]),
          (x[:0], y, *by_row, None, None), (x[:, :0], y[:0], *by_row, t.ones(N), t.float32)]
    for args in v2:
        yield attempt(lambda args=args: t._scaled_mm_v2(*args))


def test_errors_of_scaled_mm():
    same(lambda t: list(wrong_calls(t)))


def test_scaled_mm_refuses_missing_scales():
    x, y = matrices(gradus)
    with pytest.raises(ValueError, match=r"Invalid scaling configuration[\s\S]*scale_a\.dtype\(\)=Undefined, scale_a\.size\(\)=\[\]"):
        gradus._scaled_mm_v2(x, y, [], [0], [0], [gradus.ones(1)], [0], [0], None, None)


def test_backward_through_scaled_mm_is_an_error():
    def program(t):
        x, y = matrices(t)
        result = t._scaled_mm(x.requires_grad_(), y, t.ones(1), t.ones(1), out_dtype=t.float32)
        yield result.requires_grad
        yield attempt(lambda: result.sum().backward())

    same(lambda t: list(program(t)))


def test_scaled_mm_on_the_meta_device():
    x, y = (each.to("meta") for each in matrices(gradus))
    result = gradus._scaled_mm(x, y, gradus.ones(1, device="meta"), gradus.ones(1, device="meta"), out_dtype=gradus.bfloat16)
    assert (result.shape, result.dtype, result.device.type) == ((M, N), gradus.bfloat16, "meta")
