"""Compares backward, grad and the nodes of the graph with PyTorch."""
import sys

import pytest
from both import caught, gradus, same, submodule
from conftest import BUILD, ROOT, run


def leaf(torch, *values):
    return torch.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


# ---- backward ----------------------------------------------------------------------------------------------------------------
def test_backward_accumulates():
    def program(torch):
        x = leaf(torch)
        (x * x).sum().backward()
        (x * x).sum().backward()
        return x.grad

    assert same(program) == [4, 8, 12]


@pytest.mark.parametrize("call", [
    lambda torch, y: y.backward(torch.ones(3)),
    lambda torch, y: y.backward(gradient=torch.ones(3), retain_graph=True),
    lambda torch, y: y.backward(torch.ones(3), None, True),
    lambda torch, y: torch.autograd.backward(y, torch.ones(3)),
    lambda torch, y: torch.autograd.backward([y, y.sum()], [torch.ones(3), None]),
    lambda torch, y: torch.autograd.backward((y, y), grad_tensors=(torch.ones(3), torch.ones(3))),
])
@pytest.mark.filterwarnings("ignore:Using backward")
def test_forms_of_calling_backward(call):
    def program(torch):
        x = leaf(torch)
        call(torch, x * x)
        grad, x.grad = x.grad.detach(), None
        return grad

    same(program)


def test_backward_with_inputs():
    def program(torch):
        x, w = leaf(torch), leaf(torch)
        h = x * w
        (h * h).sum().backward(inputs=[w], retain_graph=True)
        first = x.grad, w.grad.tolist()
        (h * h).sum().backward(inputs=h)
        return first, x.grad, w.grad, h.grad

    same(program)


WARNS = """
import warnings, gradus
x = gradus.ones(2, requires_grad=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for i in range(2):
        (x * x).sum().backward(create_graph=True)
        assert x.grad.requires_grad
        x.grad = None
assert len(caught) == 1 and "reference cycle" in str(caught[0].message)
"""


def test_backward_with_create_graph_warns_once_of_a_reference_cycle():
    result = run([sys.executable, "-c", WARNS], ROOT, PYTHONPATH=str(BUILD / "python"))
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("call", [
    lambda torch, x: torch.ones(2).backward(),
    lambda torch, x: torch.ones(2).sum().backward(),
    lambda torch, x: (x * x).backward(),
    lambda torch, x: torch.autograd.backward([x.sum(), x], [None]),
    lambda torch, x: torch.autograd.backward(x.sum(), inputs=[]),
    lambda torch, x: torch.autograd.grad(x.sum(), []),
    lambda torch, x: torch.autograd.grad(x.sum(), torch.ones(1)),
    lambda torch, x: torch.autograd.grad(x.sum(), torch.ones(1, requires_grad=True)),
    lambda torch, x: torch.autograd.grad(x.sum(), x, materialize_grads=True, allow_unused=False),
    lambda torch, x: torch.ones(2).retain_grad(),
    lambda torch, x: torch.autograd.graph.get_gradient_edge(torch.ones(1)),
])
def test_errors_of_backward_are_those_of_pytorch(call):
    same(lambda torch: caught(call, torch, leaf(torch)))


@pytest.mark.parametrize("call, error", [
    (lambda x: x.sum().backward(3), "TypeError: gradients can be either Tensors or None, but got int"),
    (lambda x: x.sum().backward(inputs=3), "TypeError: inputs must be a Tensor or a sequence of Tensors, but got int"),
    (lambda x: x.sum().backward(inputs=[3]), "TypeError: inputs must be a Tensor or a sequence of Tensors, but got int"),
    (lambda x: x.sum().backward(None, gradient=None), "TypeError: backward() got multiple values for argument 'gradient'"),
    (lambda x: x.sum().backward(graph=True), "TypeError: backward() got an unexpected keyword argument 'graph'"),
    (lambda x: x.sum().backward(1, 2, 3, 4, 5), "TypeError: backward() takes from 0 to 4 positional arguments but 5 were given"),
    (lambda x: (x * x).backward(gradus.ones(2)),
     "RuntimeError: Mismatch in shape: grad_output[0] has a shape of [2] and output[0] has a shape of [3]."),
    (lambda x: x.sum().backward(inputs=[gradus.ones(2)]), "RuntimeError: One of the differentiated Tensors does not require grad"),
    (lambda x: gradus.autograd.backward(3), "TypeError: tensors must be a Tensor or a sequence of Tensors, but got int"),
    (lambda x: gradus.autograd.backward(), 'TypeError: backward() missing 1 required positional arguments: "tensors"'),
    (lambda x: gradus.autograd.grad(x.sum(), x, is_grads_batched=True),
     "ValueError: vmap: Expected at least one Tensor to vmap over"),
])
def test_errors_of_backward_with_texts_of_gradus(call, error):
    assert "%s: %s" % caught(call, leaf(gradus)) == error


