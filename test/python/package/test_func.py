"""Compares torch.func and vmap with PyTorch: values, nested structures of results, randomness modes, error texts."""
import functools
from collections import OrderedDict, namedtuple

import pytest
from both import caught, gradus, needs_torch, same, submodule, without_tensors
from oracle import torch as oracle

Pair = namedtuple("Pair", "left right")


def func(torch):
    return submodule(torch, "func")


def is_close(ours, theirs):
    """True if two results have the same structure and nearly the same numbers."""
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys()
        return all(is_close(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, (list, tuple)):
        assert type(ours) is type(theirs) and len(ours) == len(theirs)
        return all(is_close(a, b) for a, b in zip(ours, theirs))
    return ours == pytest.approx(theirs, rel=2e-5, abs=2e-6, nan_ok=True) if isinstance(ours, float) else ours == theirs


def listed(value):
    """Returns a copy of `value`, which may nest dictionaries, tuples and lists, with each tensor replaced by a list."""
    if isinstance(value, dict):
        return {key: listed(item) for key, item in value.items()}
    if hasattr(value, "_fields"):
        return tuple(listed(item) for item in value)
    return type(value)(listed(item) for item in value) if isinstance(value, (list, tuple)) else without_tensors(value)


def agree(program):
    """Checks that the results of program(module) for both libraries agree up to rounding, or that both raise the same error."""
    needs_torch()
    results = []
    for torch in (gradus, oracle):
        try:
            results.append(listed(program(torch)))
        except Exception as error:
            results.append((type(error).__name__, str(error).replace("gradus", "torch").splitlines()[0]))
    assert is_close(*results), f"gradus: {results[0]}\ntorch:  {results[1]}"
    return results[0]


def numbers(torch, *sizes):
    n = 1
    for size in sizes:
        n *= size
    return (torch.arange(n, dtype=torch.float32) * 0.37 - 1).reshape(sizes)


# ---- Derivatives --------------------------------------------------------------------------------------------------------------------------


DERIVATIVES = {
    "grad": lambda torch, f: f.grad(lambda x: (x ** 3).sum())(numbers(torch, 3)),
    "grad of grad": lambda torch, f: f.grad(f.grad(lambda x: x.sin()))(torch.tensor(0.5)),
    "three times": lambda torch, f: f.grad(f.grad(f.grad(lambda x: x ** 5)))(torch.tensor(0.5)),
    "argnums": lambda torch, f: f.grad(lambda x, y: (x * y * y).sum(), argnums=1)(numbers(torch, 3), numbers(torch, 3)),
    "several argnums": lambda torch, f: f.grad(lambda x, k, y: (x * y * y).sum() * k, argnums=(2, 0))(numbers(torch, 3), 2, numbers(torch, 3)),
    "negative argnum": lambda torch, f: f.grad(lambda x, y: (x * y * y).sum(), argnums=-1)(numbers(torch, 3), numbers(torch, 3)),
    "nested": lambda torch, f: f.grad(lambda d: (d["a"][0] * d["b"]).sum())({"a": [numbers(torch, 3)], "b": numbers(torch, 3)}),
    "unused": lambda torch, f: f.grad(lambda d: d[0].sum())((numbers(torch, 3), numbers(torch, 2))),
    "aux": lambda torch, f: f.grad(lambda x: (x.sum() ** 2, {"y": x * 2}), has_aux=True)(numbers(torch, 3)),
    "keywords": lambda torch, f: f.grad(lambda x, power: (x ** power).sum())(numbers(torch, 3), power=2),
    "grad_and_value": lambda torch, f: f.grad_and_value(lambda x: (x ** 3).sum())(numbers(torch, 3)),
    "grad_and_value with aux": lambda torch, f: f.grad_and_value(lambda x: (x.sum(), x * 2), has_aux=True)(numbers(torch, 3)),
    "vjp": lambda torch, f: f.vjp(lambda x, y: (x * y, x.sum()), numbers(torch, 3), numbers(torch, 3))[1]((torch.ones(3), torch.tensor(2.0))),
    "vjp twice": lambda torch, f: [f.vjp(torch.sin, numbers(torch, 3))[1](v) for v in (torch.ones(3), numbers(torch, 3))],
    "vjp of a dict": lambda torch, f: f.vjp(lambda x: {"s": x.sin(), "c": [x.cos()]}, numbers(torch, 3))[1]({"s": torch.ones(3), "c": [torch.ones(3)]}),
    "vjp with aux": lambda torch, f: f.vjp(lambda x: (x.sin(), x * 2), numbers(torch, 3), has_aux=True)[::2],
    "vjp of a constant": lambda torch, f: f.vjp(lambda x: torch.ones(2), numbers(torch, 3))[1](torch.ones(2)),
    "jvp": lambda torch, f: f.jvp(lambda x, y: x * y, (numbers(torch, 3), numbers(torch, 3)), (torch.ones(3), numbers(torch, 3))),
    "jvp of a dict": lambda torch, f: f.jvp(lambda d: {"y": d["x"].sin()}, ({"x": numbers(torch, 3)},), ({"x": torch.ones(3)},)),
    "jvp with aux": lambda torch, f: f.jvp(lambda x: (x * x, x + 1), (numbers(torch, 3),), (torch.ones(3),), has_aux=True),
    "jvp of a constant": lambda torch, f: f.jvp(lambda x: torch.ones(2), (numbers(torch, 3),), (torch.ones(3),)),
    "jvp of grad": lambda torch, f: f.jvp(f.grad(lambda x: (x ** 3).sum()), (numbers(torch, 3),), (torch.ones(3),)),
    "grad of jvp": lambda torch, f: f.grad(lambda x: f.jvp(torch.sin, (x,), (torch.ones(3),))[1].sum())(numbers(torch, 3)),
    "grad of jvp of grad": lambda torch, f: f.grad(lambda t: (f.jvp(f.grad(lambda x: (x ** 3).sum()), (numbers(torch, 3),), (t,))[1] ** 2).sum())(numbers(torch, 3)),
    "linearize": lambda torch, f: f.linearize(lambda x: x.sin(), numbers(torch, 3))[1](torch.ones(3)),
    "jacrev": lambda torch, f: f.jacrev(lambda x: x.sin().outer(x))(numbers(torch, 3)),
    "jacrev of several": lambda torch, f: f.jacrev(lambda x, y: (x * y.sum(), x.sum()), argnums=(0, 1))(numbers(torch, 3), numbers(torch, 2, 2)),
    "jacrev of a dict": lambda torch, f: f.jacrev(lambda d: {"y": d["x"] * 2})({"x": numbers(torch, 2)}),
    "jacrev in chunks": lambda torch, f: f.jacrev(lambda x: (x.sin(), x.sum(), x * x), chunk_size=2)(numbers(torch, 3)),
    "jacrev one by one": lambda torch, f: f.jacrev(lambda x: (x.sin(), x.sum()), chunk_size=1)(numbers(torch, 3)),
    "jacrev with aux": lambda torch, f: f.jacrev(lambda x: (x.sin(), x + 1), has_aux=True)(numbers(torch, 3)),
    "jacfwd": lambda torch, f: f.jacfwd(lambda x: x.sin().outer(x))(numbers(torch, 3)),
    "jacfwd of several": lambda torch, f: f.jacfwd(lambda x, y: (x * y.sum(), x.sum()), argnums=(0, 1))(numbers(torch, 3), numbers(torch, 2, 2)),
    "jacfwd with aux": lambda torch, f: f.jacfwd(lambda x: (x.sin(), x + 1), has_aux=True)(numbers(torch, 3)),
    "hessian": lambda torch, f: f.hessian(lambda x: (x.sin() * x.sum()).sum())(numbers(torch, 3)),
    "hessian of two": lambda torch, f: f.hessian(lambda x, y: (x * y * y).sum(), argnums=(0, 1))(numbers(torch, 3), numbers(torch, 3)),
    "no output": lambda torch, f: f.grad(lambda x: None)(numbers(torch, 3)),
    "not a number": lambda torch, f: f.grad(lambda x: x)(numbers(torch, 3)),
    "not a pair": lambda torch, f: f.grad(lambda x: x.sum(), has_aux=True)(numbers(torch, 3)),
    "argnum out of range": lambda torch, f: f.grad(lambda x: x.sum(), argnums=1)(numbers(torch, 3)),
    "argnum no integer": lambda torch, f: f.grad(lambda x: x.sum(), argnums=(0.5,))(numbers(torch, 3)),
    "argnums no tuple": lambda torch, f: f.grad(lambda x: x.sum(), argnums=[0])(numbers(torch, 3)),
    "argnums twice": lambda torch, f: f.grad(lambda x, y: x.sum(), argnums=(0, 0))(numbers(torch, 3), 1),
    "argnums empty": lambda torch, f: f.grad(lambda x, y: x.sum(), argnums=())(numbers(torch, 3), 1),
    "by a number": lambda torch, f: f.grad(lambda x: x)(3.0),
    "aux no tensor": lambda torch, f: f.grad(lambda x: (x.sum(), 3), has_aux=True)(numbers(torch, 3)),
    "vjp of nothing": lambda torch, f: f.vjp(lambda x: None, numbers(torch, 3)),
    "vjp of a number": lambda torch, f: f.vjp(lambda x: (x, 3), numbers(torch, 3)),
    "vjp of integers": lambda torch, f: f.vjp(lambda x: x > 0, numbers(torch, 3)),
    "vjp of another structure": lambda torch, f: f.vjp(lambda x: (x, x), numbers(torch, 3))[1]([torch.ones(3)]),
    "jvp no tuple": lambda torch, f: f.jvp(torch.sin, numbers(torch, 3), numbers(torch, 3)),
    "jvp of other structures": lambda torch, f: f.jvp(torch.sin, (numbers(torch, 3),), ([numbers(torch, 3)],)),
    "jvp of nothing": lambda torch, f: f.jvp(torch.sin, (), ()),
    "jvp of numbers": lambda torch, f: f.jvp(torch.sin, (1.0,), (1.0,)),
    "jvp of integers": lambda torch, f: f.jvp(lambda x: x, (torch.tensor(1),), (torch.tensor(1),)),
    "jvp strict": lambda torch, f: f.jvp(lambda x: torch.ones(2), (numbers(torch, 3),), (torch.ones(3),), strict=True),
    "jacrev of complex": lambda torch, f: f.jacrev(lambda x: x * 2)(torch.ones(2, dtype=torch.complex64)),
    "jacrev without rows": lambda torch, f: f.jacrev(lambda x: x * 2, chunk_size=0),
    "jacfwd to complex": lambda torch, f: f.jacfwd(lambda x: torch.complex(x, x))(numbers(torch, 2)),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_grad_vjp_jvp_and_jacobians(name):
    agree(lambda torch: DERIVATIVES[name](torch, func(torch)))


OUTSIDE = {
    "a parameter": lambda torch, f, p: f.grad(lambda x: (x * x * p).sum())(numbers(torch, 3)),
    "the input": lambda torch, f, p: f.grad(lambda x: (x ** 3).sum())(p),
    "a value": lambda torch, f, p: f.grad_and_value(lambda x: (x * p).sum())(numbers(torch, 3))[1],
    "not needed": lambda torch, f, p: f.grad(lambda x: (x ** 3).sum())(p.detach()),
    "vjp": lambda torch, f, p: f.vjp(lambda x: x * p, numbers(torch, 3))[1](torch.ones(3))[0],
    "cotangents": lambda torch, f, p: f.vjp(lambda x: x ** 3, numbers(torch, 3))[1](p)[0],
    "jvp": lambda torch, f, p: f.jvp(lambda x: x * p, (numbers(torch, 3),), (torch.ones(3),))[1],
    "vmap": lambda torch, f, p: f.vmap(lambda x: (x * p).sum())(numbers(torch, 2, 3)),
    "vmap of grad": lambda torch, f, p: f.vmap(f.grad(lambda x: (x * x * p).sum()))(numbers(torch, 2, 3)),
    "vmap of grad by it": lambda torch, f, p: f.vmap(f.grad(lambda q, x: (x * q * q).sum()), in_dims=(None, 0))(p, numbers(torch, 2, 3)),
}


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("recorded", [True, False])
def test_gradients_through_func_transforms_to_outer_tensors(name, recorded):
    """Transforms a function that reads the outer tensor p. The result must require a gradient exactly if PyTorch's result does. The gradients with
    respect to p must be equal too."""

    def program(torch):
        p = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
        with torch.set_grad_enabled(recorded):
            result = OUTSIDE[name](torch, func(torch), p)
        if result.requires_grad:
            (result * result).sum().backward()
        return result.requires_grad, result.detach(), p.grad

    agree(program)


# ---- vmap ---------------------------------------------------------------------------------------------------------------------------------


BATCHES = {
    "in_dims": lambda torch, v: v(torch.dot, in_dims=(0, 1))(numbers(torch, 2, 3), numbers(torch, 3, 2)),
    "negative in_dims": lambda torch, v: v(lambda x: x.sum(0), in_dims=-2)(numbers(torch, 2, 3, 4)),
    "the same for all": lambda torch, v: v(torch.dot, in_dims=(0, None))(numbers(torch, 2, 3), numbers(torch, 3)),
    "no tensor": lambda torch, v: v(lambda x, k: x * k, in_dims=(0, None))(numbers(torch, 2, 3), 3),
    "nested": lambda torch, v: v(lambda d, pair: d["a"] * pair[0] + pair[1], in_dims=({"a": 0}, (1, None)))({"a": numbers(torch, 2)}, (numbers(torch, 3, 2), 5.0)),
    "one for a branch": lambda torch, v: v(lambda d: d["a"] + d["b"], in_dims=(0,))({"a": numbers(torch, 2), "b": numbers(torch, 2, 3)}),
    "named tuples": lambda torch, v: v(lambda p: Pair(p.left * 2, p.right))(Pair(numbers(torch, 2), numbers(torch, 2, 3))),
    "ordered": lambda torch, v: v(lambda d: OrderedDict(y=d["x"] * 2))(OrderedDict(x=numbers(torch, 2))),
    "out_dims": lambda torch, v: v(lambda x: x * 2, out_dims=1)(numbers(torch, 2, 3)),
    "negative out_dims": lambda torch, v: v(lambda x: x * 2, out_dims=-1)(numbers(torch, 2, 3, 4)),
    "several out_dims": lambda torch, v: v(lambda x: (x, x.sum()), out_dims=(1, 0))(numbers(torch, 2, 3)),
    "nested out_dims": lambda torch, v: v(lambda x: {"a": x, "b": [x, x]}, out_dims={"a": 1, "b": [0, 1]})(numbers(torch, 2, 3)),
    "out_dims in a tuple": lambda torch, v: v(lambda x: x * 2, out_dims=(1,))(numbers(torch, 2, 3)),
    "a constant": lambda torch, v: v(lambda x: torch.ones(3))(numbers(torch, 2, 3)),
    "returned once": lambda torch, v: v(lambda x: (x, torch.ones(3), "text"), out_dims=(0, None, None))(numbers(torch, 2, 3)),
    "keywords": lambda torch, v: v(lambda x, scale: x * scale)(numbers(torch, 2, 3), scale=2.0),
    "in chunks": lambda torch, v: v(lambda x: (x * 2, x.sum()), out_dims=(1, 0), chunk_size=2)(numbers(torch, 5, 3)),
    "a chunk for all": lambda torch, v: v(lambda x: x * 2, chunk_size=9)(numbers(torch, 5, 3)),
    "partial": lambda torch, v: v(functools.partial(torch.mul, torch.tensor(2.0)))(numbers(torch, 2)),
    "views": lambda torch, v: v(lambda x: x.t().reshape(-1)[1:])(numbers(torch, 2, 3, 4)),
    "in place": lambda torch, v: v(lambda x: x.clone().add_(1).mul_(x))(numbers(torch, 2, 3)),
    "matmul": lambda torch, v: v(torch.matmul, in_dims=(0, None))(numbers(torch, 2, 3, 4), numbers(torch, 4, 5)),
    "of grad": lambda torch, v: v(func(torch).grad(lambda x: x.sin().sum()))(numbers(torch, 2, 3)),
    "of jvp": lambda torch, v: v(lambda x, t: func(torch).jvp(torch.sin, (x,), (t,)))(numbers(torch, 2, 3), numbers(torch, 2, 3)),
    "of jvp in one direction": lambda torch, v: v(lambda x: func(torch).jvp(torch.sin, (x,), (torch.ones(3),))[1])(numbers(torch, 2, 3)),
    "of vjp": lambda torch, v: v(lambda x: func(torch).vjp(torch.sin, x)[1](x)[0])(numbers(torch, 2, 3)),
    "under grad": lambda torch, v: func(torch).grad(lambda x: v(lambda y: y.sin().sum())(x).sum())(numbers(torch, 2, 3)),
    "under jvp": lambda torch, v: func(torch).jvp(v(torch.sin), (numbers(torch, 2, 3),), (torch.ones(2, 3),)),
    "no inputs": lambda torch, v: v(lambda: 1)(),
    "nothing to map": lambda torch, v: v(torch.sin, in_dims=None)(numbers(torch, 2)),
    "all None": lambda torch, v: v(torch.sin, in_dims=(None,))(numbers(torch, 2)),
    "in_dims a list": lambda torch, v: v(torch.sin, in_dims=[0])(numbers(torch, 2)),
    "in_dims of another structure": lambda torch, v: v(torch.mul, in_dims=((0, 0), 0))(numbers(torch, 2), numbers(torch, 2)),
    "in_dims a fraction": lambda torch, v: v(torch.sin, in_dims=(0.5,))(numbers(torch, 2)),
    "over a number": lambda torch, v: v(torch.mul)(numbers(torch, 2), 2),
    "dimension out of range": lambda torch, v: v(torch.sin, in_dims=1)(numbers(torch, 2)),
    "other sizes": lambda torch, v: v(torch.mul)(numbers(torch, 2), numbers(torch, 3)),
    "out_dims text": lambda torch, v: v(torch.sin, out_dims="a")(numbers(torch, 2)),
    "out_dims of another structure": lambda torch, v: v(lambda x: (x, x), out_dims=(0, 0, 0))(numbers(torch, 2)),
    "out_dims for one": lambda torch, v: v(torch.sin, out_dims=(0, 0))(numbers(torch, 2)),
    "out_dims out of range": lambda torch, v: v(torch.sin, out_dims=3)(numbers(torch, 2)),
    "a batch returned once": lambda torch, v: v(torch.sin, out_dims=None)(numbers(torch, 2)),
    "no tensor returned": lambda torch, v: v(lambda x: 3)(numbers(torch, 2)),
    "chunks of nothing": lambda torch, v: v(torch.sin, chunk_size=0),
    "an unknown randomness": lambda torch, v: v(torch.sin, randomness="some"),
    "random": lambda torch, v: v(lambda x: x + torch.rand(3))(numbers(torch, 2, 3)),
    "item": lambda torch, v: v(lambda x: x.sum().item())(numbers(torch, 2, 3)),
    "condition": lambda torch, v: v(lambda x: x if x.sum() > 0 else -x)(numbers(torch, 2, 3)),
}


@pytest.mark.parametrize("name", BATCHES)
def test_vmap_agrees_with_pytorch(name):
    agree(lambda torch: BATCHES[name](torch, torch.vmap))


READS = {
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "item": lambda x: x.sum().item(),
    "float": lambda x: float(x.sum()),
    "bool": lambda x: bool(x.sum()),
    "address": lambda x: x.data_ptr(),
    "buffer": memoryview,
    "bytes": bytes,
    "dlpack": lambda x: x.__dlpack__(),
    "mask": lambda x: x[x > 0],
    "nonzero": lambda x: x.nonzero(),
    "equal": lambda x: gradus.equal(x, x),
}


@pytest.mark.parametrize("name", READS)
def test_reading_elements_under_vmap_is_an_error(name):
    error, text = caught(gradus.vmap(READS[name]), gradus.ones(3, 2))
    assert error == "RuntimeError" and text.startswith(("vmap: ", "Cannot access data pointer"))


@pytest.mark.parametrize("in_dim", [0, 1, 2, -1])
@pytest.mark.parametrize("out_dim", [0, 1, 2, -1])
@pytest.mark.parametrize("chunk_size", [None, 1, 2])
def test_in_dims_out_dims_and_chunk_size(in_dim, out_dim, chunk_size):
    agree(lambda torch: torch.vmap(lambda x: x * 2 + x.sum(1, keepdim=True), in_dim, out_dim, chunk_size=chunk_size)(numbers(torch, 3, 4, 5)))


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "int64", "complex64", "bool"])
def test_vmap_of_cat_promotes_to_the_dtype_of_an_empty_vector(dtype, batched):
    def program(torch):
        empty, x = torch.zeros((2, 0) if batched else 0, dtype=getattr(torch, dtype)), torch.ones(2, 3, 2, requires_grad=True)
        y = torch.vmap(lambda x, e: torch.cat([e, x, e, x], 1), (0, 0 if batched else None))(x, empty)
        y.abs().sum().backward()
        return str(y.dtype).split(".")[1], y.abs(), x.grad
    agree(program)


