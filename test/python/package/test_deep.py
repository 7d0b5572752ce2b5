"""Runs programs that nest calls, graphs or objects very deeply. Each program runs on a small stack in a process of its own. It may raise an
exception, but must not crash."""
import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import gc, io, sys
import gradus as torch
from gradus.utils.checkpoint import checkpoint
sys.setrecursionlimit(10**9)

def leaf():
    return torch.ones(1, requires_grad=True)

class Nested(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n, within):
        ctx.n = n
        if within and n > 0:
            Nested.apply(x, n - 1, True)
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        with torch.enable_grad():
            if ctx.n > 0:
                Nested.apply(leaf(), ctx.n - 1, False).sum().backward()
        return grad, None, None

class Link(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.x = x
        return x * 1

class Forwarding(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func(*args)

def nested_list(n):
    items = [1.0]
    for _ in range(n):
        items = [items]
    return items

def nested_backward(kind):
    with torch.enable_grad():
        y = leaf() * 2
        if kind == "tensor":
            y.register_hook(lambda grad: nested_backward(kind))
        elif kind == "pre":
            y.grad_fn.register_prehook(lambda grads: nested_backward(kind))
        elif kind == "post":
            y.grad_fn.register_hook(lambda inputs, outputs: nested_backward(kind))
        y.sum().backward()

def chain(make, n=100000):
    last = leaf()
    for _ in range(n):
        last = make(last)
    del last

def with_attribute(name, last):
    t = leaf()
    setattr(t, name, last)
    return t

def with_hook(last):
    t = leaf()
    t.register_hook(lambda grad, kept=last: grad)
    return t

def cycle():
    first = last = leaf()
    for _ in range(100000):
        last = with_hook(last)
    first.register_hook(lambda grad, kept=last: grad)
    del first, last
    gc.collect()
"""

# Name -> (program that nests calls or objects deeply, exception with which it may end, or None if it must succeed).
PROGRAMS = {
    "hooks": ("nested_backward('tensor')", "RuntimeError"),
    "prehooks": ("nested_backward('pre')", "RuntimeError"),
    "hooks of nodes": ("nested_backward('post')", "RuntimeError"),
    "backward of functions": ("Nested.apply(leaf(), 10**6, False).sum().backward()", "RuntimeError"),
    "forward of functions": ("Nested.apply(leaf(), 10**6, True)", "RuntimeError"),
    "__torch_function__": ("torch.ones(1).as_subclass(Forwarding) + 1", "RecursionError"),
    "__torch_function__ of an attribute": ("torch.ones(1).as_subclass(Forwarding).shape", "RecursionError"),
    "checkpoint": ("f = lambda x, n: checkpoint(f, x, n - 1) if n > 0 else x * 1\n    f(leaf(), 200).sum().backward()", "RuntimeError"),
    "list": ("torch.tensor(nested_list(10**5))", "ValueError"),
    "list of itself": ("items = []\n    items.append(items)\n    torch.tensor(items)", "ValueError"),
    "list of indices": ("torch.ones(3)[nested_list(10**5)]", "ValueError"),
    "sizes": ("torch.ones(nested_list(10**5))", "TypeError"),
    "grad": ("chain(lambda last: with_attribute('grad', last))", None),
    "attributes": ("chain(lambda last: with_attribute('previous', last))", None),
    "closures": ("chain(with_hook)", None),
    "contexts": ("chain(Link.apply)", None),
    "graph": ("chain(lambda last: last * last)", None),
    "views": ("chain(lambda last: last[:])", None),
    "dlpack": ("chain(lambda last: torch.from_dlpack(last.detach()))", None),
    "cycle": ("cycle()", None),
    "saved": ("torch.save(nested_list(300), io.BytesIO())", None),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_deep_nesting_does_not_crash_on_a_small_stack(name):
    program, allowed = PROGRAMS[name]
    text = PRELUDE + textwrap.dedent(f"""
try:
    {program}
except Exception as error:
    print(type(error).__name__)
""")
    done = subprocess.run(["sh", "-c", 'ulimit -s 1024; exec "$0" "$@"', sys.executable, "-c", text], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() in ([allowed], []) if name == "checkpoint" else done.stdout.split() == ([allowed] if allowed else [])
