"""Compares the backward engine with PyTorch: several roots, nodes with many edges, gradients that the program also holds, functions whose graph was
freed."""
import itertools

import pytest
from both import gradus, same, saving_function


def leaf(torch, value=1.0):
    return torch.full((2,), value, requires_grad=True)


@pytest.mark.parametrize("order", ["yyw", "ywy", "wyy", "yw", "ww", "xyx", "xx"])
def test_backward_from_repeated_roots(order):
    def program(torch):
        x, v = leaf(torch), leaf(torch, 3.0)
        tensors = {"x": x, "y": x * 2, "w": x * v}
        roots = [tensors[name] for name in order]
        torch.autograd.backward(roots, [torch.full((2,), float(10**i)) for i in range(len(roots))])
        return x.grad, v.grad

    same(program)


@pytest.mark.parametrize("wanted", [[0], [62], [63], [64], [69], [3, 66], [63, 69], range(70)])
def test_gradients_of_single_inputs_of_a_node_with_70_inputs(wanted):
    """A node stores in 64 flags which gradients are wanted: one flag for each of its first 63 edges, and a common flag for all later edges. The
    wanted inputs here lie on both sides of that limit."""

    def program(torch):
        leaves = [leaf(torch, float(i)) for i in range(70)]
        inputs = [leaves[i] for i in wanted]
        joined = torch.cat([t * (i + 1) for i, t in enumerate(leaves)])
        return torch.autograd.grad((joined * joined).sum(), inputs)

    same(program)


@pytest.mark.parametrize("wanted", [[0], [63], [65], [1, 68]])
def test_gradients_of_single_inputs_of_a_custom_function_with_70_inputs(wanted):
    def program(torch):
        class Sum(torch.autograd.Function):
            @staticmethod
            def forward(ctx, *tensors):
                return sum(t * (i + 1) for i, t in enumerate(tensors))

            @staticmethod
            def backward(ctx, grad):
                return tuple(grad * (i + 1) if ctx.needs_input_grad[i] else None for i in range(70))

        tensors = [torch.ones(2, requires_grad=i in wanted) for i in range(70)]
        Sum.apply(*tensors).sum().backward()
        base = torch.zeros(4, requires_grad=True) * 1
        base[:2].copy_(Sum.apply(*tensors))
        base.sum().backward()
        return [t.grad for t in tensors if t.grad is not None]

    same(program)


def test_a_gradient_with_other_references_is_copied():
    held = gradus.ones(4)

    class Views(gradus.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad):
            both = gradus.ones(4)
            return both[:2], both[2:]

    class Held(gradus.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return held[:2]

    class Overlapping(gradus.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad):
            both = gradus.ones(3)
            return both[:2], both[1:]

    for function in (Views, Overlapping):
        x, y = leaf(gradus), leaf(gradus)
        function.apply(x, y).sum().backward()
        x.grad.fill_(5)
        assert y.grad.tolist() == [1, 1]
        function.apply(x, y).sum().backward()
        assert (x.grad.tolist(), y.grad.tolist()) == ([6, 6], [2, 2])
    x = leaf(gradus)
    Held.apply(x).sum().backward()
    held.zero_()
    assert x.grad.tolist() == [1, 1]
    x.grad.fill_(7)
    assert held.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("reads", [False, True])
def test_a_second_backward_of_a_custom_function_after_its_graph_is_freed(reads):
    """After the graph has been freed, a second backward fails only in nodes that read saved tensors."""

    def program(torch):
        x = leaf(torch)
        y = saving_function(torch, reads).apply(x)
        y.sum().backward()
        try:
            y.sum().backward()
        except RuntimeError as error:
            return str(error), x.grad
        return x.grad

    same(program)


def test_custom_functions_preserve_tensor_subclasses():
    def program(torch):
        class Marked(torch.Tensor):
            pass

        class Same(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x

            @staticmethod
            def backward(ctx, grad):
                return grad

        class Double(Same):
            @staticmethod
            def forward(ctx, x):
                return x * 2

        tensors = [torch.ones(2), torch.ones(2, requires_grad=True)]
        tensors = [t.as_subclass(kind) for t in tensors for kind in (Marked, torch.Tensor)] + [torch.nn.Parameter(torch.ones(2))]
        return [type(function.apply(t)).__name__ for t in tensors for function in (Same, Double)]

    same(program)


def test_gradients_of_matrix_products_have_the_strides_of_the_factors():
    """The gradient of a column-major factor is column-major, and the leaf takes over that gradient without copying."""

    def program(torch):
        strides = []
        calls = (torch.mm, lambda x, y: torch.addmm(torch.ones(1), x, y, alpha=2))
        for rows, columns, of_x, of_y, call in itertools.product((1, 4), (1, 3), (False, True), (False, True), calls):
            x = (torch.ones(rows, 2).t() if of_x else torch.ones(2, rows)).requires_grad_()
            y = (torch.ones(columns, rows).t() if of_y else torch.ones(rows, columns)).requires_grad_()
            call(x, y).sum().backward()
            strides.append((x.grad.stride(), y.grad.stride()))
            strides += [g.stride() for g in torch.autograd.grad(call(x, y).sum(), (x, y))]
        return strides

    same(program)
