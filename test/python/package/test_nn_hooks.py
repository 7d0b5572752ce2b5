"""Checks that the order, arguments, results and errors of hooks of modules are PyTorch's."""
from importlib import import_module

from nn_programs import attempt, same


def common(t):
    return import_module(f"{t.__name__}.nn.modules.module")


def double(t):
    class Double(t.nn.Module):
        def forward(self, x, *, scale=2.0):
            if x is None:
                raise ValueError("nothing to double")
            return x * scale

    return Double()


@same
def test_forward_hooks(t):
    net, log = double(t), []
    x = t.ones(2)
    first = net.register_forward_hook(lambda module, args, output: log.append(("first", args, output)))
    net.register_forward_hook(lambda module, args, output: output + 1, prepend=True)
    with_kwargs = net.register_forward_hook(lambda module, args, kwargs, output: log.append(kwargs), with_kwargs=True)
    pre = net.register_forward_pre_hook(lambda module, args: args[0] * 10)
    net.register_forward_pre_hook(lambda module, args, kwargs: (args, {"scale": 5.0}), with_kwargs=True, prepend=True)
    yield net(x), net(x, scale=3.0), log
    pre.remove()
    first.remove()
    first.remove()
    with with_kwargs:
        yield net(x)
    log.clear()
    yield net(x), log
    for hooks in (net._forward_hooks, net._forward_pre_hooks):
        hooks.clear()
    yield net(x)


@same
def test_wrong_results_of_forward_pre_hooks(t):
    net = double(t)
    net.register_forward_pre_hook(lambda module, args, kwargs: 3, with_kwargs=True)
    yield attempt(net, t.ones(1))


@same
def test_forward_hooks_with_always_call(t):
    net, log = double(t), []
    net.register_forward_hook(lambda module, args, output: log.append("never"))
    net.register_forward_hook(lambda module, args, output: log.append(("always", output)), always_call=True)
    net.register_forward_hook(lambda module, args, kwargs, output: 1 / 0, always_call=True, with_kwargs=True)
    yield attempt(net, None), log
    log.clear()
    yield attempt(net, t.ones(1)), log


@same
def test_global_module_hooks(t):
    net, log, modules = t.nn.Sequential(double(t), double(t)), [], common(t)
    handles = [
        modules.register_module_forward_pre_hook(lambda module, args: log.append(("pre", type(module).__name__))),
        modules.register_module_forward_hook(lambda module, args, output: log.append(("post", type(module).__name__, output))),
        modules.register_module_full_backward_pre_hook(lambda module, grads: log.append(("backward pre", type(module).__name__, grads))),
        modules.register_module_full_backward_hook(lambda module, grads, out: log.append(("backward", type(module).__name__, grads, out))),
    ]
    net[0].register_forward_hook(lambda module, args, output: log.append("own"))
    net(t.ones(1, requires_grad=True)).sum().backward()
    yield log
    for handle in handles:
        handle.remove()
    log.clear()
    net(t.ones(1, requires_grad=True)).sum().backward()
    yield log, attempt(modules.register_module_backward_hook, print)


@same
def test_hooks_on_registration_of_parameters_buffers_and_modules(t):
    modules, log = common(t), []
    handles = [
        modules.register_module_parameter_registration_hook(lambda module, name, value: log.append(name)),
        modules.register_module_buffer_registration_hook(lambda module, name, value: t.ones(2)),
        modules.register_module_module_registration_hook(lambda module, name, value: t.nn.Tanh()),
    ]
    net = t.nn.Module()
    net.p = t.nn.Parameter(t.zeros(1))
    net.register_buffer("b", t.zeros(1))
    net.m = t.nn.ReLU()
    for handle in handles:
        handle.remove()
    net.q = t.nn.Parameter(t.zeros(1))
    yield log, net.b, net.m


@same
def test_full_backward_hooks(t):
    net, log = t.nn.Linear(2, 2), []
    t.nn.init.ones_(net.weight)
    net.register_full_backward_hook(lambda module, grad_input, grad_output: log.append((grad_input, grad_output)))
    net.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 10,))
    net.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 2,))
    x = t.ones(1, 2, requires_grad=True)
    net(x).sum().backward()
    yield log, x.grad, net.weight.grad
    with t.no_grad():
        yield net(x)
    net(x.detach())
    yield len(log)


@same
def test_full_backward_hooks_of_modules_with_several_inputs_and_outputs(t):
    class Several(t.nn.Module):
        def forward(self, x, name, y):
            return x * 2, name, y.detach(), x + y

    net, log = Several(), []
    net.register_full_backward_hook(lambda module, grad_input, grad_output: log.append((grad_input, grad_output)))
    x, y = t.ones(2, requires_grad=True), t.full((2,), 3.0, requires_grad=True)
    outputs = net(x, "name", y)
    (outputs[0].sum() + (outputs[3] * 5).sum()).backward()
    yield log, x.grad, y.grad, outputs[1], [output.requires_grad for output in (outputs[0], outputs[2], outputs[3])]


@same
def test_full_backward_hooks_if_no_input_requires_a_gradient(t):
    net, log = t.nn.Linear(2, 1), []
    handle = net.register_full_backward_hook(lambda module, grad_input, grad_output: log.append((grad_input, grad_output)))
    yield attempt(lambda: net(t.ones(1, 2)).sum().backward()), log
    handle.remove()
    net.register_full_backward_hook(lambda module, grad_input, grad_output: (t.ones(1),))
    yield attempt(lambda: net(t.ones(1, 2)).sum().backward())


@same
def test_wrong_results_of_backward_hooks(t):
    x = t.ones(1, 2, requires_grad=True)
    net = t.nn.Linear(2, 1)
    handle = net.register_full_backward_hook(lambda module, grad_input, grad_output: (None, None))
    yield attempt(lambda: net(x).sum().backward())
    handle.remove()
    net.register_full_backward_pre_hook(lambda module, grad_output: (None, None))
    yield attempt(lambda: net(x).sum().backward())


@same
def test_full_backward_hook_of_a_module_that_returns_a_dict(t):
    class Named(t.nn.Module):
        def forward(self, x):
            return {"y": x * 2}

    net = Named()
    net.register_full_backward_hook(lambda *args: None)
    yield attempt(net, t.ones(1, requires_grad=True))


@same
def test_legacy_backward_hooks(t):
    net, log = double(t), []
    net.register_backward_hook(lambda module, grad_input, grad_output: log.append((type(module).__name__, grad_output)))
    net(t.ones(2, requires_grad=True)).sum().backward()
    yield log, attempt(net.register_full_backward_hook, print)
    net = double(t)
    net.register_full_backward_hook(print)
    yield attempt(net.register_backward_hook, print)


@same
def test_copies_of_modules_keep_hooks(t):
    import copy

    net = double(t)
    net.register_forward_hook(shift)
    yield copy.deepcopy(net)(t.ones(1)), copy.copy(net)(t.ones(1))


def shift(module, args, output):
    return output + 100
