"""Tests select_scatter, slice_scatter and others, which copy a tensor and overwrite a view of the copy. Values, first and second derivatives and
errors must be PyTorch's."""
import pytest

import gradus
from both import same

CALLS = {
    "select_scatter": [((3, 4), (4,), (0, 1)), ((3, 4), (3,), (-1, -4)), ((3,), (), (0, 2)), ((2, 0), (0,), (0, 1))],
    "slice_scatter": [((5, 3), (2, 3), (0, 1, 3)), ((3, 5), (3, 2), (1, -4, None, 2)), ((4,), (4,), ()), ((4,), (0,), (0, 9))],
    "diagonal_scatter": [((3, 4), (3,), ()), ((3, 4), (2,), (2,)), ((2, 3, 4), (3, 2), (0, -1, 0)), ((3, 3), (0,), (5,))],
    "as_strided_scatter": [((3, 4), (2, 2), ((2, 2), (1, 4))), ((3, 4), (3,), ((3,), (5,), 1)), ((6,), (), ((), (), 5))],
}
CASES = [(name, *case) for name, cases in CALLS.items() for case in cases]


def numbers(module, shape, start, requires_grad=False):
    count = 1
    for size in shape:
        count *= size
    return (module.arange(count, dtype=module.float64) + start).reshape(shape).requires_grad_(requires_grad)


def gradients(module, name, whole, part, args):
    x, y = numbers(module, whole, 1, requires_grad=True), numbers(module, part, 50, requires_grad=True)
    made = getattr(module, name)(x, y, *args)
    first = module.autograd.grad((made * made * made).sum(), (x, y), create_graph=True)
    second = module.autograd.grad(sum((g * g).sum() for g in first), (x, y), allow_unused=True)
    # For as_strided_scatter the gradients of self are not compared, because PyTorch returns the gradients of src instead.
    of_self = [] if name == "as_strided_scatter" else [first[0].detach(), *second]
    return [made.detach(), first[1].detach(), *of_self, type(made.grad_fn).__name__, made.stride()]


@pytest.mark.parametrize("name, whole, part, args", CASES)
def test_values_and_gradients(name, whole, part, args):
    same(gradients, name, whole, part, args)


def error(module, name, whole, part, args):
    try:
        getattr(numbers(module, whole, 0), name)(numbers(module, part, 0), *args)
    except Exception as raised:
        return type(raised).__name__, str(raised).removeprefix("select(): ")
    return None


@pytest.mark.parametrize("name, whole, part, args", [
    ("select_scatter", (3, 4), (3,), (0, 1)), ("select_scatter", (3, 4), (4,), (2, 1)), ("select_scatter", (3, 4), (4,), (0, 7)),
    ("slice_scatter", (3, 4), (3,), (0, 1)), ("diagonal_scatter", (3, 4), (5,), ()), ("as_strided_scatter", (3, 4), (3,), ((2, 2), (1, 2)))])
def test_errors_are_those_of_pytorch(name, whole, part, args):
    assert same(error, name, whole, part, args) is not None


def test_select_scatter_copies_the_tensor_and_converts_src():
    def program(module):
        x = module.zeros(2, 2, dtype=module.float32)
        made = x.select_scatter(module.ones(2, dtype=module.int64), 0, 1)
        return x, made, str(made.dtype).rpartition(".")[2]
    same(program)


def test_as_strided_scatter_of_a_view_counts_the_offset_from_the_storage():
    x = gradus.arange(6.0)[2:].requires_grad_()
    src = gradus.tensor([10.0, 20.0], requires_grad=True)
    made = x.as_strided_scatter(src, (2,), (2,), 3)
    assert made.tolist() == [2, 10, 4, 20]
    made.backward(gradus.tensor([1.0, 2.0, 3.0, 4.0]))
    assert (x.grad.tolist(), src.grad.tolist()) == ([1, 0, 3, 0], [2, 4])
    with pytest.raises(RuntimeError, match="only supported for contiguous inputs"):
        gradus.zeros(2, 3).t().as_strided_scatter(src, (2,), (1,))


def test_gradient_formulas_and_kernels_of_views_agree():
    """The gradient of a view is computed by a formula of recorded operators with create_graph=True, and by a faster kernel otherwise. Both give the
    same numbers."""
    def program(module, view):
        x = numbers(module, (4, 5), 1, requires_grad=True)
        part = view(module, x)
        weight = numbers(module, part.shape, 3)
        return [module.autograd.grad((part * weight).sum(), x, create_graph=graph, retain_graph=True)[0].detach() for graph in (False, True)]
    for view in (lambda m, x: x[1], lambda m, x: x.select(1, -2), lambda m, x: x[1:4:2], lambda m, x: x[:, -3:], lambda m, x: x.diagonal(1), lambda m, x: x.unfold(0, 2, 1),
                 lambda m, x: x.unfold(-1, 3, 2), lambda m, x: x.permute(1, 0), lambda m, x: m.masked_select(x, x > 7), lambda m, x: m.take(x, m.tensor([3, -1, 3])),
                 lambda m, x: x.as_strided((3, 3), (2, 1), 1), lambda m, x: x.expand(2, 4, 5).as_strided((2, 4), (0, 1)), lambda m, x: x.trace(), lambda m, x: x.roll((1, -2), (0, 1)),
                 lambda m, x: x.repeat(2, 1, 3), lambda m, x: m.nn.functional.pad(x, (2, 1), mode="reflect"), lambda m, x: m.nn.functional.pad(x[None], (1, 1, 2, 1), mode="replicate"),
                 lambda m, x: m.nn.functional.pad(x, (-1, 2, 1, -1)), lambda m, x: x.masked_scatter(x > 9, x * 2), lambda m, x: m.stack([x, x * x], 1).sum(1)):
        fast, formula = same(program, view)
        assert fast == formula


def test_gradient_formula_and_kernel_of_embedding_agree():
    def program(module, options):
        w = numbers(module, (4, 3), 1, requires_grad=True)
        rows = module.nn.functional.embedding(module.tensor([[1, 2, 3], [0, 1, 2]]), w, **options)
        return [module.autograd.grad((rows * numbers(module, (2, 3, 3), 1)).sum(), w, create_graph=graph, retain_graph=True)[0].detach() for graph in (False, True)]
    for options in ({}, {"padding_idx": 1}, {"scale_grad_by_freq": True}, {"padding_idx": 2, "scale_grad_by_freq": True}):
        fast, formula = same(program, options)
        assert fast == formula
