"""Compares the values and gradients of every in-place method of tensors with PyTorch. Some of these methods have kernels of their own, others are
composed of other operators."""
import warnings

import pytest

import gradus
from operator_calls import arguments, call, public_calls, sample_texts
from oracle import torch

# Methods that draw random numbers. test_random.py compares them with PyTorch.
RANDOM = {"bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "random_", "uniform_"}
# Left out, because in PyTorch the tensor that these methods overwrite keeps its autograd history.
HISTORY = {"logical_and_", "logical_or_", "logical_xor_"}
GIVEN = [(), ("T",), (0.5,), ("T", "T"), (0.1, 0.6), (1,)]


def names():
    return sorted(name for name in dir(gradus.Tensor) if name.endswith("_") and not name.startswith("_") and name not in RANDOM | HISTORY)


def outcome(module, name, given):
    """Returns (elements, gradient) of x * 1 after the in-place method, or None if the method is refused. The gradient is zero if the result has no
    autograd history."""
    x = module.tensor([[0.3, 0.7, 0.2], [0.5, 0.9, 0.4]], dtype=module.float64, requires_grad=True)
    y = x * 1.0
    others = [module.tensor([[0.4, 0.6, 0.8], [0.1, 0.2, 0.35]], dtype=module.float64) if value == "T" else value for value in given]
    try:
        result = getattr(y, name)(*others)
        (result * result).sum().backward()
    except Exception:
        return None
    gradient = x.grad if x.grad is not None else module.zeros_like(x)
    return result.detach().tolist(), gradient.clone().tolist()


@pytest.mark.parametrize("name", names())
def test_in_place_methods_agree_with_pytorch(name):
    warnings.simplefilter("ignore")
    for given in GIVEN:
        theirs = outcome(torch, name, given)
        deprecated = name in ("add_", "sub_", "subtract_") and given == (0.1, 0.6)  # the deprecated signature add_(alpha, other)
        if theirs is None or deprecated:
            continue
        ours = outcome(gradus, name, given)
        if ours is None and name in ("share_memory_", "detach_"):
            continue
        assert ours is not None, given
        for a, b in zip(ours, theirs):
            torch.testing.assert_close(torch.tensor(a), torch.tensor(b), equal_nan=True)


@pytest.mark.parametrize("name", ["relu", "relu6", "elu", "selu", "celu", "leaky_relu", "hardtanh", "silu", "hardswish", "hardsigmoid", "mish"])
def test_activations_in_place(name):
    def gradient(module):
        x = module.tensor([[-0.3, 0.7, -2.2], [5.5, -0.9, 0.4]], dtype=module.float64, requires_grad=True)
        result = getattr(module.nn.functional, name)(x * 1.0, inplace=True)
        (result * result).sum().backward()
        return result.tolist(), x.grad.tolist()

    for a, b in zip(gradient(gradus), gradient(torch)):
        torch.testing.assert_close(torch.tensor(a), torch.tensor(b))


def test_resize_increases_the_version_only_if_sizes_change():
    def versions(module):
        x, found = module.ones(2, 3), []
        for sizes in ((2, 3), (3, 2), (3, 2), (4, 4), (0,), (0,)):
            x.resize_(*sizes)
            found.append(x._version)
        return found

    assert versions(gradus) == versions(torch) == [0, 1, 1, 2, 3, 3]


def gradients(function, operator, text, in_place):
    """Multiplies the result of an operator by 3, in place if `in_place` is true, and returns the gradients of a loss. Returns None if the result has
    no gradient or may not be written."""
    values = arguments(operator, text, gradus.float64)
    leaves = [t for value in values.values() for t in (value if isinstance(value, list) else [value])
              if isinstance(t, gradus.Tensor) and (t.is_floating_point() or t.is_complex())]
    for leaf in leaves:
        leaf.requires_grad_()
    try:
        result = call(function, operator, values)
        result = result if isinstance(result, gradus.Tensor) else [*result, None][0]
        if result is None or result.grad_fn is None:
            return None
        tripled = result.mul_(3) if in_place else result * 3
        return [grad.tolist() for grad in gradus.autograd.grad((tripled * tripled).sum(), leaves, allow_unused=True, materialize_grads=True)]
    except RuntimeError:  # mul_ is refused, e.g. because the result is a view of a leaf or has overlapping elements
        return None


def test_gradients_after_writing_to_a_result_in_place():
    compared = 0
    for name, function, operator, form in public_calls():
        for text in sample_texts(operator) if form == "functional" and not operator.test.get("skip") else []:
            written = gradients(function, operator, text, True)
            if written is not None:
                assert repr(written) == repr(gradients(function, operator, text, False)), f"{name}({text})"
                compared += 1
    assert compared > 800
