"""Tests the lifetimes of hooks, contexts and graphs: the garbage collector finds cycles, nothing leaks, and threads run in parallel."""
import gc
import sys
import threading
import weakref

import pytest
from both import gradus


class Thing:
    """An object whose deletion can be observed."""


class Keep(gradus.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.thing = Thing()
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def leaf():
    return gradus.ones(4, requires_grad=True)


def fails(*args):
    raise KeyError("of a hook")


# ---- Cycles: each function returns an object in a cycle that the collector must free --------------------------------------------
def through_a_leaf():
    x, thing = leaf(), Thing()
    x.register_hook(lambda grad: (x, thing))
    return thing


def through_a_post_accumulate_grad_hook():
    x, thing = leaf(), Thing()
    x.register_post_accumulate_grad_hook(lambda t: (x, thing))
    return thing


def through_a_result_tensor():
    y, thing = leaf() * 2, Thing()
    y.register_hook(lambda grad: (y, thing))
    return thing


def through_a_graph_of_several_nodes():
    y, thing, held = leaf() * 2, Thing(), []
    y.register_hook(lambda grad: (held, thing))
    held.append((y * 3).exp().sum())
    return thing


def through_a_node():
    y, thing = leaf() * 2, Thing()
    node = y.grad_fn
    node.register_prehook(lambda grads: (node, thing))
    return thing


def through_node_metadata():
    node, thing = (leaf() * 2).grad_fn, Thing()
    node.metadata["node"] = node, thing
    return thing


def through_a_context():
    y = Keep.apply(leaf())
    y.grad_fn.y = y
    return y.grad_fn.thing


def through_a_context_further_down_the_graph():
    y = Keep.apply(leaf())
    ctx, z = y.grad_fn, y.exp()
    ctx.z = z
    return ctx.thing


def through_a_context_that_outlives_its_tensor():
    y = Keep.apply(leaf())
    ctx = y.grad_fn
    del y
    assert ctx.next_functions[0][0].name() == "torch::autograd::AccumulateGrad"
    return ctx.thing


def through_an_attribute_of_a_tensor():
    y, thing = leaf() * 2, Thing()
    y.held = y, thing
    return thing


CYCLES = [through_a_leaf, through_a_post_accumulate_grad_hook, through_a_result_tensor, through_a_graph_of_several_nodes, through_a_node,
          through_node_metadata, through_a_context, through_a_context_further_down_the_graph, through_a_context_that_outlives_its_tensor,
          through_an_attribute_of_a_tensor]


@pytest.mark.parametrize("cycle", CYCLES, ids=lambda cycle: cycle.__name__)
def test_reference_cycles_through_the_graph_are_collected(cycle, no_collector):
    thing = weakref.ref(cycle())
    assert thing() is not None
    gc.collect()
    assert thing() is None


def test_a_context_with_references_is_not_collected(no_collector):
    x, log = leaf(), []
    y = Keep.apply(x * 2)
    y.register_hook(lambda grad: log.append(1))
    thing, z = weakref.ref(y.grad_fn.thing), y * 2
    del y
    gc.collect()
    assert thing() is not None
    z.sum().backward()
    gc.collect()
    assert log == [1] and x.grad.tolist() == [8] * 4


def test_contexts_are_freed_with_their_graph(no_collector):
    y = Keep.apply(leaf())
    thing, ctx = weakref.ref(y.grad_fn.thing), weakref.ref(y.grad_fn)
    y = y.exp().sum()
    assert thing() is not None
    y.backward()
    assert thing() is not None
    del y
    assert thing() is None and ctx() is None


def test_hooks_are_freed_with_the_object_they_are_registered_on(no_collector):
    def hook_with(thing):
        return lambda *args: thing and None

    things = [Thing() for _ in range(5)]
    x = leaf()
    y = x * 2
    x.register_hook(hook_with(things[0]))
    y.register_hook(hook_with(things[1]))
    y.grad_fn.register_hook(hook_with(things[2]))
    x.register_post_accumulate_grad_hook(hook_with(things[3]))
    removed = y.register_hook(hook_with(things[4]))
    refs = [weakref.ref(thing) for thing in things]
    things.clear()
    removed.remove()
    assert [ref() is None for ref in refs] == [False, False, False, False, True]
    y.sum().backward()
    del y
    assert [ref() is None for ref in refs] == [False, True, True, False, True]
    del x
    assert all(ref() is None for ref in refs)


def test_a_finalizer_uses_tensors_after_a_failed_backward_pass():
    """A finalizer that runs when a context is freed may use tensors, even if the backward pass has failed."""
    seen = []

    class Last:
        def __del__(self):
            seen.append((gradus.ones(2) + 1).tolist())

    def failing():
        y = leaf() * 2
        last = Last()
        y.register_hook(lambda grad: (last, fails()))
        y.sum().backward()

    with pytest.raises(KeyError):
        failing()
    gc.collect()
    assert seen == [[2, 2]]


# ---- Leaks ---------------------------------------------------------------------------------------------------------------------------
def run_backward(x):
    (x * x).sum().backward()
    x.grad = None


def run_grad(x):
    (g,) = gradus.autograd.grad((x * x).sum(), x, create_graph=True)
    gradus.autograd.grad(g.sum(), x, materialize_grads=True)


def run_hooks(x):
    y = x * 2
    y.register_hook(lambda grad: grad * 1)
    y.retain_grad()
    y.grad_fn.register_hook(lambda inputs, outputs: None)
    with x.register_hook(lambda grad: None), x.register_post_accumulate_grad_hook(lambda t: None):
        y.sum().backward()
    x.grad = None


def must_fail(call, *arguments):
    try:
        call(*arguments)
    except (KeyError, RuntimeError, TypeError):
        return
    raise AssertionError("no error")


def run_failing_hook(x):
    y = x * 2
    y.register_hook(fails)
    must_fail(y.sum().backward)


def run_function(x):
    y = Keep.apply(x)
    y.grad_fn.next_functions
    y.sum().backward()
    with gradus.no_grad():
        Keep.apply(x)
    x.grad = None


def run_failing_function(x):
    for arguments in ((), (x, x), (3,)):
        must_fail(Keep.apply, *arguments)


def run_errors(x):
    must_fail(x.backward)
    must_fail(gradus.autograd.grad, x.sum(), [x, 3])
    must_fail(x.sum().backward, None, None, False, [])


@pytest.mark.parametrize("step", [run_backward, run_grad, run_hooks, run_failing_hook, run_function, run_failing_function, run_errors],
                         ids=lambda step: step.__name__)
def test_backward_passes_leak_no_memory(step, no_collector):
    x = leaf()
    for _ in range(50):
        step(x)
    before = sys.getallocatedblocks(), len(gc.get_objects())
    for _ in range(10000 if step in (run_backward, run_grad, run_hooks, run_function) else 1000):
        step(x)
    after = sys.getallocatedblocks(), len(gc.get_objects())
    assert after[0] - before[0] < 100 and after[1] - before[1] < 20


# ---- Threads ---------------------------------------------------------------------------------------------------------------------------
def together(work, n):
    errors = []

    def guarded(i):
        try:
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_backward_in_threads_with_separate_graphs():
    def work(i):
        for _ in range(100):
            x, log = leaf(), []
            y = Keep.apply(x * 2)
            y.register_hook(lambda grad: log.append(1))
            (y * y).sum().backward()
            assert log == [1] and x.grad.tolist() == [32] * 4
            z = x * 1
            z.register_hook(fails)
            with pytest.raises(KeyError):
                z.sum().backward()
            y.grad_fn.y = y

    together(work, 6)


def test_backward_in_threads_through_one_graph():
    x, log = leaf(), []
    y = Keep.apply(x)
    y.register_hook(lambda grad: log.append(1))

    def work(i):
        for _ in range(100):
            y.sum().backward(retain_graph=True)

    together(work, 4)
    assert x.grad.tolist() == [800] * 4 and len(log) == 400


def test_garbage_collection_during_backward_passes():
    stop = threading.Event()

    def work(i):
        if i == 0:
            while not stop.is_set():
                gc.collect()
            return
        try:
            for _ in range(50):
                y = leaf()
                for _ in range(20):
                    y = Keep.apply(y)
                    y.register_hook(lambda grad, y=y: None)
                y.sum().backward()
        finally:
            stop.set()

    gc.freeze()  # excludes existing objects from garbage collection; long collections hold the GIL, so the other threads would wait
    together(work, 3)
    gc.unfreeze()
