"""Compares with PyTorch the operators that make a tensor a view in place (such as t_), the copying variants of view operators (such as t_copy), and
unsafe_split, whose results are not views."""
import pytest

import gradus
from both import caught, same, submodule

TURNS = [
    lambda y: y.t_(), lambda y: y.transpose_(0, -1), lambda y: y.swapaxes_(0, 1), lambda y: y.swapdims_(1, 0), lambda y: y.unsqueeze_(1), lambda y: y.unsqueeze_(-1).squeeze_(-1),
    lambda y: y.squeeze_(), lambda y: y.as_strided_((2, 2), (1, 3)), lambda y: y.unsqueeze_(0).unsqueeze_(0).unsqueeze_(0).unsqueeze_(0),
]
TURNS_BY_STRIDES = 7
COPIES = [
    lambda torch, x: torch.transpose_copy(x, 0, 1), lambda torch, x: torch.permute_copy(x, (1, 0)), lambda torch, x: torch.t_copy(x), lambda torch, x: torch.expand_copy(x, (4, 2, 3)),
    lambda torch, x: torch.squeeze_copy(x), lambda torch, x: torch.squeeze_copy(x, 0), lambda torch, x: torch.unsqueeze_copy(x, 1), lambda torch, x: torch.select_copy(x, 0, 1),
    lambda torch, x: torch.slice_copy(x, 1, 0, 2), lambda torch, x: torch.narrow_copy(x, 1, 1, 2), lambda torch, x: x.narrow_copy(0, 0, 1), lambda torch, x: torch.diagonal_copy(x, 1),
    lambda torch, x: torch.as_strided_copy(x, (2, 2), (1, 1), 1), lambda torch, x: torch.unfold_copy(x, 1, 2, 1), lambda torch, x: torch.view_copy(x, (3, 2)),
    lambda torch, x: torch.alias_copy(x), lambda torch, x: torch.detach_copy(x.detach()), lambda torch, x: torch.unbind_copy(x)[1], lambda torch, x: torch.split_copy(x, 2, 1)[0],
    lambda torch, x: torch.split_with_sizes_copy(x, [1, 2], 1)[1], lambda torch, x: torch.view_as_complex_copy(x.detach().reshape(3, 2)), lambda torch, x: torch.adjoint(x),
    lambda torch, x: torch.view_as_real_copy(torch.complex(x, x)), lambda torch, x: torch.put(x, torch.tensor([0, -1]), x[0, :2]),
    lambda torch, x: torch.put(x, torch.tensor([[0, 2, 0]]), x[0], accumulate=True), lambda torch, x: torch.conj_physical(torch.complex(x, x)),
    lambda torch, x: torch.nonzero_static(x, size=3), lambda torch, x: torch.nonzero_static(x, size=9, fill_value=5),
    lambda torch, x: (x * 1).fill_diagonal_(7), lambda torch, x: (x.t() * 1).fill_diagonal_(7, wrap=True), lambda torch, x: torch.zeros(9, 2).fill_diagonal_(1, wrap=True),
    lambda torch, x: torch.unsafe_split(x, 2, 1)[1].mul_(2), lambda torch, x: torch.unsafe_chunk(x, 3, 1)[1], lambda torch, x: torch.unsafe_split_with_sizes(x, [1, 2], 1)[1],
]


def numbers(torch, **options):
    return torch.arange(1.0, 7.0, **options).reshape(2, 3)


@pytest.mark.parametrize("turn", range(len(TURNS)))
def test_in_place_views_of_a_tensor(turn):
    def run(torch):
        x = numbers(torch).requires_grad_()
        y = x * 2
        part = y[0]
        TURNS[turn](y)
        part.mul_(3)
        kind = type(y.grad_fn).__name__
        weights = torch.arange(1.0, y.numel() + 1).reshape(y.shape)
        (y * weights).sum().backward()
        return tuple(y.shape), y.stride(), y.storage_offset(), y.tolist(), x.grad.tolist(), kind
    same(run)


@pytest.mark.parametrize("turn", range(len(TURNS)))
def test_in_place_views_of_a_view(turn):
    def run(torch):
        x = numbers(torch).requires_grad_()
        y = x * 2
        whole = y[:]
        TURNS[turn](whole)
        whole.mul_(3)
        y.sum().backward()
        return tuple(whole.shape), whole.stride(), tuple(y.shape), y.tolist(), x.grad.tolist()
    same(run)


