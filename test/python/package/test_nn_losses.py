"""Compares losses, distances and embedding bags with PyTorch, for many shapes and every reduction."""
import itertools

import pytest

from beside_gradients import agree
from both import same
from oracle import torch

REDUCTIONS = ("mean", "sum", "none", "other")


def function(name):
    return lambda m: getattr(m.nn.functional, name)


def leaf(*shape):
    return torch.randn(shape).requires_grad_()


def classes(n, *shape):
    return torch.randint(0, n, shape)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_margin_losses(reduction):
    for p in (1, 2, 3):
        agree(function("multi_margin_loss"), leaf(3, 5), classes(5, 3), p=p, reduction=reduction)
        agree(function("multi_margin_loss"), leaf(5), classes(5), p=p, margin=0.3, weight=torch.rand(5), reduction=reduction)
        agree(function("multi_margin_loss"), leaf(5), classes(5, 1), p=p, reduction=reduction)
    for target in ([[1, -1, 0, 2], [0, 1, 2, 3], [3, 3, 0, -1]], [[-1, 0, 0, 0]] * 3, [[1, 7, -1, 0]] * 3, [[1, -2, -1, 0]] * 3):
        agree(function("multilabel_margin_loss"), leaf(3, 4), torch.tensor(target), reduction=reduction)
        agree(function("multilabel_margin_loss"), leaf(4), torch.tensor(target[0]), reduction=reduction)
    agree(function("multilabel_margin_loss"), leaf(2, 3, 4), classes(4, 2, 3, 4), reduction=reduction)
    agree(function("multilabel_margin_loss"), leaf(), classes(1), reduction=reduction)
    agree(function("multilabel_soft_margin_loss"), leaf(3, 4), torch.rand(3, 4), reduction=reduction)
    agree(function("multilabel_soft_margin_loss"), leaf(3, 4), torch.rand(3, 4), torch.rand(4), reduction=reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_linear_cross_entropy(reduction):
    for ignored in (None, 2):
        agree(function("linear_cross_entropy"), leaf(3, 4), leaf(5, 4), classes(5, 3), reduction=reduction, ignore_index=ignored)
        agree(function("linear_cross_entropy"), leaf(4), leaf(5, 4), classes(5), linear_bias=leaf(5), reduction=reduction, ignore_index=ignored)
        agree(function("linear_cross_entropy"), leaf(3, 4), leaf(5, 2, 4), classes(5, 3, 2), linear_bias=leaf(5, 2), reduction=reduction, label_smoothing=0.1)
        agree(function("linear_cross_entropy"), leaf(3, 4), leaf(5, 4), torch.rand(3, 5), weight=torch.rand(5), reduction=reduction, ignore_index=ignored)
    for wrong in ((leaf(3, 4), leaf(5, 3)), (leaf(4), leaf(5, 2, 4)), (leaf(3, 4), leaf(4))):
        agree(function("linear_cross_entropy"), *wrong, classes(5, 3), reduction=reduction)


def test_pdist():
    for shape, p in itertools.product(((4, 3), (7, 20)), (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf"))):
        agree(lambda m: m.pdist, leaf(*shape), p)
    for shape in ((1, 3), (0, 3), (3, 0), (2, 3, 4), (4,)):  # for these shapes PyTorch may crash while it computes the gradients
        agree(lambda m: m.pdist, torch.randn(shape))
    agree(lambda m: m.pdist, torch.randn(4, 3), -1.0)
    agree(function("pdist"), torch.ones(3, 2).requires_grad_())


@pytest.mark.parametrize("mode", ["sum", "mean", "max", "other"])
def test_embedding_bag(mode):
    for padding, last in itertools.product((None, 1, -1, 9), (False, True)):
        offsets = torch.tensor([0, 2, 2, 6, 7] if last else [0, 2, 2, 6])
        settings = {"mode": mode, "padding_idx": padding, "include_last_offset": last}
        agree(function("embedding_bag"), classes(5, 7), leaf(5, 3), offsets, **settings)
        agree(function("embedding_bag"), classes(5, 7), leaf(5, 3), offsets, per_sample_weights=leaf(7), **settings)
    agree(function("embedding_bag"), classes(5, 3, 4), leaf(5, 3), mode=mode, padding_idx=2)
    agree(function("embedding_bag"), classes(5, 3, 4), torch.randn(5, 3), mode=mode, max_norm=0.5)
    agree(function("embedding_bag"), classes(5, 0), leaf(5, 3), torch.tensor([0, 0]), mode=mode)


def test_embedding_bag_refuses_invalid_arguments():
    for given in ((classes(5, 7), leaf(5, 3), torch.tensor([1, 2])), (classes(5, 7), leaf(5, 3), torch.tensor([0, 9])), (classes(5, 7), leaf(5, 3)), (classes(5, 7), leaf(5, 3), classes(5, 3, 3)),
                  (classes(5, 7, 2, 2), leaf(5, 3)), (classes(5, 7), leaf(5), torch.tensor([0])), (torch.tensor([5]), leaf(5, 3), torch.tensor([0]))):
        agree(function("embedding_bag"), *given, mode="sum")


def test_embedding_renormalizes_rows_in_place():
    for norm in (1.0, 2.0):
        agree(function("embedding"), classes(5, 7), torch.randn(5, 3), max_norm=0.7, norm_type=norm)
        agree(lambda m: m.embedding_renorm_, torch.randn(5, 3), classes(5, 2, 3), 0.7, norm)


def test_adaptive_softmax():
    def layer(m):
        return m.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [2, 5, 9], 2.0)

    agree(layer, leaf(6, 8), classes(12, 6))
    agree(layer, leaf(8), classes(12))
    agree(lambda m: layer(m).log_prob, leaf(6, 8))
    agree(lambda m: layer(m).predict, leaf(6, 8))
    for wrong in ((leaf(6, 8), classes(12, 6) + 12), (leaf(6, 8), classes(12, 5)), (leaf(8), classes(12, 8)), (leaf(8, 8), classes(12, 8, 1))):
        agree(layer, *wrong)
    agree(lambda m: lambda: m.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [5, 2]))


def test_repr_and_state_dict_of_modules():
    def program(m):
        made = [m.nn.EmbeddingBag(5, 3, padding_idx=1), m.nn.LocalResponseNorm(2), m.nn.CrossMapLRN2d(5), m.nn.SyncBatchNorm(4), m.nn.LinearCrossEntropyLoss(4, 5),
                m.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [2, 5], 2.0)]
        return [repr(layer) for layer in made], [list(layer.state_dict()) for layer in made]

    same(program)
