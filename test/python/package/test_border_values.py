"""Checks that border values, thresholds and fill values that a dtype cannot hold are refused where PyTorch refuses them, and never wrapped
silently."""
import re

import pytest

import gradus
from oracle import torch

VALUES = ["-1", "256", "300", "1.5", "-1.5", "1e10", "float('inf')", "float('nan')", "70000", "True", "-129", "1j"]
CALLS = """
F.pad({x}, (1, 0), value={v})|F.pad({x}[0:0], (1, 0, 1, 0), value={v})|F.pad({x}, (0, 0), value={v})|F.pad({x}, (-1, 0), value={v})|torch.constant_pad_nd({x}, (1, 0), {v})
torch.constant_pad_nd({x}, (0, -1), {v})|{x}.index_fill(0, torch.tensor([0]), {v})|F.threshold({x}, 0, {v})|torch.threshold_({x}, 1, {v})
""".replace("\n", "|").strip("|").split("|")


def outcome(module, call):
    try:
        result = eval(call, {"torch": module, "F": module.nn.functional})
    except Exception as error:
        return type(error).__name__, re.sub(r"^(\w+(\(\))?: )+", "", str(error).split("\n")[0])
    return str(result.dtype), tuple(result.shape), repr(result.tolist())


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int64", "float32", "complex64"])
@pytest.mark.parametrize("call", CALLS)
def test_values_that_a_dtype_cannot_hold_are_refused_as_in_pytorch(call, dtype):
    for value in VALUES:
        if value == "1j" and ("(0, 0)" in call or "(-1, 0)" in call or "threshold" in call):
            continue  # no element gets the value, and the libraries attempt the conversion at different points, so the error texts differ
        text = call.format(x=f"torch.ones(1, 2).to(torch.{dtype})", v=value)
        assert outcome(gradus, text) == outcome(torch, text), text
