"""Compares autograd.Function with PyTorch."""
import doctest

import pytest
from both import caught, gradus, same, submodule, without_tensors


def leaf(torch):
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


def function(torch, forward, backward=lambda ctx, grad: grad, name="Custom"):
    return type(name, (torch.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def square(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor=1):
            ctx.save_for_backward(x)
            ctx.factor = factor
            return x * x * factor

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return (2 * ctx.factor * x * grad, None)[: len(ctx.needs_input_grad)]

    return Square


def test_attributes_of_the_context():
    def program(torch):
        Square = square(torch)
        x = leaf(torch)
        y = Square.apply(x, 3)
        ctx = y.grad_fn
        seen = [without_tensors(y.detach()), ctx.name(), type(ctx).__name__, ctx.factor, ctx.saved_tensors[0] is x, ctx.needs_input_grad]
        seen += [[node.name() for node, _ in ctx.next_functions], ctx is y.grad_fn, isinstance(ctx, torch.autograd.graph.Node)]
        seen += [isinstance(ctx, submodule(torch, "autograd.function").FunctionCtx), ctx.metadata]
        y.sum().backward()
        name, text = caught(lambda: ctx.saved_tensors)
        return seen, x.grad, name, text[: text.index(".")]

    same(program)


def test_no_node_is_recorded_without_an_input_that_requires_grad():
    def program(torch):
        x = leaf(torch)
        with torch.no_grad():
            y = square(torch).apply(x, 2)
        z = square(torch).apply(x.detach())
        return y, y.requires_grad, y.grad_fn, z, z.requires_grad

    same(program)


def test_second_order_gradients_of_a_custom_function():
    def program(torch):
        x = leaf(torch)
        (g,) = torch.autograd.grad(square(torch).apply(square(torch).apply(x)).sum(), x, create_graph=True)
        (gg,) = torch.autograd.grad(g.sum(), x)
        return g.detach(), gg

    assert same(program)[1] == [12, 48, 108]


def test_save_for_backward_of_an_output():
    def program(torch):
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        Exp = function(torch, forward, lambda ctx, grad: ctx.saved_tensors[0] * grad)
        x = leaf(torch)
        (g,) = torch.autograd.grad(Exp.apply(x).sum(), x, create_graph=True)
        (gg,) = torch.autograd.grad(g.sum(), x)
        y = Exp.apply(x)
        y.mul_(2)
        name, text = caught(y.sum().backward)
        return torch.allclose(gg, x.exp()), name, text[text.index("one of"):text.index(":")]

    same(program)


def test_saved_tensors_without_saving_and_with_none():
    def program(torch):
        seen = []

        def forward(ctx, x):
            seen.append(ctx.saved_tensors)
            ctx.save_for_backward(None, x, None)
            return x * 1

        def backward(ctx, grad):
            none, x, _ = ctx.saved_tensors
            seen.append((none, without_tensors(x)))
            return grad

        function(torch, forward, backward).apply(leaf(torch)).sum().backward()
        return seen

    same(program)


def test_forward_returns_any_number_and_kind_of_values():
    def program(torch):
        seen = []

        def backward(ctx, *grads):
            seen.append(without_tensors(grads))
            return grads[0]

        for result in (lambda x: (x * 2, 3, None, x * 3), lambda x: (x * 2,), lambda x: (x * 1,) * 12):
            x = leaf(torch)
            outputs = function(torch, lambda ctx, x: result(x), backward).apply(x)
            outputs[0].sum().backward()
            seen.append([type(output).__name__ for output in outputs])
            seen.append(without_tensors(x.grad))
        nothing = function(torch, lambda ctx, x: None).apply(leaf(torch))
        return seen, nothing, function(torch, lambda ctx: 3).apply()

    same(program)


@pytest.mark.parametrize("materialize", [True, False])
def test_set_materialize_grads(materialize):
    def program(torch):
        seen = []

        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3, x.argmax(), x.sum()

        def backward(ctx, *grads):
            seen.extend([without_tensors(grad), getattr(grad, "shape", None) and tuple(grad.shape), str(getattr(grad, "dtype", "")).split(".")[-1]]
                        for grad in grads)
            return grads[1]

        function(torch, forward, backward).apply(leaf(torch))[1].sum().backward()
        return seen

    same(program)


def test_mark_non_differentiable():
    def program(torch):
        def forward(ctx, x):
            a, b = x * 2, x * 3
            ctx.mark_non_differentiable(b, torch.ones(1))
            return a, b, x.argmax()

        a, b, c = function(torch, forward, lambda ctx, *grads: grads[0]).apply(leaf(torch))
        return a.requires_grad, b.requires_grad, b.grad_fn, c.requires_grad

    same(program)


def test_mark_dirty():
    def program(torch):
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            return x

        Double = function(torch, forward, lambda ctx, grad: grad * 2, "Double")
        x = leaf(torch)
        y = x * 1
        z = Double.apply(y)
        base = x * 1
        Double.apply(base[1:])
        (z.sum() + base.sum()).backward()
        constant = torch.ones(2)
        version = constant._version
        same_object = Double.apply(constant) is constant
        return z is y, z.grad_fn.name(), x.grad, base.detach(), same_object, constant._version - version, caught(Double.apply, x)[0]

    same(program)


def test_forward_that_returns_its_input():
    def program(torch):
        Same = function(torch, lambda ctx, x: x, lambda ctx, grad: grad * 5)
        x, constant = leaf(torch), torch.ones(2)
        y, z = Same.apply(x), Same.apply(constant)
        y.sum().backward()
        return y is x, y.data_ptr() == x.data_ptr(), x.grad, z is constant, z.requires_grad

    same(program)


def test_setup_context():
    def program(torch):
        class Scaled(torch.autograd.Function):
            @staticmethod
            def forward(x, factor=2):
                return x * factor

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.factor = inputs[1]
                ctx.seen = len(inputs), without_tensors(output.detach())
                ctx.save_for_backward(output)

            @staticmethod
            def backward(ctx, grad):
                return grad * ctx.factor, None

        x = leaf(torch)
        seen = []
        for y in (Scaled.apply(x), Scaled.apply(x, 3), Scaled.apply(x, factor=4), Scaled.apply(factor=5, x=x)):
            seen.append((y.grad_fn.seen, y.grad_fn.needs_input_grad))
            y.sum().backward()
            seen.append(without_tensors(x.grad))
        return seen

    same(program)


def test_apply_with_keyword_arguments():
    def program(torch):
        x = leaf(torch)
        y = square(torch).apply(x, factor=3)
        return y.detach(), y.grad_fn.needs_input_grad, caught(square(torch).apply, x, other=1)[0]

    same(program)


def test_keyword_only_parameters_of_forward_are_refused():
    class Scaled(gradus.autograd.Function):
        @staticmethod
        def forward(x, *, factor=2):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    assert caught(Scaled.apply, leaf(gradus), factor=3)[0] == "TypeError"


def test_vjp_as_an_alternative_to_backward():
    def program(torch):
        x = leaf(torch)
        Vjp = type("Vjp", (torch.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x * 1), "vjp": staticmethod(lambda ctx, g: g * 7)})
        Both = type("Both", (Vjp,), {"backward": staticmethod(lambda ctx, g: g)})
        Neither = type("Neither", (torch.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x * 1)})
        Vjp.apply(x).sum().backward()
        return x.grad, caught(Both.apply(x).sum().backward), caught(Neither.apply(x).sum().backward), caught(torch.autograd.Function.apply, x)

    same(program)


