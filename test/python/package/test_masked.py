"""Compares torch.masked with PyTorch: reductions, normalizations, gradients, errors."""
import gradus
import pytest
from oracle import torch

REDUCTIONS = ["sum", "prod", "amax", "amin", "mean", "var", "std", "logsumexp"]
LINES = ["cumsum", "cumprod", "softmax", "log_softmax", "softmin", "median", "argmax", "argmin"]
DATA = [[0.5, -1.0, 2.0, 3.0], [1.5, 0.25, -2.0, 4.0], [0.0, 1.0, 1.0, -3.0]]
MASKS = [None, [[True, False, True, True], [True, True, True, False], [False, True, True, False]], [True, True, False, True]]


def run(library, name, kind, mask, *args, **options):
    """Calls the function `name` of library.masked with a tensor of the dtype `kind`. Returns (elements, dtype, and the gradient if there is one), or
    the class and the text of the error."""
    x = library.tensor(DATA, dtype=getattr(library, kind))
    x = x.requires_grad_() if x.is_floating_point() else x
    words = {key: getattr(library, value) if key == "dtype" else value for key, value in options.items()}
    words |= {} if mask is None else {"mask": library.tensor(mask)}
    try:
        result = getattr(library.masked, name)(x, *args, **words)
        if result.requires_grad:
            (result * library.arange(1.0, result.numel() + 1).reshape(result.shape)).nan_to_num(0, 0, 0).sum().backward()
    except Exception as error:
        return type(error).__name__, str(error)
    found = [str(result.dtype).split(".")[1], result.detach().double().flatten().tolist()]
    return found + [x.grad.flatten().tolist()] if x.is_floating_point() and x.grad is not None else found


def agree(*args, **options):
    ours, theirs = run(gradus, *args, **options), run(torch, *args, **options)
    if isinstance(theirs, tuple):
        assert ours == theirs
    else:
        assert ours[0] == theirs[0] and ours[1:] == [pytest.approx(values, rel=1e-5, abs=1e-6, nan_ok=True) for values in theirs[1:]]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_masked_reductions(name, dtype, mask):
    for options in ({}, {"dim": 0}, {"dim": 1, "keepdim": True}, {"dim": (0, 1)}, {"dim": -1, "dtype": "float64"}, {"dim": 2}):
        agree(name, dtype, mask, **options)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("name", LINES)
def test_masked_functions_along_a_dimension(name, dtype, mask):
    if dtype == "int64" and "soft" in name:
        # Not compared: both libraries refuse int64, but their error texts name different kernels.
        return
    for dim in (0, 1, -1, 3):
        agree(name, dtype, mask, dim)
        agree(name, dtype, mask, dim, dtype="float64")


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("ord", [2.0, 1, 3, float("inf"), float("-inf")])
def test_masked_norm_and_normalize(ord, mask):
    agree("norm", "float32", mask, ord, 1)
    agree("norm", "float64", mask, ord, keepdim=True)
    if ord > 0:
        agree("normalize", "float32", mask, ord, 1)


@pytest.mark.parametrize("options", [{"unbiased": False}, {"unbiased": True}, {"correction": 2}, {"correction": 0, "dim": 1}, {"correction": 5}, {"unbiased": True, "correction": 1}])
def test_correction_of_masked_var_and_std(options):
    for name in ("var", "std"):
        agree(name, "float32", MASKS[1], **options)


def test_logaddexp_with_two_masks():
    masks = MASKS[1:]
    found = [library.masked.logaddexp(library.tensor(DATA), library.tensor(DATA) * 2, input_mask=library.tensor(masks[0]), other_mask=library.tensor(masks[1])) for library in (gradus, torch)]
    assert found[0].flatten().tolist() == pytest.approx(found[1].flatten().tolist())


def test_a_mask_with_too_many_dimensions_is_refused():
    agree("sum", "float32", [[[True]]])


def test_a_repeated_dim_is_refused():
    agree("sum", "float32", None, dim=(0, 0))
