"""Tests rare states of optimizers: NaN in the maximum of amsgrad, and parameters of 16-bit dtypes."""
import copy
import io
import math

import pytest

import gradus as torch


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nan_propagates_through_the_maximum_of_amsgrad(kind, dtype):
    """If the gradient of an element was NaN once, the element stays NaN. All other elements are not affected."""
    for n in (1, 3, 16, 40):
        x = torch.zeros(n, dtype=dtype, requires_grad=True)
        optimizer = kind([x], lr=0.1, amsgrad=True)
        for step in range(3):
            x.grad = torch.ones(n, dtype=dtype)
            if step == 1:
                x.grad[n - 1] = math.nan
            optimizer.step()
            largest = optimizer.state[x]["max_exp_avg_sq"]
            assert largest.isnan().tolist() == [False] * (n - 1) + [step > 0]
        # A maximum that is NaN stays NaN, even if the gradient and exp_avg_sq have no NaN.
        largest.fill_(math.nan)
        optimizer.state[x]["exp_avg_sq"].fill_(1.0)
        x.grad = torch.ones(n, dtype=dtype)
        optimizer.step()
        assert largest.isnan().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_loaded_step_count_continues(dtype):
    """A step count that was saved and loaded continues from its value. The count is float32 for parameters of any dtype, because float16 cannot
    represent all integers above 2048."""
    x = torch.ones(3, dtype=dtype, requires_grad=True)
    optimizer = torch.optim.Adam([x])
    x.grad = torch.ones(3, dtype=dtype)
    optimizer.step()
    optimizer.state[x]["step"].fill_(4097.0)
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    loaded = torch.optim.Adam([x])
    loaded.load_state_dict(torch.load(file))
    state = loaded.state[x]
    assert state["step"].dtype is torch.float32 and state["step"].item() == 4097.0
    assert state["exp_avg"].dtype is dtype and state["exp_avg_sq"].dtype is dtype
    loaded.step()
    assert state["step"].item() == 4098.0


def test_load_state_dict_does_not_change_the_given_state():
    """Loading a state, and steps after that, do not change the dict that was loaded, so several optimizers may load one dict."""
    x = torch.ones(3, requires_grad=True)
    source = torch.optim.SGD([{"params": [x], "lr": 0.5}], momentum=0.9)
    x.grad = torch.ones(3)
    source.step()
    state = source.state_dict()
    groups = copy.deepcopy(state["param_groups"])
    for _ in range(2):
        y = torch.ones(3, requires_grad=True)
        loaded = torch.optim.SGD([y], lr=0.1)
        loaded.load_state_dict(state)
        assert loaded.param_groups[0]["lr"] == 0.5 and loaded.param_groups[0]["params"][0] is y
        loaded.param_groups[0]["lr"] = 7.0
        assert state["param_groups"] == groups and source.param_groups[0]["lr"] == 0.5


@pytest.mark.parametrize("norm, wanted", [(2.0, 5.0), (1.0, 7.0), (math.inf, 4.0)])
def test_clip_grad_norm_scales_gradients_exactly(norm, wanted):
    """Gradients are scaled by exactly max_norm / (norm + 1e-6), and are not scaled if the norm is below max_norm."""
    x = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    for most, scale in ((1.0, 1 / (wanted + 1e-6)), (wanted + 1, 1.0)):
        x.grad = torch.tensor([3.0, -4.0], dtype=torch.float64)
        assert torch.nn.utils.clip_grad_norm_(x, most, norm).item() == wanted
        assert torch.allclose(x.grad, torch.tensor([3.0, -4.0], dtype=torch.float64) * scale, rtol=1e-14, atol=0)