def test_once_differentiable():
    def program(torch):
        once = submodule(torch, "autograd.function").once_differentiable
        Square = square(torch)
        Square.backward = staticmethod(once(Square.backward))
        x = leaf(torch)
        Square.apply(x, 1).sum().backward()
        y = Square.apply(x, x.detach().requires_grad_())
        (g,) = torch.autograd.grad(Square.apply(x, 1).sum() * x.sum(), x, create_graph=True)
        return x.grad, g.detach(), caught(g.sum().backward), y.requires_grad

    same(program)


@pytest.mark.parametrize("backward, arguments", [
    (lambda ctx, grad: (grad, grad), 1),
    (lambda ctx, grad: (grad, None, None), 1),
    (lambda ctx, grad: None, 1),
    (lambda ctx, grad: grad, 2),
    (lambda ctx, grad: (grad, grad), "number"),
    (lambda ctx, grad: 3, 1),
    (lambda ctx, grad: [grad], 1),
    (lambda ctx, grad: 1 / 0, 1),
])
def test_backward_that_returns_a_wrong_number_or_kind_of_gradients(backward, arguments):
    def program(torch):
        x = leaf(torch)
        inputs = (x, 3) if arguments == "number" else (x,) * arguments
        y = function(torch, lambda ctx, *inputs: inputs[0] * 2, backward).apply(*inputs)
        try:
            y.sum().backward()
        except Exception as error:
            return type(error).__name__, str(error)
        return x.grad

    same(program)


