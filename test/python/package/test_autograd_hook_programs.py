"""Runs random programs with hooks in Gradus and in PyTorch, and compares which hooks are called, in which order, and with which arguments."""
import random
import warnings

import pytest
from both import same, without_tensors


class Program:
    """Builds a small graph, registers hooks of all kinds and runs backward passes. The hooks may replace gradients, and remove or register hooks."""

    def __init__(self, torch, seed):
        self.torch, self.choose = torch, random.Random(seed)
        self.log, self.handles, self.kept = [], [], []
        self.leaves = [torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, -1.0], requires_grad=True)]
        self.tensors = list(self.leaves)
        for _ in range(self.choose.randint(1, 5)):
            self.tensors.append(self.compute())

    def compute(self):
        a, b = self.choose.choice(self.tensors), self.choose.choice(self.tensors)
        operation = self.choose.randrange(5)
        if operation == 0:
            return a * b
        if operation == 1:
            return a + b
        if operation == 2:
            return a * 2
        if operation == 3:
            return self.torch.cat([a, b]).split(2)[self.choose.randrange(2)]
        return a - b * 3

    def node(self):
        """Returns the node of a random tensor, or one of that node's next_functions."""
        t = self.choose.choice(self.tensors)
        node = t.grad_fn if t.grad_fn is not None else self.torch.autograd.graph.get_gradient_edge(t).node
        if self.choose.random() < 0.2:
            below = [following for following, _ in node.next_functions if following is not None]
            node = self.choose.choice(below) if below else node
        self.kept.append(node)
        return node

    def note(self, name, *values):
        self.log.append((name, *(without_tensors(value) for value in values)))

    def behaviour(self):
        """Returns the name of a random action that a hook performs besides recording its call."""
        return self.choose.choice(["nothing"] * 4 + ["replace", "remove", "register"])

    def react(self, behaviour, number):
        if behaviour == "remove" and self.handles:
            self.handles[number % len(self.handles)].remove()
        elif behaviour == "register" and len(self.handles) < 12:
            # The hook is registered on a tensor that is no leaf. In Gradus a leaf without hooks does not enter the queue of the backward pass, so a
            # hook registered on it during the pass is not called.
            results = self.tensors[len(self.leaves):]
            t = results[number % len(results)]
            name = f"late {len(self.handles)}"
            self.handles.append(t.register_hook(lambda grad: self.note(name, grad)))

    def register(self):
        number, behaviour = self.choose.randrange(100), self.behaviour()
        kind = self.choose.choice(["tensor", "tensor", "pre", "pre", "post", "accumulated", "retain"])
        name = f"{kind} {len(self.handles)}"

        def on_tensor(grad):
            self.note(name, grad)
            self.react(behaviour, number)
            return grad * 2 if behaviour == "replace" else None

        def before(grads):
            self.note(name, grads)
            self.react(behaviour, number)
            return tuple(None if grad is None else grad * 2 for grad in grads) if behaviour == "replace" else None

        def after(inputs, outputs):
            self.note(name, inputs, outputs)
            self.react(behaviour, number)
            return tuple(None if grad is None else grad * 2 for grad in inputs) if behaviour == "replace" and inputs else None

        def accumulated(leaf):
            self.note(name, leaf.grad)
            self.react(behaviour, number)

        if kind == "tensor":
            self.handles.append(self.choose.choice(self.tensors).register_hook(on_tensor))
        elif kind == "pre":
            self.handles.append(self.node().register_prehook(before))
        elif kind == "post":
            self.handles.append(self.node().register_hook(after))
        elif kind == "accumulated":
            self.handles.append(self.choose.choice(self.leaves).register_post_accumulate_grad_hook(accumulated))
        else:
            self.choose.choice(self.tensors).retain_grad()

    def run(self):
        roots = [self.choose.choice(self.tensors) for _ in range(self.choose.randint(1, 3))]
        grads = [self.torch.tensor([1.0, float(i + 1)]) for i in range(len(roots))]
        inputs = [self.choose.choice(self.tensors) for _ in range(self.choose.randint(1, 3))]
        create = self.choose.random() < 0.2
        how = self.choose.randrange(4)
        if how == 0:
            results = self.torch.autograd.grad(roots, inputs, grads, retain_graph=True, create_graph=create, allow_unused=True)
            self.note("results", results)
        elif how == 1:
            self.torch.autograd.backward(roots, grads, retain_graph=True, inputs=inputs)
        else:
            self.torch.autograd.backward(roots, grads, retain_graph=True)

    def result(self):
        for _ in range(self.choose.randint(1, 6)):
            self.register()
        for _ in range(self.choose.randint(1, 3)):
            self.run()
            if self.choose.random() < 0.5:
                self.register()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.log, [without_tensors(t.grad) if t.grad is not None else None for t in self.tensors], [t.retains_grad for t in self.tensors]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batch", range(10))
def test_hooks_are_called_as_in_pytorch(batch):
    for seed in range(batch * 100, batch * 100 + 100):
        try:
            same(lambda torch: Program(torch, seed).result())
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from None
