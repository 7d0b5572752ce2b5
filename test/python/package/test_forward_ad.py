"""Compares autograd.forward_ad and jvp of custom functions with PyTorch."""
import threading

import pytest
from both import caught, gradus, same, submodule, without_tensors


def forward_ad(torch):
    return submodule(torch, "autograd.forward_ad")


def tangent_of(torch, program, *pairs):
    """Returns the primal and the tangent of program(*dual tensors). Each pair gives the primal and the tangent of one dual tensor."""
    fw = forward_ad(torch)
    with fw.dual_level():
        return tuple(fw.unpack_dual(program(*(fw.make_dual(torch.tensor(p), torch.tensor(t)) for p, t in pairs))))


CASES = {
    "product": lambda torch, x, y: x * y,
    "one of them": lambda torch, x, y: x.reciprocal(),
    "in place": lambda torch, x, y: x.clone().mul_(y),
    "through a view": lambda torch, x, y: x.view(2, 1)[1] * y,
    "a view written": lambda torch, x, y: torch.zeros(2).copy_(x).add_(1),
    "reduction": lambda torch, x, y: (x * y).sum(),
    "line": lambda torch, x, y: torch.softmax(x, 0),
    "several": lambda torch, x, y: torch.stack([x, y]).max(0).values,
    "linear": lambda torch, x, y: torch.nn.functional.linear(x, torch.tensor([[1.0, 2.0]])),
    "detached": lambda torch, x, y: x.detach() * 2,
    "indexed": lambda torch, x, y: x[[1, 0, 1]],
    "a 0-d bound": lambda torch, x, y: torch.clamp(x, max=1.5 * y.sum()),
    "filled with a 0-d tensor": lambda torch, x, y: x.masked_fill(torch.tensor([True, False]), y[0]).index_fill(0, torch.tensor([1]), y[1]),
    "filled in place": lambda torch, x, y: x.clone().masked_fill_(torch.tensor([True, False]), value=y[0]) + torch.zeros(2).fill_(y[1]),
    "where only a number is accepted": lambda torch, x, y: torch.add(x, y, alpha=y[0]) + torch.full((2,), x[1]) + x.new_full((2,), y[1]) + torch.full_like(x, x[0]) + torch.arange(y[0])[:2],
    "a number alone": lambda torch, x, y: torch.full((2,), y[0], dtype=torch.int64),
}


@pytest.mark.parametrize("name", CASES)
def test_tangents_agree_with_pytorch(name):
    same(lambda torch: tangent_of(torch, lambda x, y: CASES[name](torch, x, y), ([1.0, 2.0], [0.5, -1.0]), ([3.0, -2.0], [2.0, 0.25])))


def test_dual_levels():
    def program(torch):
        fw = forward_ad(torch)
        seen = [caught(fw.make_dual, torch.ones(1), torch.ones(1)), without_tensors(tuple(fw.unpack_dual(torch.ones(1))))]
        level = fw.enter_dual_level()
        dual = fw.make_dual(torch.ones(2), torch.full((2,), 3.0))
        seen += [level, without_tensors(tuple(fw.unpack_dual(dual))), fw.unpack_dual(torch.ones(1)).tangent]
        seen += [caught(fw.enter_dual_level), caught(fw.exit_dual_level, level=5)]
        for primal, tangent in ((torch.ones(1, dtype=torch.int64), torch.ones(1)), (torch.ones(2), torch.ones(3)), (torch.ones(2), torch.ones(2, dtype=torch.float64))):
            name, text = caught(fw.make_dual, primal, tangent)
            seen.append((name, text.replace("Float", "float32").replace("Double", "float64")))
        fw.exit_dual_level()
        return [*seen, fw.unpack_dual(dual).tangent]

    ours = program(gradus)
    assert ours[0] == ("RuntimeError", "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first.")
    assert ours[5] == ("RuntimeError", "Nested forward mode AD is not supported at the moment")
    assert ours[6] == ("RuntimeError", "Trying to exit a forward AD level that was not the last one that was created. This is not supported.")
    assert ours[-1] is None
    assert caught(forward_ad(gradus).exit_dual_level)[0] == "RuntimeError"


def test_dual_level_as_a_decorator():
    def program(torch):
        fw = forward_ad(torch)

        @fw.dual_level()
        def derivative(x):
            return fw.unpack_dual(fw.make_dual(x, torch.ones_like(x)) ** 3).tangent

        return derivative(torch.tensor([2.0])), derivative(torch.tensor([3.0]))

    same(program)


def test_an_exception_exits_the_dual_level():
    fw = forward_ad(gradus)
    with pytest.raises(KeyError), fw.dual_level():
        raise KeyError
    with fw.dual_level():
        pass


def test_dual_levels_are_thread_local():
    fw, seen = forward_ad(gradus), []

    def run():
        with fw.dual_level():
            seen.append(fw.unpack_dual(fw.make_dual(gradus.ones(1), gradus.ones(1)) * 2).tangent.item())

    with fw.dual_level():
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert seen == [2.0]


def test_forward_over_reverse():
    def program(torch):
        fw = forward_ad(torch)
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        with fw.dual_level():
            dual = fw.make_dual(x, torch.tensor([1.0, 0.5]))
            (grad,) = torch.autograd.grad((dual ** 3).sum(), x)
            return tuple(fw.unpack_dual(grad))

    same(program)


def test_backward_through_a_tangent():
    def program(torch):
        fw = forward_ad(torch)
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        with fw.dual_level():
            tangent = fw.unpack_dual(fw.make_dual(x, torch.tensor([1.0, 0.5])) ** 3).tangent
        tangent.sum().backward()
        return x.grad

    same(program)


def scaled(torch, jvp):
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor, y):
            ctx.factor = factor
            ctx.save_for_forward(x, y)
            return x * y * factor, x + y

        jvp = None

    Scaled.jvp = staticmethod(jvp)
    return Scaled


JVPS = {
    "right": lambda ctx, x, factor, y: (x * ctx.saved_tensors[1] * ctx.factor + y * ctx.saved_tensors[0], x + y),
    "zeros are made": lambda ctx, x, factor, y: (x + (factor is None), y.clone()),
    "too few": lambda ctx, x, factor, y: (x,),
    "no tensor": lambda ctx, x, factor, y: (x, 3),
    "an exception": lambda ctx, x, factor, y: {}["key"],
}


@pytest.mark.parametrize("name", JVPS)
def test_jvp_of_custom_functions(name):
    def program(torch):
        fw = forward_ad(torch)
        with fw.dual_level():
            dual = fw.make_dual(torch.tensor(3.0), torch.tensor(1.0))
            try:
                return [without_tensors(tuple(fw.unpack_dual(y))) for y in scaled(torch, JVPS[name]).apply(dual, 2.0, torch.tensor(4.0))]
            except Exception as error:
                return type(error).__name__, str(error)

    same(program)


def test_a_custom_function_without_jvp_is_an_error():
    def program(torch):
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

        fw = forward_ad(torch)
        with fw.dual_level():
            return caught(Twice.apply, fw.make_dual(torch.tensor(3.0), torch.tensor(1.0)))

    same(program)


def test_jvp_with_set_materialize_grads_false():
    def program(torch):
        class Sum(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.set_materialize_grads(False)
                return x + y

            @staticmethod
            def jvp(ctx, x, y):
                return x * 2 if y is None else x * 0

        fw = forward_ad(torch)
        with fw.dual_level():
            return tuple(fw.unpack_dual(Sum.apply(fw.make_dual(torch.tensor(3.0), torch.tensor(1.0)), torch.tensor(1.0))))

    same(program)
