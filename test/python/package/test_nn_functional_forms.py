"""Tests functions of nn.functional and their variants in torch: inplace=True, the order of parameters, random numbers, and reductions given as
numbers."""
import inspect

import pytest

import gradus
from beside_gradients import agree
from both import same
from oracle import torch

FLAGGED = ("relu", "elu", "selu", "celu", "leaky_relu", "relu6", "hardtanh", "silu", "hardswish", "hardsigmoid", "rrelu")
DROPOUTS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
X = [[[-1.0, 2.0, 0.5], [-3.0, 0.0, 1.0]]]


def test_nn_functional_has_no_other_names_than_pytorch():
    ours = gradus.nn.functional.__all__
    assert [name for name in ours if not hasattr(torch.nn.functional, name) and not hasattr(torch._C._nn, name)] == []


@pytest.mark.parametrize("name", FLAGGED)
def test_inplace_true_changes_the_argument(name):
    def program(m):
        f, x = getattr(m.nn.functional, name), m.tensor(X)
        kept = f(x)
        written = f(x, inplace=True)
        return written is x, kept, x, "inplace" in inspect.signature(f).parameters

    ours, theirs = program(gradus), program(torch)
    assert ours[0] and ours[3] and theirs[0]
    assert gradus.allclose(ours[1], ours[2]) and gradus.allclose(ours[1], gradus.tensor(theirs[1].tolist()))


@pytest.mark.parametrize("name", DROPOUTS)
def test_dropouts_draw_the_numbers_of_pytorch(name):
    for p, training, inplace in ((0.3, True, False), (0.3, True, True), (1.0, True, True), (0.0, True, False), (0.7, False, True)):
        agree(lambda m: lambda x: getattr(m.nn.functional, name)(x * 1, p, training, inplace), torch.tensor(X).requires_grad_())
    agree(lambda m: lambda x: getattr(m.nn.functional, name)(x, 1.5), torch.tensor(X))


def test_random_activations_draw_the_numbers_of_pytorch():
    x = torch.randn(3, 40).requires_grad_()
    agree(lambda m: lambda x: m.nn.functional.rrelu(x, training=True), x)
    agree(lambda m: lambda x: m.rrelu_(x * 1, 0.1, 0.2, True), x)
    agree(lambda m: lambda x: m.rrelu(x, 0.1, 0.3, False), x)
    agree(lambda m: lambda x: m.nn.functional.gumbel_softmax(x, tau=0.5), x)
    agree(lambda m: lambda x: m.nn.functional.gumbel_softmax(x, hard=True, dim=0), x)
    agree(lambda m: lambda x: m.native_dropout(x, 0.4, True), x)
    agree(lambda m: lambda x: m.feature_dropout(x.unsqueeze(0), 0.4, True), x)


def test_losses_of_torch_take_reductions_as_numbers():
    def program(m):
        x, y = m.tensor([0.5, 0.25]), m.tensor([0.25, 0.75])
        return [m.kl_div(x, y), m.kl_div(x, y, 1), m.kl_div(x, y, 2, log_target=True), m.margin_ranking_loss(x, y, x, 0.1, 2), m.poisson_nll_loss(x, y, True, False, 1e-8, 0),
                m.hinge_embedding_loss(x, y.sign(), reduction=1)]

    for ours, theirs in zip(program(gradus), program(torch)):
        assert gradus.allclose(ours, gradus.tensor(theirs.tolist()))
    with pytest.raises(ValueError, match="7 is not a valid value for reduction"):
        gradus.kl_div(gradus.ones(1), gradus.ones(1), 7)


def test_argument_order_of_functions_of_torch():
    x = torch.randn(2, 3, 4).requires_grad_()
    agree(lambda m: lambda x: m.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, True), x, tolerance=1e-4)
    agree(lambda m: lambda x: m.instance_norm(x, None, None, None, None, True, 0.1, 1e-5, True), x, tolerance=1e-4)
    agree(lambda m: lambda w, i: m.embedding(w, i, 1), torch.randn(4, 3).requires_grad_(), torch.tensor([1, 2]))
    agree(lambda m: lambda x: m.batch_norm(x), x)
    agree(lambda m: m.bilinear, torch.randn(2, 3).requires_grad_(), torch.randn(2, 4).requires_grad_(), torch.randn(5, 3, 4).requires_grad_(), torch.randn(5))


def test_threshold_names_the_argument_of_a_wrong_type():
    same(lambda m: [str(pytest.raises(TypeError, m.nn.functional.threshold, m.ones(1), "a", 1).value).split("must")[0].split("argument")[-1]])