def test_vmap_of_an_empty_batch():
    def program(torch):
        return tuple(torch.vmap(lambda x: x * 2)(torch.ones(0, 3)).shape)

    same(program)


def test_randomness_modes_of_vmap():
    def draws(mode, **options):
        gradus.manual_seed(3)
        return gradus.vmap(lambda x: x + gradus.rand(2), randomness=mode, **options)(gradus.zeros(4, 2))

    alone, different = draws("same"), draws("different")
    assert all(gradus.equal(row, alone[0]) for row in alone)
    assert len({tuple(row.tolist()) for row in different}) == 4
    assert gradus.equal(draws("same", chunk_size=2), alone)
    gradus.manual_seed(3)
    assert gradus.equal(alone[0], gradus.rand(2))


def test_levels_end_after_an_error_in_a_nested_transform():
    error, text = caught(gradus.vmap(gradus.vmap(gradus.sin)), gradus.ones(2, 0))
    assert (error, text) == ("RuntimeError", "vmap: a vmap inside of another one needs an element")
    assert gradus.vmap(gradus.sin)(gradus.zeros(2)).tolist() == [0, 0]  # the failed call has ended its vmap level, so vmap works again
    assert caught(func(gradus).jvp, lambda x: func(gradus).jvp(gradus.sin, (x,), (x,))[1], (gradus.ones(1),), (gradus.ones(1),))[0] == "RuntimeError"


