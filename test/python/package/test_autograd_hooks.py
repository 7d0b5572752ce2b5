"""Compares hooks on tensors, leaves and nodes with PyTorch."""
import pickle
import traceback

import pytest
from both import caught, gradus, same, submodule, without_tensors


def leaf(torch):
    return torch.ones(3, requires_grad=True)


def test_order_of_hooks():
    def program(torch):
        log = []
        x = leaf(torch)
        y = x * 2
        y.register_hook(lambda grad: log.append(("first", without_tensors(grad))))
        y.grad_fn.register_prehook(lambda grads: log.append(("before", without_tensors(grads))))
        y.grad_fn.register_hook(lambda inputs, outputs: log.append(("after", without_tensors(inputs), without_tensors(outputs))))
        y.retain_grad()
        y.register_hook(lambda grad: (log.append("second"), grad * 2)[1])
        x.register_hook(lambda grad: log.append(("leaf", without_tensors(grad))))
        x.register_post_accumulate_grad_hook(lambda t: log.append(("accumulated", t is x, without_tensors(t.grad))))
        y.grad_fn.next_functions[0][0].register_hook(lambda inputs, outputs: log.append(("node of leaf", inputs, without_tensors(outputs))))
        y.sum().backward()
        return log, y.grad, x.grad, y.retains_grad, x.retains_grad

    same(program)


def test_hooks_replace_gradients():
    def program(torch):
        x = leaf(torch)
        y = x * 2
        y.register_hook(lambda grad: grad * 10)
        y.grad_fn.register_prehook(lambda grads: (grads[0] + 1,))
        y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 100, None))
        x.register_hook(lambda grad: grad - 1)
        y.sum().backward()
        return x.grad

    same(program)


def test_a_prehook_replaces_a_gradient_by_none():
    def program(torch):
        x = leaf(torch)
        y = x * 2
        y.grad_fn.register_prehook(lambda grads: (None,))
        (y.sum() + x.sum()).backward()
        return x.grad

    same(program)


def test_removing_hooks():
    def program(torch):
        log = []
        y = leaf(torch) * 2
        handles = [y.register_hook(lambda grad, i=i: log.append(i)) for i in range(4)]
        handles[1].remove()
        handles[1].remove()
        with handles[2] as handle:
            assert handle is handles[2]
        y.sum().backward()
        RemovableHandle = submodule(torch, "utils.hooks").RemovableHandle
        return log, [isinstance(handle, RemovableHandle) for handle in handles], isinstance(handles[0].id, int)

    assert same(program)[0] == [0, 3]
    assert caught(pickle.dumps, leaf(gradus).register_hook(print))[0] == "TypeError"


def test_a_hook_removes_itself():
    def program(torch):
        log = []
        x = leaf(torch)
        handle = x.register_hook(lambda grad: (log.append(1), handle.remove())[1])
        (x * 2).sum().backward()
        (x * 2).sum().backward()
        return log

    assert same(program) == [1]


def test_a_hook_registered_before_an_in_place_operation_stays_with_the_old_value():
    def program(torch):
        log = []
        y = leaf(torch) * 1
        y.register_hook(lambda grad: log.append(("before", without_tensors(grad))))
        y.mul_(3)
        y.register_hook(lambda grad: log.append(("after", without_tensors(grad))))
        (y * 2).sum().backward()
        return log

    same(program)


def test_hooks_run_in_autograd_grad_and_in_double_backward():
    def program(torch):
        log = []
        x = leaf(torch)
        y = x * x
        y.register_hook(lambda grad: log.append((without_tensors(grad.detach()), grad.requires_grad, torch.is_grad_enabled())))
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (gg,) = torch.autograd.grad(g.sum(), x)
        return log, gg

    same(program)


def test_a_backward_pass_within_a_hook():
    def program(torch):
        x, w = leaf(torch), leaf(torch)
        y = x * 2
        y.register_hook(lambda grad: (w * grad).sum().backward() if torch.is_grad_enabled() else work())

        def work():
            with torch.enable_grad():
                (w * 3).sum().backward()

        y.sum().backward()
        return x.grad, w.grad

    same(program)


# ---- Errors ----------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("call", [
    lambda torch: torch.ones(2).register_hook(lambda grad: grad),
    lambda torch: (leaf(torch) * 2).register_post_accumulate_grad_hook(lambda t: None),
    lambda torch: torch.ones(2).register_post_accumulate_grad_hook(lambda t: None),
])
def test_registering_a_hook_on_a_tensor_without_gradient_is_an_error(call):
    same(lambda torch: caught(call, torch))


@pytest.mark.parametrize("result", [lambda torch: 3, lambda torch: "text", lambda torch: (torch.ones(3),)])
def test_tensor_hooks_that_return_no_tensor_are_errors(result):
    def program(torch):
        y = leaf(torch) * 2
        y.register_hook(lambda grad: result(torch))
        return caught(y.sum().backward)

    same(program)


