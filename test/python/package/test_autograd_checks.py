"""Compares gradcheck, gradgradcheck and autograd.functional with PyTorch."""
import pytest
from both import caught, gradus, same, submodule, torch


def double(torch, values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def tripled(torch):
    return type("Tripled", (torch.autograd.Function,), {
        "forward": staticmethod(lambda ctx, x: x * 2), "backward": staticmethod(lambda ctx, grad: grad * 3)})


@pytest.mark.parametrize("function", [
    lambda torch, a, b: a * b,
    lambda torch, a, b: (a * b).sin(),
    lambda torch, a, b: (a.exp(), a.sum() * b),
    lambda torch, a, b: [a, b.detach()],
    lambda torch, a, b: a.t() @ a,
    lambda torch, a, b: a.detach() * 0,
    lambda torch, a, b: a[0:0],
])
def test_gradcheck_accepts_correct_gradients(function):
    def program(torch):
        a, b = double(torch, [[1.0, 2.0], [3.0, 4.0]]), double(torch, [0.5, 2.0])
        check = torch.autograd.gradcheck
        return check(lambda a, b: function(torch, a, b), (a, b)), check(lambda a: function(torch, a, b), a)

    same(program)


def test_gradcheck_of_complex_functions():
    def program(torch):
        c = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128, requires_grad=True)
        check, again = torch.autograd.gradcheck, torch.autograd.gradgradcheck
        return check(lambda c: c * c, c), check(lambda c: c.abs(), c), check(lambda c: c.conj() * 2j, c), again(lambda c: c * c, c)

    same(program)


def test_gradgradcheck():
    def program(torch):
        a, b = double(torch, [[1.0, 2.0], [3.0, 4.0]]), double(torch, [0.5, 2.0])
        check = torch.autograd.gradgradcheck
        return check(lambda a, b: (a * b).sin(), (a, b)), check(lambda a: a ** 3, a, torch.ones(2, 2, dtype=torch.float64, requires_grad=True))

    same(program)
    assert gradus.autograd.gradgradcheck(lambda a: a ** 3, double(gradus, [[1.0, 2.0]]), gen_non_contig_grad_outputs=True)


def test_gradcheck_reports_wrong_gradients():
    def program(torch):
        Tripled, a = tripled(torch), double(torch, [1.0, 2.0])
        check = torch.autograd.gradcheck
        name, text = caught(check, Tripled.apply, a)
        return name, text.replace("torch.", "").replace("gradus.", ""), check(Tripled.apply, a, raise_exception=False)

    name, text, result = same(program)
    assert "Jacobian mismatch for output 0 with respect to input 0" in text and result is False
    GradcheckError = submodule(gradus, "autograd.gradcheck").GradcheckError
    assert issubclass(GradcheckError, RuntimeError)


def test_gradcheck_reports_an_output_without_gradient_that_depends_on_the_input():
    """gradcheck reports an error for an output that requires no gradient but whose values depend on the input."""
    a = double(gradus, [1.0, 2.0])
    name, text = caught(gradus.autograd.gradcheck, lambda a: a.detach() * 2, a)
    assert (name, text) == ("GradcheckError", "Numerical gradient for function expected to be zero")


def test_gradcheck_reports_a_nondeterministic_backward():
    count = iter(range(1000))
    Changing = type("Changing", (gradus.autograd.Function,), {
        "forward": staticmethod(lambda ctx, x: x * 1), "backward": staticmethod(lambda ctx, grad: grad + 1e-7 * next(count))})
    a = double(gradus, [1.0, 2.0])
    assert "Backward is not reentrant" in caught(gradus.autograd.gradcheck, Changing.apply, a)[1]
    assert gradus.autograd.gradcheck(Changing.apply, a, nondet_tol=1e-4, atol=1e-3)


def test_gradcheck_refuses_inputs_that_cannot_be_checked():
    def program(torch):
        check = torch.autograd.gradcheck
        wide = torch.ones(1, dtype=torch.float64, requires_grad=True).expand(3)
        with pytest.warns(UserWarning, match="not a double precision"):
            check(lambda x: x * 2, torch.ones(2, requires_grad=True), eps=1e-2, atol=1e-2)
        return caught(check, lambda x: x, torch.ones(2, dtype=torch.float64)), caught(check, lambda x: x, wide)

    same(program)
    a = double(gradus, [1.0])
    assert caught(gradus.autograd.gradcheck, lambda a: a, a, check_batched_grad=True)[0] == "NotImplementedError"


