"""Tests backward passes from several roots, into chosen inputs and through nodes with many edges. Every gradient is computed once, every hook is
called once, and no tensor with other references is written."""
import pytest

import gradus as torch


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def test_a_leaf_hook_runs_once_for_each_form_of_backward_and_grad():
    ways = [lambda x, y: y.backward(), lambda x, y: y.backward(inputs=[x]), lambda x, y: torch.autograd.backward([y], inputs=[x]),
            lambda x, y: torch.autograd.grad(y, x), lambda x, y: torch.autograd.backward([y, y.detach().requires_grad_()], [None, None], inputs=[x])]
    for way in ways:
        x, calls = leaf(1.0, 2.0), []
        x.register_hook(lambda grad, calls=calls: calls.append(grad.tolist()))
        way(x, (x * x).sum())
        assert calls == [[2.0, 4.0]]


def test_a_root_given_twice_contributes_twice():
    x, w = leaf(1.0, 2.0), leaf(3.0)
    y = (x * w).sum()
    torch.autograd.backward([y, y, w], retain_graph=True)
    assert x.grad.tolist() == [6.0, 6.0] and w.grad.tolist() == [7.0]
    x.grad = w.grad = None
    torch.autograd.backward([w, y, y])
    assert x.grad.tolist() == [6.0, 6.0] and w.grad.tolist() == [7.0]


@pytest.mark.parametrize("root", [lambda x: x * x, lambda x: x.sum(), lambda x: x.reshape(2, 1), lambda x: (x * x).sum(), lambda x: torch.cat([x, x]), lambda x: x.clone()])
@pytest.mark.parametrize("times", [2, 3])
def test_a_root_given_n_times_equals_n_backward_passes(root, times):
    """A root that is given n times has n times the gradient, whether the leaf is directly below it or further down the graph."""
    once, often = leaf(1.0, 2.0), leaf(1.0, 2.0)
    for _ in range(times):
        y = root(once)
        y.backward(torch.ones_like(y))
    y = root(often)
    torch.autograd.backward([y] * times, [torch.ones_like(y)] * times)
    assert often.grad.tolist() == once.grad.tolist()
    grad, = torch.autograd.grad([root(once)] + [root(often)] * 2, often, [torch.ones_like(y)] * 3)
    assert (grad * times).tolist() == (often.grad * 2).tolist()


def test_backward_from_a_leaf():
    w = leaf(3.0)
    torch.autograd.backward([w, w], [torch.tensor([2.0]), torch.tensor([5.0])])
    assert w.grad.tolist() == [7.0]


LAYOUTS = {"one dimension": torch.ones(4), "rows": torch.ones(2, 3), "columns": torch.ones(3, 2).t(), "three": torch.ones(2, 3, 4).permute(2, 0, 1)}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_gradient_with_other_references_is_copied(layout):
    """A custom function's backward returns a gradient that the test also holds. The engine must copy the tensor before it becomes
    the .grad of a leaf or another gradient is added to it. The same holds for views and detached tensors, which share the tensor's memory."""
    kept = LAYOUTS[layout].clone()

    class Give(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, given):
            ctx.given = given
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return ctx.given(), None

    for given in (lambda: kept, lambda: kept[:], lambda: kept.view(kept.shape).view(kept.shape), lambda: kept.unsqueeze(0).transpose(0, -1).transpose(0, -1)[0],
                  lambda: kept.detach(), lambda: kept.detach().detach(), lambda: kept[:].detach()):
        x = kept.clone().requires_grad_()
        for _ in range(2):
            Give.apply(x, given).sum().backward()
        x.grad.fill_(-1)
        y = x * 1
        for result in (Give.apply(y, given) + y * 2, y * 2 + Give.apply(y, given), Give.apply(y, given) + Give.apply(y, given)):
            result.sum().backward(retain_graph=True)
        assert (kept == 1).all()