def test_using_a_batch_tensor_outside_of_vmap_is_an_error():
    left = []
    gradus.vmap(lambda x: left.append(x) or x)(gradus.ones(2, 3))
    assert caught(lambda: left[0] + 1)[0] == "RuntimeError"


# ---- Jacobians computed with vmap -----------------------------------------------------------------------------------------------------------


JACOBIANS = {
    "all rows": lambda torch, a: a.jacobian(lambda x: x.sin().outer(x), numbers(torch, 3), vectorize=True),
    "of two": lambda torch, a: a.jacobian(lambda x, y: (x * y.sum(), x.sum()), (numbers(torch, 3), numbers(torch, 2)), vectorize=True),
    "columns": lambda torch, a: a.jacobian(lambda x: x.sin().outer(x), numbers(torch, 3), vectorize=True, strategy="forward-mode"),
    "columns of two": lambda torch, a: a.jacobian(lambda x, y: (x * y.sum(), y.sum() * x.sum()), (numbers(torch, 3), numbers(torch, 2)), vectorize=True, strategy="forward-mode"),
    "columns one by one": lambda torch, a: a.jacobian(torch.sin, numbers(torch, 3), strategy="forward-mode"),
    "columns recorded": lambda torch, a: a.jacobian(torch.sin, numbers(torch, 3), strategy="forward-mode", vectorize=True, create_graph=True),
    "columns strict": lambda torch, a: a.jacobian(torch.sin, numbers(torch, 3), strategy="forward-mode", vectorize=True, strict=True),
    "rows strict": lambda torch, a: a.jacobian(torch.sin, numbers(torch, 3), vectorize=True, strict=True),
    "no strategy": lambda torch, a: a.jacobian(torch.sin, numbers(torch, 3), strategy="sideways"),
    "hessian": lambda torch, a: a.hessian(lambda x: (x.sin() * x.sum()).sum(), numbers(torch, 3), vectorize=True),
    "hessian forward over reverse": lambda torch, a: a.hessian(lambda x: (x.sin() * x.sum()).sum(), numbers(torch, 3), vectorize=True, outer_jacobian_strategy="forward-mode"),
    "hessian without strategy": lambda torch, a: a.hessian(lambda x: x.sum(), numbers(torch, 3), outer_jacobian_strategy="sideways"),
}


