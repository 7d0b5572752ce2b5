"""Checks that numbers that the dtype of a tensor cannot hold are refused or wrapped exactly where PyTorch does so, with PyTorch's texts."""
import pytest

import gradus
from beside_torch import check

NUMBERS = ["2**63", "-2**63-1", "2**64", "300", "-129", "-1", "70000", "float('nan')", "float('inf')", "2.5", "1e20"]
CALLS = """
t + {}|t * {}|t.fill_({})|torch.full((2,), {}, dtype=t.dtype)|torch.full_like(t, {})|t.new_full((2,), {})|torch.where(c, t, {})|torch.where(c, {}, t)|t.masked_fill(c, {})
t.index_fill(0, i, {})|t.scatter(0, i, {})|t.add(t, alpha={})|torch.linspace({}, {}, 2, dtype=t.dtype)|torch.linspace(0, {}, 1, dtype=t.dtype)|torch.scalar_tensor({}, dtype=t.dtype)
torch.maximum(t, torch.tensor({}))|t.__setitem__(0, {}); t|t.__setitem__(c, {}); t|torch.addcdiv(t.float(), t, t, value={})|torch.nan_to_num(t, {})
""".replace("\n", "|").strip("|").split("|")


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
@pytest.mark.parametrize("call", CALLS)
def test_numbers_beyond_integer_dtypes(call, dtype):
    for number in NUMBERS:
        check(f"t = tensor([1, 2]).to(torch.{dtype}); c = tensor([True, False]); i = tensor([0, 1]); " + call.replace("{}", f"({number})"))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
@pytest.mark.parametrize("number", [n for n in NUMBERS if "float" not in n])
def test_value_of_addcmul_beyond_integer_dtypes(number, dtype):
    check(f"t = tensor([1, 2]).to(torch.{dtype}); t.addcmul(t, t, value={number})")


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "int64"])  # without uint64, which PyTorch treats specially
@pytest.mark.parametrize("call", ["torch.tensor([{}], dtype=t.dtype)", "torch.tensor({}, dtype=t.dtype)", "t.new_tensor([[1], [{}]])", "torch.full((1,), {}, dtype=t.dtype)", "t.fill_({})",
                                  "t.__setitem__(0, {}); t"])
def test_numbers_at_the_limits_of_integer_dtypes(call, dtype):
    bits, signed = int(dtype.lstrip("uint")), dtype[0] == "i"
    low, high = -(2 ** (bits - 1)) * signed, 2 ** (bits - signed) - 1
    for number in (low - 1, low, low + 1, high - 1, high, high + 1, -high, -high - 1, -high - 2):
        check(f"t = tensor([1, 2]).to(torch.{dtype}); " + call.replace("{}", f"({number})"))


@pytest.mark.parametrize("call", ["torch.where(c, t, 1e300)", "torch.where(c, t, -float('inf'))", "torch.where(c, 1e300, tensor([1, 2]))", "torch.addcmul(t, t, t, value=1e300)"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64"])
def test_numbers_beyond_floating_dtypes(call, dtype):
    check(f"t = tensor([1.0, 2.0]).to(torch.{dtype}); c = tensor([True, False]); " + call)


ACTIVATIONS = """leaky_relu(t, {})|leaky_relu_(t, {})|elu(t, {})|softplus(t, {})|softplus(t, 1, {})|addcmul(t, t, t, value={})"""


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("number", ["1j", "2 + 1j", "2 + 0j", "1e300", "-1e300"])
def test_complex_and_large_parameters_of_activations(number, dtype):
    for call in ACTIVATIONS.split("|"):
        function = "torch." if call.startswith("addcmul") else "torch.nn.functional."
        check(f"t = tensor([-1.0, 2.0]).to(torch.{dtype}); {function}{call.replace('{}', f'({number})')}")


@pytest.mark.parametrize("call", ["celu(t, 1j)", "celu(t, 1 + 1j)", "rrelu(t, 1j, 2j)", "rrelu(t, 0.1, 2 + 2j, training=True)"])
def test_celu_and_rrelu_refuse_complex_parameters(call):
    with pytest.raises(RuntimeError, match="^value cannot be converted to type float without overflow"):
        eval(f"functional.{call}", {"functional": gradus.nn.functional, "t": gradus.tensor([-1.0, 2.0])})


@pytest.mark.parametrize("call", ["std(t, correction={})", "var(t, correction={})", "std_mean(t, correction={})", "t.var(0, correction={})", "t.std(correction={})"])
def test_complex_corrections_of_std_and_var(call):
    for number in ("1j", "0.5 + 0j", "0.5"):
        check(f"t = tensor([1.0, 2.0, 4.0]); {'' if call.startswith('t.') else 'torch.'}{call.format(number)}")