@pytest.mark.parametrize("n", [1, 2, 62, 63, 64, 65, 66, 130])
def test_gradients_of_a_node_with_many_inputs(n):
    """Inputs that require a gradient get one, and all other inputs get none. autograd.grad can ask for the gradient of one input alone."""
    for wanted in ({n - 1}, {0, n - 1}, set(range(0, n, 2)), set(range(n))):
        inputs = [torch.full((2,), float(i), requires_grad=i in wanted) for i in range(n)]
        (torch.cat(inputs) * torch.arange(2.0 * n)).sum().backward()
        assert [None if t.grad is None else t.grad.tolist() for t in inputs] == [[2.0 * i, 2.0 * i + 1] if i in wanted else None for i in range(n)]
        asked = [inputs[i] for i in sorted(wanted)][-1:]
        assert torch.autograd.grad((torch.stack(inputs) * 3).sum(), asked)[0].tolist() == [3.0, 3.0]


@pytest.mark.parametrize("n", [63, 64, 65, 130])
def test_calling_a_node_with_many_inputs_returns_all_gradients(n):
    for wanted in ({n - 1}, {0, n - 1}, set(range(0, n, 2)), set(range(n))):
        y = torch.cat([torch.full((2,), float(i), requires_grad=i in wanted) for i in range(n)])
        grads = y.grad_fn(torch.arange(2.0 * n))
        assert [None if grad is None else grad.tolist() for grad in grads] == [[2.0 * i, 2.0 * i + 1] if i in wanted else None for i in range(n)]


def test_needs_input_grad_of_a_custom_function_with_many_inputs():
    class Many(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *tensors):
            return sum(tensors)

        @staticmethod
        def backward(ctx, grad):
            told.append(ctx.needs_input_grad)
            return tuple(grad for _ in ctx.needs_input_grad)

    for n in (1, 63, 64, 65, 100):
        told, needs = [], tuple(i % 3 == 0 or i == n - 1 for i in range(n))
        inputs = [torch.ones(2, requires_grad=need) for need in needs]
        Many.apply(*inputs).sum().backward()
        assert told == [needs] and tuple(t.grad is not None for t in inputs) == needs


def test_the_graph_of_a_custom_function_is_freed():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            x, = ctx.saved_tensors
            return 2 * x * grad

    x = leaf(3.0)
    y = Square.apply(x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [12.0]
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    assert x.grad.tolist() == [12.0]


def test_a_tensor_with_a_live_view_is_not_resized():
    x = torch.arange(2.0)
    view = x[1:]
    with pytest.raises(RuntimeError):
        x.resize_(1000)
    assert x.tolist() == [0.0, 1.0] and view.tolist() == [1.0]
    x.resize_(1)
    assert x.tolist() == [0.0] and view.tolist() == [1.0]


@pytest.mark.parametrize("written", [(), (0,), (1,), (0, 1), (1, 1)])
def test_in_place_changes_of_saved_index_tensors_are_detected(written):
    """Writing an index tensor before the operator saves it is allowed. Writing any of the index tensors after that is detected in backward."""
    indices = [torch.tensor([0, 1]), torch.tensor([1, 0])]
    for i in written:
        indices[i].add_(0)
    x = torch.arange(4.0).reshape(2, 2).requires_grad_()
    x[indices[0], indices[1]].sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    for i in range(2):
        y = x[indices[0], indices[1]].sum()
        indices[i].add_(0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


def test_detaching_in_place_keeps_a_retained_gradient():
    y = leaf(1.0, 2.0) * 2
    y.retain_grad()
    y.sum().backward()
    grad = y.grad
    y.detach_()
    assert y.grad is grad and grad.tolist() == [1.0, 1.0] and y.is_leaf and not y.requires_grad and not y.retains_grad


def test_a_leaf_with_replaced_data_gets_gradients_of_the_new_sizes():
    x = leaf(1.0, 2.0)
    (x * 2).sum().backward()
    for data in (torch.ones(3), torch.ones(2, 2), torch.ones(())):
        x.grad = None
        x.data = data
        (x * 3).sum().backward()
        assert x.grad.shape == data.shape and (x.grad == 3).all()


@pytest.mark.parametrize("dtype, other", [("float32", "int32"), ("float16", "bfloat16"), ("float64", "complex64"), ("float32", "float64")])
def test_assigning_a_gradient_of_another_dtype_is_refused(dtype, other):
    x = torch.ones(2, dtype=getattr(torch, dtype), requires_grad=True)
    with pytest.raises(RuntimeError, match="assigned grad has data of a different type|with dtype"):
        x.grad = torch.ones(2, dtype=getattr(torch, other))
    assert x.grad is None