@pytest.mark.parametrize("name", JACOBIANS)
def test_vectorized_jacobians_of_autograd_functional(name):
    agree(lambda torch: plain_detached(JACOBIANS[name](torch, submodule(torch, "autograd.functional"))))


def plain_detached(value):
    """Returns `value` with all tensors detached and lists replaced by tuples, because PyTorch returns lists for the columns of a Jacobian and tuples
    for the rows."""
    return tuple(plain_detached(item) for item in value) if isinstance(value, (tuple, list)) else value.detach()


BATCHED_GRADS = {
    "one": lambda torch, x: torch.autograd.grad(x * x, x, numbers(torch, 4, 3), is_grads_batched=True),
    "unused": lambda torch, x: torch.autograd.grad(x * x, [x, torch.ones(2, requires_grad=True)], [numbers(torch, 4, 3)], is_grads_batched=True, allow_unused=True),
    "several outputs": lambda torch, x: torch.autograd.grad([x * x, x.sum()], x, [numbers(torch, 4, 3), numbers(torch, 4)], is_grads_batched=True),
    "other sizes": lambda torch, x: torch.autograd.grad([x * x, x.sum()], x, [numbers(torch, 4, 3), numbers(torch, 5)], is_grads_batched=True),
}


@pytest.mark.parametrize("name", BATCHED_GRADS)
def test_batched_gradients_with_is_grads_batched(name):
    def program(torch):
        try:
            return BATCHED_GRADS[name](torch, numbers(torch, 3).requires_grad_())
        except (ValueError, RuntimeError):
            return "refused"

    agree(program)


