"""Checks that values, gradients and errors of segment_reduce are PyTorch's."""
import pytest

import gradus
from both import caught, same
from oracle import torch

SEGMENTS = ["lengths=t.tensor([1, 0, 2, 3])", "offsets=t.tensor([0, 1, 1, 3, 6])", "lengths=t.tensor([1, 2], dtype=t.int32), unsafe=True", "offsets=t.tensor([1, 2, 6])",
            "lengths=t.tensor([[1, 2], [3, 0]]), axis=1", "offsets=t.tensor([[0, 1, 3], [0, 0, 3]]), axis=-2", "lengths=t.tensor([6]), offsets=t.tensor([0, 6])"]


def numbers(module, given):
    x = (module.arange(12, dtype=module.float64) * 0.7 - 2).sin()
    return x.reshape((2, 3, 2) if "axis" in given else (6, 2)).requires_grad_()


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod", "amax", "amin"])
@pytest.mark.parametrize("initial", ["", ", initial=0.25", ", initial=2"])
@pytest.mark.parametrize("given", SEGMENTS)
def test_values_and_gradients(reduce, initial, given):
    def program(t):
        x = numbers(t, given)
        made = eval(f"t.segment_reduce(x, {reduce!r}, {given}{initial})", {"t": t, "x": x})
        weights = t.arange(made.numel(), dtype=t.float64).reshape(made.shape) + 1
        made.masked_fill(~made.isfinite().detach(), 0).mul(weights).sum().backward()
        return [(t.nan_to_num(v, 77.0, 88.0, 99.0).detach() * 1e9).round() for v in (made, x.grad)]

    same(program)


ERRORS = ["t.segment_reduce(x, 'middle', lengths=n)", "t.segment_reduce(x, 'sum')", "t.segment_reduce(x, 'sum', indices=n)", "t.segment_reduce(x.long(), 'sum', lengths=n)",
          "t.segment_reduce(x > 2, 'sum', lengths=n)", "t.segment_reduce(x, 'sum', lengths=n[:2])", "t.segment_reduce(x, 'sum', lengths=t.tensor([-1, 7]))",
          "t.segment_reduce(x.reshape(2, 3), 'sum', lengths=n, axis=1)", "t.segment_reduce(x, 'sum', lengths=n, axis=2)"]


@pytest.mark.parametrize("call", ERRORS)
def test_errors_are_those_of_pytorch(call):
    ours, theirs = (caught(eval, call, {"t": t, "x": t.arange(6.0), "n": t.tensor([1, 0, 2, 3])}) for t in (gradus, torch))
    assert ours == theirs


def test_segments_outside_of_data_are_refused():
    x = gradus.ones(3)
    for segments in ({"offsets": gradus.tensor([0, 4])}, {"offsets": gradus.tensor([-1, 2])}, {"lengths": gradus.tensor([9]), "unsafe": True}):
        assert "must lie within the 3 elements" in caught(gradus.segment_reduce, x, "sum", **segments)[1]
    assert "no dimensions" in caught(gradus.segment_reduce, gradus.tensor(1.0), "sum", lengths=gradus.tensor([1]))[1]
    assert "int32 or int64" in caught(gradus.segment_reduce, x, "sum", lengths=gradus.tensor([3.0]))[1]


def test_empty_segments_and_meta_tensors():
    assert gradus.segment_reduce(gradus.ones(0, 2), "max", lengths=gradus.tensor([0])).tolist() == [[-gradus.inf] * 2]
    assert gradus.segment_reduce(gradus.ones(0), "mean", lengths=gradus.tensor([0])).isnan().all()
    assert gradus.segment_reduce(gradus.ones(2, device="meta"), "sum", lengths=gradus.ones(3, dtype=gradus.int64, device="meta")).shape == (3,)
