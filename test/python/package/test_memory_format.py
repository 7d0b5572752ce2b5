"""Checks the argument memory_format= of functions that make tensors: results have the strides that PyTorch gives, and PyTorch's errors are raised."""
import pytest

from beside_torch import check

SIZES = ["(2, 3, 4, 5)", "(2, 3, 4, 5, 6)", "(2, 3)", "(2, 1, 4, 1)"]
FORMATS = ["None", "torch.contiguous_format", "torch.preserve_format", "torch.channels_last", "torch.channels_last_3d"]
OTHERS = ["zeros({})", "zeros({}).transpose(0, 1)", "zeros({})[1:]", "zeros({}).contiguous(memory_format=torch.channels_last)"]
LIKE = ["torch.empty_like(x, {})", "torch.zeros_like(x, {})", "torch.ones_like(x, dtype=torch.int32, {})", "torch.full_like(x, 2, {})", "torch.rand_like(x, {})", "torch.randn_like(x, {})",
        "torch.randint_like(x, 5, {})", "torch.randint_like(x, 2, 5, {})", "x.clone({})", "x.contiguous({})"]


@pytest.mark.parametrize("asked", FORMATS)
@pytest.mark.parametrize("size", SIZES)
def test_memory_format_of_empty_and_resize(size, asked):
    check(f"torch.empty({size}, memory_format={asked}).stride()")
    check(f"torch.empty({size}, dtype=torch.float64, device='meta', memory_format={asked}).stride()")
    check(f"torch.empty({size}, requires_grad=True, memory_format={asked}).requires_grad")
    if "preserve" not in asked:
        check(f"zeros(200).resize_({size}, memory_format={asked}).stride()" if size.count(",") < 4 else f"zeros(1000).resize_({size}, memory_format={asked}).stride()")


@pytest.mark.parametrize("asked", FORMATS)
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("call", LIKE)
def test_memory_format_of_like_functions_and_clone(call, other, asked):
    if call.startswith("x.") and asked == "None":
        # Not compared: clone takes None as preserve_format, and contiguous refuses None.
        return
    for size in SIZES:
        check(f"x = {other.format(size)}; {call.format(f'memory_format={asked}')}.stride()")