def test_in_place_views_keep_the_memory():
    x = gradus.zeros(2, 3, 4)
    shared = x.numpy()
    before = x.data_ptr()
    x.transpose_(0, 2)[3, 2, 1] = 5
    assert shared[1, 2, 3] == 5 and x.data_ptr() == before and x.shape == (4, 3, 2) and not x.is_contiguous()


@pytest.mark.parametrize("call", [
    lambda torch: numbers(torch).requires_grad_().t_(), lambda torch: numbers(torch, requires_grad=True).unbind()[0].unsqueeze_(0),
    lambda torch: torch.zeros(3).as_strided_((9, 9), (9, 1)), lambda torch: torch.zeros(2, 2, 2).t(), lambda torch: torch.zeros(2).unsqueeze_(3), lambda torch: torch.zeros(2).squeeze_(1),
    lambda torch: torch.ones(3).adjoint(), lambda torch: torch.zeros(3).fill_diagonal_(1), lambda torch: torch.zeros(3, 2, 3).fill_diagonal_(1),
    lambda torch: torch.zeros(3).put_(torch.tensor([1.0]), torch.tensor([1.0])), lambda torch: torch.zeros(3).put_(torch.tensor([1]), torch.tensor([1.0, 2.0])),
    lambda torch: torch.zeros(3).put_(torch.tensor([1]), torch.tensor([1])), lambda torch: torch.nonzero_static(torch.zeros(3), size=-4),
    lambda torch: torch.empty_permuted((2, 3), (0, 0)), lambda torch: torch.empty_permuted((2, 3), (0,)),
])
def test_errors_of_in_place_views(call):
    same(lambda torch: caught(call, torch))


@pytest.mark.parametrize("turn", range(len(TURNS)))
def test_tangents_of_in_place_views(turn):
    def run(torch, forward):
        with forward.dual_level():
            dual = forward.make_dual(numbers(torch), numbers(torch) + 10).clone()
            TURNS[turn](dual)
            value, tangent = forward.unpack_dual(dual)
            return value.tolist(), tangent.tolist()
    same(lambda torch: run(torch, submodule(torch, "autograd.forward_ad")))


def test_a_refused_in_place_view_of_a_dual_tensor_changes_nothing():
    forward = submodule(gradus, "autograd.forward_ad")
    with forward.dual_level():
        dual = forward.make_dual(gradus.zeros(9)[:4], gradus.ones(4))
        assert caught(dual.as_strided_, (8,), (1,))[0] == "RuntimeError" and dual.shape == (4,)


@pytest.mark.parametrize("turn", range(len(TURNS)))
def test_vmap_of_in_place_views(turn):
    def run(torch):
        def one(x):
            y = x.clone()
            assert TURNS[turn](y) is y
            shapes.append(tuple(y.shape))
            return y * 2

        shapes = []
        return torch.func.vmap(one)(torch.arange(24.0).reshape(4, 2, 3)).tolist(), shapes

    if turn == TURNS_BY_STRIDES:  # compared element by element, because PyTorch has no batching rule for this function
        batch = gradus.arange(24.0).reshape(4, 2, 3)
        assert run(gradus)[0] == [(TURNS[turn](x.clone()) * 2).tolist() for x in batch]
    else:
        same(run)


@pytest.mark.parametrize("copy", range(len(COPIES)))
def test_view_copy_functions(copy):
    def run(torch):
        x = numbers(torch).requires_grad_()
        y = COPIES[copy](torch, x)
        if y.requires_grad:
            (y * y.detach()).abs().sum().backward()
        return tuple(y.shape), y.stride(), str(y.dtype).split(".")[1], y.tolist(), None if x.grad is None else x.grad.tolist()
    same(run)


def test_view_copies_own_their_memory():
    x = gradus.zeros(2, 3)
    for copy in (gradus.alias_copy(x), gradus.view_copy(x, (6,)), gradus.squeeze_copy(x), gradus.view_copy(x, gradus.int32), gradus.unbind_copy(x)[0]):
        assert copy._base is None and copy.data_ptr() != x.data_ptr()


def test_results_of_unsafe_split_are_no_views():
    x = gradus.ones(4, requires_grad=True)
    a, b = gradus.unsafe_split(x * 1, 2)
    assert not a._is_view() and a.grad_fn is not None and type(a.grad_fn).__name__ == "UnsafeSplitBackward0"
    a.mul_(3)
    (a.sum() + b.sum()).backward()
    assert x.grad.tolist() == [3, 3, 1, 1]


def test_empty_permuted():
    same(lambda torch: [torch.empty_permuted(size, order).stride() for size, order in (((2, 3, 4), (2, 0, 1)), ((), ()), ((0, 3), (1, 0)), ((2, 1, 3), (1, 2, 0)))])