@pytest.mark.parametrize("result, error", [
    (gradus.ones(2), "RuntimeError: hook has changed the size of value"),
    (gradus.ones(3, dtype=gradus.float64), "RuntimeError: hook has changed the type of value (was float32 got float64)"),
])
def test_tensor_hooks_that_change_size_or_dtype_are_errors(result, error):
    y = leaf(gradus) * 2
    y.register_hook(lambda grad: result)
    assert "%s: %s" % caught(y.sum().backward) == error


@pytest.mark.parametrize("result", [
    lambda torch: 3, lambda torch: torch.ones(3), lambda torch: [torch.ones(3)], lambda torch: (torch.ones(3),) * 3, lambda torch: (3, 3),
], ids=["number", "tensor", "list", "three", "numbers"])
@pytest.mark.parametrize("pre", [True, False])
def test_invalid_results_of_node_hooks(result, pre):
    def program(torch):
        y = leaf(torch) * leaf(torch)

        def hook(*grads):
            return result(torch)

        y.grad_fn.register_prehook(hook) if pre else y.grad_fn.register_hook(hook)
        return caught(y.sum().backward)

    same(program)


def test_post_accumulate_grad_hooks_must_return_none():
    def program(torch):
        x, y = leaf(torch), leaf(torch)
        x.register_post_accumulate_grad_hook(lambda t: t)
        x.sum().backward()
        y.register_post_accumulate_grad_hook(lambda t: 3)
        return x.grad, caught(y.sum().backward)

    same(program)


@pytest.mark.parametrize("register", ["register_hook", "register_post_accumulate_grad_hook"])
def test_registering_a_hook_that_is_not_callable_is_an_error(register):
    name, text = caught(getattr(leaf(gradus), register), 3)
    assert (name, text) == ("TypeError", f"{register}(): argument 'hook' must be callable, not int")


@pytest.mark.parametrize("place", ["tensor", "before", "after", "leaf", "accumulated"])
def test_an_exception_of_a_hook_is_propagated_unchanged(place):
    def program(torch):
        error = KeyError("of a hook")

        def failing(*args):
            raise error

        x = leaf(torch)
        y = x * 2
        if place == "tensor":
            y.register_hook(failing)
        elif place == "before":
            y.grad_fn.register_prehook(failing)
        elif place == "after":
            y.grad_fn.register_hook(failing)
        elif place == "leaf":
            x.register_hook(failing)
        else:
            x.register_post_accumulate_grad_hook(failing)
        with pytest.raises(KeyError) as info:
            y.sum().backward()
        names = [frame.name for frame in traceback.extract_tb(info.value.__traceback__)]
        return info.value is error, names[-1], torch.is_grad_enabled(), x.grad

    assert same(program)[:2] == (True, "failing")


# ---- Other methods of nodes ----------------------------------------------------------------------------------------------------------
def test_calling_nodes():
    def program(torch):
        x = leaf(torch)
        y, parts = x * x, x.unbind()
        node = parts[0].grad_fn
        ones = torch.ones(3)
        return (y.grad_fn(ones * 2), (x * 2).grad_fn(ones), y.grad_fn(None), node(torch.ones(()), None, torch.ones(())),
                y.grad_fn.next_functions[0][0](ones), x.grad, isinstance(node, torch.autograd.graph.Node))

    same(program)
    node = (leaf(gradus) * 2).grad_fn
    for args in ((), (3,), (gradus.ones(3), gradus.ones(3))):
        with pytest.raises(TypeError):
            node(*args)
    with pytest.raises(RuntimeError, match="invalid gradient at index 0"):
        node(gradus.ones(4))
    with pytest.raises(TypeError, match="not callable"):
        submodule(gradus, "utils.checkpoint").checkpoint(lambda t: t * 2, leaf(gradus)).grad_fn(gradus.ones(3))


@pytest.mark.filterwarnings("ignore")
def test_checkpoint_calls_each_hook_once():
    def program(torch):
        log = []
        w, x = leaf(torch), leaf(torch)
        w.register_hook(lambda grad: log.append(("w", without_tensors(grad))))
        x.register_hook(lambda grad: log.append(("x", without_tensors(grad))))

        def function(x):
            y = x * w
            y.register_hook(lambda grad: log.append(("y", without_tensors(grad))))
            return y * 2

        submodule(torch, "utils.checkpoint").checkpoint(function, x, use_reentrant=False).sum().backward()
        return sorted(log), w.grad, x.grad

    same(program)


def test_a_leaf_given_as_inputs_runs_its_hooks_once():
    def program(torch):
        log = []
        x, w = leaf(torch), leaf(torch)
        x.register_hook(lambda grad: (log.append(without_tensors(grad)), grad * 2)[1])
        (x * w).sum().backward(inputs=[x])
        (x * w).sum().backward(inputs=[w])
        return log, x.grad, w.grad

    assert same(program)[0] == [[1.0, 1.0, 1.0]]


def test_gradcheck_calls_the_function_with_grad_mode_on():
    def program(torch):
        modes = set()

        def function(x):
            modes.add(torch.is_grad_enabled())
            return x * 2

        torch.autograd.gradcheck(function, (torch.ones(2, dtype=torch.float64, requires_grad=True),))
        return modes

    assert program(gradus) == {True}