def test_a_second_backward_through_a_freed_graph_is_an_error():
    def program(torch):
        x = leaf(torch)
        y = (x * x).sum()
        y.backward(retain_graph=True)
        y.backward()
        name, text = caught(y.backward)
        return name, text[text.index("Trying"):], x.grad

    same(program)


# ---- grad ---------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("call", [
    lambda torch, x, w, u: torch.autograd.grad((x * w).sum(), x),
    lambda torch, x, w, u: torch.autograd.grad((x * w).sum(), [x, w]),
    lambda torch, x, w, u: torch.autograd.grad(x * w, (x, w), torch.ones(3)),
    lambda torch, x, w, u: torch.autograd.grad([x * w, (x * x).sum()], (x, w), [torch.ones(3), None]),
    lambda torch, x, w, u: torch.autograd.grad((x * w).sum(), [x, u], allow_unused=True),
    lambda torch, x, w, u: torch.autograd.grad((x * w).sum(), [x, u], materialize_grads=True),
    lambda torch, x, w, u: torch.autograd.grad((x * w).sum(), [x, x, w, w, x, w]),
])
def test_autograd_grad(call):
    def program(torch):
        x, w, u = leaf(torch), leaf(torch, 4.0, 5.0, 6.0), leaf(torch)
        grads = call(torch, x, w, u)
        return grads, x.grad

    same(program)


def test_a_leaf_whose_requires_grad_is_cleared_after_recording_gets_no_gradient():
    def program(torch):
        x, y, called = leaf(torch), leaf(torch), []
        x.register_post_accumulate_grad_hook(lambda x: called.append(x.grad))
        loss = (x * y).sum()
        x.requires_grad_(False)
        loss.backward()
        return x.grad, y.grad, called
    same(program)


def test_autograd_grad_with_create_graph():
    def program(torch):
        x = leaf(torch)
        (g,) = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
        (gg,) = torch.autograd.grad(g.sum(), x, create_graph=True)
        (ggg,) = torch.autograd.grad(gg.sum(), x)
        return g.detach(), gg.detach(), ggg, g.requires_grad, ggg.requires_grad

    same(program)


def test_only_inputs_is_deprecated():
    def program(torch):
        x = leaf(torch)
        with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
            return torch.autograd.grad((x * x).sum(), x, only_inputs=False)

    same(program)


# ---- Nodes -----------------------------------------------------------------------------------------------------------------------
def test_attributes_of_nodes():
    def program(torch):
        x = leaf(torch)
        y = x * 2
        z = (y + 1).exp()
        node = z.grad_fn
        below, at = node.next_functions[0]
        seen = [x.grad_fn, node.name(), type(node).__name__, repr(node).split(" at ")[0], at, below.name()]
        multiplication = below.next_functions[0][0]
        accumulator = multiplication.next_functions[0][0]
        seen += [accumulator.name(), accumulator.variable is x, multiplication.next_functions[1:], accumulator.next_functions]
        seen += [z.grad_fn is z.grad_fn, hash(node) == hash(z.grad_fn), node == below, isinstance(node, torch.autograd.graph.Node)]
        node.metadata["key"] = 1
        seen += [node.metadata, caught(lambda: node.variable), isinstance(3, torch.autograd.graph.Node)]
        return seen

    same(program)


def test_a_node_outlives_its_tensor():
    def program(torch):
        x = leaf(torch)
        node = (x * 2).exp().grad_fn
        return node.next_functions[0][0].next_functions[0][0].variable

    same(program)


def test_get_gradient_edge():
    def program(torch):
        x = leaf(torch)
        a, b = (x * 2)[:2].unbind()
        edges = [torch.autograd.graph.get_gradient_edge(t) for t in (x, a, b)]
        return [(edge.node.name(), edge.output_nr) for edge in edges], edges[1].node is b.grad_fn

    same(program)


def test_grad_fn_returns_the_same_object_for_each_of_many_nodes():
    x = leaf(gradus)
    tensors = [x * i for i in range(1000)]
    nodes = [t.grad_fn for t in tensors]
    assert all(t.grad_fn is node for t, node in zip(tensors, nodes))
    del nodes[::2]
    assert all(t.grad_fn is node for t, node in zip(tensors[1::2], nodes))
    assert all(t.grad_fn is not None for t in tensors)


def test_autograd_variable():
    def program(torch):
        Variable = torch.autograd.Variable
        v = Variable(torch.ones(2), requires_grad=True)
        return isinstance(v, Variable), isinstance(3, Variable), v.requires_grad

    same(program)
    assert caught(gradus.autograd.graph.saved_tensors_hooks, abs, abs)[0] == "NotImplementedError"
    assert caught(gradus.autograd.graph.register_multi_grad_hook, [], print)[0] == "NotImplementedError"


def test_backward_through_a_graph_of_100000_nodes():
    x = leaf(gradus)
    y = x
    for _ in range(100000):
        y = y + x
    y.sum().backward()
    assert x.grad.tolist() == [100001] * 3
    del y
    assert submodule(gradus, "autograd.graph").get_gradient_edge(x).node.name() == "torch::autograd::AccumulateGrad"