# ---- Modules ------------------------------------------------------------------------------------------------------------------------------


def network(torch):
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    for parameter in net.parameters():
        parameter.data = numbers(torch, *parameter.shape)
    return net


def test_per_sample_gradients():
    def program(torch):
        f, net = func(torch), network(torch)
        params = {name: p.detach() for name, p in net.named_parameters()}

        def loss(params, x, y):
            return torch.nn.functional.cross_entropy(f.functional_call(net, params, (x,)), y)

        return f.vmap(f.grad_and_value(loss), in_dims=(None, 0, 0))(params, numbers(torch, 5, 3), torch.tensor([0, 1, 1, 0, 1]))

    gradients, values = agree(program)
    assert len(values) == 5 and len(gradients["0.weight"]) == 5


def test_vmap_over_an_ensemble_with_stack_module_state():
    def program(torch):
        f, nets = func(torch), [network(torch) for _ in range(3)]
        nets[1][0].weight.data *= 2
        params, buffers = f.stack_module_state(nets)
        out = f.vmap(lambda p, b, x: f.functional_call(nets[0], (p, b), (x,)), in_dims=(0, 0, None))(params, buffers, numbers(torch, 5, 3))
        out.sum().backward()
        return out.detach(), {name: p.grad for name, p in params.items()}, all(p.is_leaf for p in params.values())

    agree(program)