def test_a_gradient_of_a_wrong_shape_is_refused():
    Custom = function(gradus, lambda ctx, x: x * 2, lambda ctx, grad: gradus.ones(7))
    assert caught(Custom.apply(leaf(gradus)).sum().backward) == (
        "RuntimeError",
        "Function CustomBackward returned an invalid gradient at index 0 - got [7] but expected shape compatible with [3]",
    )


def fails(torch, ctx, x):
    raise KeyError("of forward")


@pytest.mark.parametrize("forward, text", [
    (lambda ctx, x: (ctx.save_for_backward(3), x * 2)[1], "TypeError: save_for_backward can only save variables, but argument 0 is of type int"),
    (lambda ctx, x: (ctx.mark_dirty(3), x * 2)[1], "RuntimeError: mark_dirty can only accept variables, but argument 0 is of type int"),
    (lambda ctx, x: (ctx.mark_non_differentiable(x, 3), x * 2)[1],
     "RuntimeError: mark_non_differentiable can only accept variables, but argument 1 is of type int"),
    (lambda ctx, x: (ctx.mark_dirty(x), x * 2)[1],
     "RuntimeError: Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
     "inplace must all be outputs of the Function."),
    (lambda ctx, x: {}["key"], "KeyError: 'key'"),
    (lambda ctx, x: setattr(ctx, "to_save", [x]), "TypeError: save_for_backward of a context must be a tuple, not list"),
])
def test_errors_in_forward(forward, text):
    assert "%s: %s" % caught(function(gradus, forward).apply, leaf(gradus)) == text


def test_errors_of_using_function_and_context_directly():
    Function = gradus.autograd.Function
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        instance = Function()
    assert caught(instance)[0] == "RuntimeError"
    assert caught(Function.apply.__func__)[0] == caught(Function.apply.__func__, int, 3)[0] == "TypeError"
    ctx = submodule(gradus, "autograd.function").FunctionCtx()
    assert ctx.saved_tensors == ()
    assert caught(lambda: ctx.next_functions)[0] == caught(lambda: ctx.register_hook(print))[0] == "RuntimeError"
    assert caught(lambda: ctx.needs_input_grad)[0] == "AttributeError"
    assert caught(Function.jvp, None)[0] == "NotImplementedError"


def test_hooks_on_the_node_of_a_custom_function():
    def program(torch):
        log = []
        x = leaf(torch)
        y = square(torch).apply(x, 2)
        y.grad_fn.register_hook(lambda inputs, outputs: log.append((without_tensors(inputs), without_tensors(outputs))))
        y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 2,))
        y.sum().backward()
        return log, x.grad

    same(program)


def test_a_backward_pass_within_backward():
    def program(torch):
        def backward(ctx, grad):
            with torch.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                (x * x).sum().backward()
            return x.grad * grad

        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        x = leaf(torch)
        function(torch, forward, backward).apply(x).sum().backward()
        return x.grad

    same(program)


def test_the_docstring_example_runs():
    failed, tried = doctest.testmod(submodule(gradus, "autograd.function"), extraglobs={"gradus": gradus})
    assert tried > 0 and failed == 0
