"""Several threads use the same tensors in every possible way, in random order. Nothing may crash. Only those errors are allowed that occur when one
thread changes a tensor while another uses it. GRADUS_TEST_SECONDS sets the duration."""
import os
import random
import subprocess
import sys
import threading
import time

import gradus as torch
import pytest
from both import saving_function

SECONDS = float(os.environ.get("GRADUS_TEST_SECONDS", 1))
THREADS = 8
KNOWN = ("modified by an inplace operation", "through the graph a second time", "does not require grad", "leaf Variable that requires grad",
         "doesn't require gradient", "has requires_grad=False", "leaf variables", "must match the size", "invalid gradient", "shape",
         "no grad accumulator", "size", "cannot be broadcast")
SMALL, LARGE = (5,), (200, 300)  # operators on tensors of the size LARGE release the GIL


class Shared:
    def __init__(self):
        self.leaves = [torch.ones(size, requires_grad=True) for size in (SMALL, LARGE)]
        self.plain = [torch.ones(size) for size in (SMALL, LARGE)]
        self.graphs = [self.graph(0), self.graph(1)]
        self.views = [graph[1:3] for graph in self.graphs]

    def graph(self, i):
        return (self.leaves[i] * self.plain[i]).exp()


def set_data(shared, i):
    """Replaces the memory of a tensor, sometimes with other sizes, while other threads read it."""
    shared.leaves[i].data = torch.ones((3, 2) if random.random() < 0.2 else shared.leaves[i].shape)
    shared.leaves[i].data = torch.ones(SMALL if i == 0 else LARGE)


def set_gradient(shared, i):
    leaf = shared.leaves[i]
    leaf.grad = random.choice([None, torch.ones(leaf.shape)])


def read_gradient(shared, i):
    grad = shared.leaves[i].grad
    return grad if grad is None else (grad + 1, grad.sum().item())


def clear_gradient(shared, i):
    grad = shared.leaves[i].grad
    if grad is not None:
        grad.zero_()


def accumulate(shared, i):
    leaf = shared.leaves[i]
    (leaf * leaf).sum().backward(create_graph=random.random() < 0.1)


def run_graph(shared, i):
    shared.graphs[i].sum().backward(retain_graph=random.random() < 0.8)


def ask_gradient(shared, i):
    torch.autograd.grad((shared.graphs[i] * shared.leaves[i]).sum(), shared.leaves[i], retain_graph=True, allow_unused=True)


def new_graph(shared, i):
    shared.graphs[i] = shared.graph(i)


def new_view(shared, i):
    shared.views[i] = shared.graphs[i][1:3]


def write_view(shared, i):
    shared.views[i].mul_(2)


def use_view(shared, i):
    repr(shared.views[i].grad_fn)
    shared.views[i].sum().backward(retain_graph=True)


def write_graph(shared, i):
    graph = shared.graphs[i]
    random.choice([graph.zero_, lambda: graph.add_(shared.leaves[i]), lambda: graph.copy_(shared.plain[i])])()


def write_leaf(shared, i):
    with torch.no_grad():
        shared.leaves[i].fill_(0.5).add_(shared.plain[i])


def toggle(shared, i):
    shared.plain[i].requires_grad_(random.random() < 0.5)


def hook_leaf(shared, i):
    leaf = shared.leaves[i]
    hooks = [leaf.register_hook(lambda grad: grad * 1), leaf.register_post_accumulate_grad_hook(lambda t: t.grad)]
    accumulate(shared, i)
    for hook in hooks:
        hook.remove()


def hook_graph(shared, i):
    graph = shared.graphs[i]
    hooks = [graph.register_hook(lambda grad: grad)]
    if graph.grad_fn is not None:
        hooks += [graph.grad_fn.register_prehook(lambda grads: grads), graph.grad_fn.register_hook(lambda inputs, outputs: None)]
    graph.retain_grad()
    run_graph(shared, i)
    repr(graph.grad)
    for hook in hooks:
        hook.remove()


def change_in_hook(shared, i):
    """Runs backward through a graph with a hook. The hook replaces the memory of a leaf."""
    y = shared.leaves[i] * 2
    y.register_hook(lambda grad: set_data(shared, i))
    y.sum().backward()


def resize(shared, i):
    t = shared.plain[i]
    sizes = t.shape
    with torch.no_grad():
        t.detach_().requires_grad_(False).resize_(7, 3).resize_(sizes).fill_(1)


def detach(shared, i):
    shared.graphs[i].detach_()
    new_graph(shared, i)


Double = saving_function(torch)


def custom(shared, i):
    Double.apply(shared.leaves[i]).sum().backward()


def compute(shared, i):
    (shared.plain[i] + shared.leaves[i].detach()).sum().item()


ACTIONS = [set_data, set_gradient, read_gradient, clear_gradient, accumulate, run_graph, ask_gradient, new_graph, new_view, write_view, use_view, write_graph,
           write_leaf, toggle, hook_leaf, hook_graph, change_in_hook, resize, detach, custom, compute]


def work(shared, actions, seed, end, failures):
    choose = random.Random(seed)
    while time.monotonic() < end and not failures:
        action = choose.choice(actions)
        try:
            action(shared, choose.randrange(2))
        except (RuntimeError, IndexError) as error:
            if not any(known in str(error) for known in KNOWN):
                failures.append((action.__name__, repr(error)))
        except Exception as error:  # noqa: BLE001
            failures.append((action.__name__, repr(error)))


def run(actions, seconds):
    shared, failures, end = Shared(), [], time.monotonic() + seconds
    threads = [threading.Thread(target=work, args=(shared, actions, seed, end, failures)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


@pytest.mark.threads
@pytest.mark.filterwarnings("ignore")
def test_all_actions_in_eight_threads():
    run(ACTIONS, SECONDS)


@pytest.mark.threads
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("change", [set_data, set_gradient, resize, detach])
def test_one_kind_of_change_during_backward_passes(change):
    run([change, accumulate, run_graph, compute], SECONDS / 4)


@pytest.mark.forks
def test_a_forked_process_works_while_threads_of_the_parent_compute():
    """The parent forks while its threads are inside calls. These threads do not exist in the child, which must work all the same."""
    program = """
import os, threading
import gradus as torch
x = torch.ones(1000, 1000, requires_grad=True)
stop = False
def loop():
    while not stop:
        (x * x).sum().backward()
threads = [threading.Thread(target=loop) for _ in range(2)]
for t in threads: t.start()
for _ in range(5):
    child = os.fork()
    if child == 0:
        x.data = torch.ones(3)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop = True
for t in threads: t.join()
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=120, capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