def test_functional_call_does_not_change_the_module():
    def program(torch):
        f = func(torch)
        norm = torch.nn.BatchNorm1d(2)
        state = {"running_mean": torch.tensor([1.0, 2.0]), "weight": torch.tensor([3.0, 4.0])}
        before = norm.weight
        y = f.functional_call(norm, state, (torch.tensor([[1.0, 2.0], [3.0, 4.0]]),))
        return y, state["running_mean"], norm.running_mean, norm.weight is before, norm.num_batches_tracked

    agree(program)


def tied(torch):
    net = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False))
    net[1].weight = net[0].weight
    net[0].weight.data = torch.ones(2, 2)
    return net


MODULES = {
    "tied": lambda torch, f: f.functional_call(tied(torch), {"0.weight": torch.zeros(2, 2)}, torch.ones(2)),
    "untied": lambda torch, f: f.functional_call(tied(torch), {"0.weight": torch.full((2, 2), 2.0)}, torch.ones(2), tie_weights=False),
    "tied to two": lambda torch, f: f.functional_call(tied(torch), {"0.weight": torch.zeros(2, 2), "1.weight": torch.ones(2, 2)}, torch.ones(2)),
    "strict": lambda torch, f: f.functional_call(torch.nn.Linear(2, 2), {"weight": torch.ones(2, 2), "wait": torch.ones(2)}, torch.ones(2), strict=True),
    "no such name": lambda torch, f: f.functional_call(network(torch), {"0.wait": torch.ones(2)}, torch.ones(3)),
    "no tensor": lambda torch, f: f.functional_call(torch.nn.Linear(2, 2), {"weight": 3}, torch.ones(2)),
    "a name twice": lambda torch, f: f.functional_call(torch.nn.Linear(2, 2), ({"weight": torch.ones(2, 2)}, {"weight": torch.ones(2, 2)}), torch.ones(2)),
    "no dict": lambda torch, f: f.functional_call(torch.nn.Linear(2, 2), 3, torch.ones(2)),
    "no dicts": lambda torch, f: f.functional_call(torch.nn.Linear(2, 2), [3], torch.ones(2)),
    "no models": lambda torch, f: f.stack_module_state([]),
    "other modes": lambda torch, f: f.stack_module_state([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2).eval()]),
    "other classes": lambda torch, f: f.stack_module_state([torch.nn.Linear(2, 2), torch.nn.Tanh()]),
    "some need gradients": lambda torch, f: f.stack_module_state([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2).requires_grad_(False)]),
}