def test_gradcheck_in_forward_mode():
    def program(torch):
        class Wrong(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

            @staticmethod
            def jvp(ctx, x):
                return x * 3

        a, b = double(torch, [1.0, 2.0]), torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128, requires_grad=True)
        seen = [torch.autograd.gradcheck(lambda a, b: (a.sin() * a.sum(), b * b * a), (a, b), check_forward_ad=True)]
        seen += [torch.autograd.gradgradcheck(lambda a, b: a.sin() * b, (a, a.detach().clone().requires_grad_()), check_fwd_over_rev=True)]
        seen += [torch.autograd.gradcheck(Wrong.apply, a), torch.autograd.gradcheck(Wrong.apply, a, check_forward_ad=True, raise_exception=False)]
        return seen

    assert same(program) == [True, True, True, False]


# ---- autograd.functional -------------------------------------------------------------------------------------------------------------
def outer(a, b):
    return a.exp().sum(1) * b


def both_outputs(a, b):
    return (a * a, b.sum())


CALLS = {
    "jacobian": lambda f, a, b, v: f.jacobian(outer, (a, b)),
    "jacobian of one": lambda f, a, b, v: f.jacobian(lambda a: a ** 2, a),
    "jacobian of two": lambda f, a, b, v: f.jacobian(both_outputs, (a, b)),
    "hessian": lambda f, a, b, v: f.hessian(lambda a: (a ** 3).sum(), a),
    "hessian of two": lambda f, a, b, v: f.hessian(lambda a, b: (outer(a, b) ** 2).sum(), (a, b)),
    "vjp": lambda f, a, b, v: f.vjp(lambda a: a ** 2, a, v),
    "vjp of two": lambda f, a, b, v: f.vjp(outer, (a, b), b),
    "vjp of a number": lambda f, a, b, v: f.vjp(lambda a: a.sum(), a),
    "jvp": lambda f, a, b, v: f.jvp(lambda a: a ** 2, a, v),
    "jvp of two": lambda f, a, b, v: f.jvp(outer, (a, b), (v, b)),
    "hvp": lambda f, a, b, v: f.hvp(lambda a: (a ** 3).sum(), a, v),
    "vhp": lambda f, a, b, v: f.vhp(lambda a: (a ** 3).sum(), a, v),
    "vhp of two": lambda f, a, b, v: f.vhp(lambda a, b: outer(a, b).sum(), (a, b), (v, b)),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_of_autograd_functional(name):
    def program(module):
        a, b = double(module, [[1.0, 2.0], [3.0, 4.0]]), double(module, [0.5, 2.0])
        v = module.tensor([[1.0, 0.5], [2.0, -1.0]], dtype=module.float64)
        result = CALLS[name](module.autograd.functional, a, b, v)
        return numbers(result)

    ours, theirs = program(gradus), program(torch)
    assert [shape for shape, _ in ours] == [shape for shape, _ in theirs]
    assert [n for _, values in ours for n in values] == pytest.approx([n for _, values in theirs for n in values])


def numbers(result):
    """Returns [(shape, elements)] of the tensors in `result`, after checking that none of them requires a gradient."""
    if isinstance(result, tuple):
        return [item for part in result for item in numbers(part)]
    assert not result.requires_grad
    return [(tuple(result.shape), result.reshape(-1).tolist())]


def test_jacobian_with_create_graph():
    def program(module):
        a = double(module, [1.0, 2.0])
        J = module.autograd.functional.jacobian(lambda a: a ** 3, a, create_graph=True)
        J.sum().backward()
        return a.grad, J.requires_grad

    same(program)


def test_errors_of_autograd_functional():
    f, a = gradus.autograd.functional, double(gradus, [1.0, 2.0])
    assert caught(f.jacobian, lambda a: 3, a)[0] == "TypeError"
    assert caught(f.vjp, lambda a: a, a)[0] == "RuntimeError"
    assert caught(f.vjp, lambda a: a, a, gradus.ones(3))[0] == "RuntimeError"
    assert caught(f.jacobian, lambda a: a.detach(), a, strict=True)[0] == "RuntimeError"
    assert caught(f.jacobian, lambda a: a.sum(), (a, a * 1), strict=True)[0] == "TypeError"
    assert caught(f.hessian, lambda a: a, a)[0] == "RuntimeError"
    assert caught(f.jacobian, lambda a: a, a, strategy="forward-mode")[0] == "NotImplementedError"