@pytest.mark.parametrize("name", MODULES)
def test_functional_call_and_stack_module_state(name):
    agree(lambda torch: MODULES[name](torch, func(torch)))


# ---- Custom functions -------------------------------------------------------------------------------------------------------------------------


def power(torch, **members):
    class Power(torch.autograd.Function):
        @staticmethod
        def forward(x, y, n):
            return x ** n * y, x + y

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, y, ctx.n = inputs
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(x, y)

        @staticmethod
        def backward(ctx, g, h):
            x, y = ctx.saved_tensors
            return g * ctx.n * x ** (ctx.n - 1) * y + h, g * x ** ctx.n + h, None

        @staticmethod
        def jvp(ctx, s, t, _):
            x, y = ctx.saved_tensors
            return s * ctx.n * x ** (ctx.n - 1) * y + t * x ** ctx.n, s + t

    for name, member in members.items():
        setattr(Power, name, member)
    return Power


def doubled(info, in_dims, x, y, n):
    return (x * 2 * info.batch_size, y), (in_dims[0], in_dims[1])


FUNCTIONS = {
    "generated": lambda torch, v: v(lambda x, y: power(torch, generate_vmap_rule=True).apply(x, y, 3), in_dims=(0, None))(numbers(torch, 4, 3), numbers(torch, 3)),
    "generated, differentiated inside": lambda torch, v: v(
        func(torch).grad(lambda x, y: power(torch, generate_vmap_rule=True).apply(x, y, 3)[0].sum(), argnums=(0, 1)), in_dims=(0, None)
    )(numbers(torch, 4, 3), numbers(torch, 3)),
    "generated, differentiated outside": lambda torch, v: func(torch).grad(
        lambda x, y: sum(t.sum() for t in v(lambda x, y: power(torch, generate_vmap_rule=True).apply(x, y, 3), in_dims=(0, None))(x, y)), argnums=(0, 1)
    )(numbers(torch, 4, 3), numbers(torch, 3)),
    "generated, forward mode inside": lambda torch, v: v(
        lambda x, y: func(torch).jvp(lambda x, y: power(torch, generate_vmap_rule=True).apply(x, y, 3), (x, y), (x, y)), in_dims=(0, None)
    )(numbers(torch, 4, 3), numbers(torch, 3)),
    "its own": lambda torch, v: v(lambda x, y: power(torch, vmap=staticmethod(doubled)).apply(x, y, 3), in_dims=(0, 0))(numbers(torch, 4, 3), numbers(torch, 4, 3)),
    "none": lambda torch, v: v(lambda x: power(torch).apply(x, x, 3))(numbers(torch, 4, 3)),
    "both": lambda torch, v: v(lambda x: power(torch, generate_vmap_rule=True, vmap=staticmethod(doubled)).apply(x, x, 3))(numbers(torch, 4, 3)),
    "no pair": lambda torch, v: v(lambda x: power(torch, vmap=staticmethod(lambda info, dims, x, y, n: x)).apply(x, x, 3))(numbers(torch, 4, 3)),
    "other dims": lambda torch, v: v(lambda x: power(torch, vmap=staticmethod(lambda info, dims, x, y, n: (x, (0, 0)))).apply(x, x, 3))(numbers(torch, 4, 3)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap_of_custom_functions(name):
    agree(lambda torch: FUNCTIONS[name](torch, torch.vmap))


# ---- Pytrees ------------------------------------------------------------------------------------------------------------------------------


def test_pytree_functions():
    def program(torch):
        tree = submodule(torch, "utils._pytree")
        nested = {"b": [1, (2, None)], "a": Pair(3, OrderedDict(x=4)), "c": ()}
        leaves, spec = tree.tree_flatten(nested)
        seen = [leaves, repr(spec), spec.num_leaves, tree.tree_unflatten(leaves, spec) == nested, tree.treespec_pprint(spec)]
        seen += [tree.tree_map(lambda x: (x, x), [1, 2]), tree.tree_map(lambda x, y: x + y, [1, [2]], [3, [4]]), tree.tree_leaves({"a": 1})]
        seen += [tree.tree_map_only(int, lambda x: -x, [1, "a"]), tree.tree_structure([1]) == tree.tree_structure([2]), tree.tree_structure([1]) == tree.tree_structure((1,))]
        seen += [tree._broadcast_to_and_flatten(0, spec), tree._broadcast_to_and_flatten([0, (1,)], tree.tree_structure([3, (4,)]))]
        seen += [tree._broadcast_to_and_flatten([0, 1], tree.tree_structure((3, 4)))]
        return seen

    same(program)
