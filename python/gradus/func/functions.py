"""Applies custom functions (autograd.Function) inside vmap. A function either defines the static method vmap, or sets generate_vmap_rule=True. In
the second case its forward, backward and jvp are called with batch tensors. A batch tensor has the sizes of one element but holds all elements of
the batch."""
from contextlib import contextmanager
from typing import NamedTuple

import gradus
from gradus import _C
from gradus.autograd.function import Function
from gradus.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_map, tree_unflatten

__all__ = ["VmapInfo", "apply_batched"]

_NOTES = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """Describes the current vmap. It is the argument `info` of the static method vmap of a custom function."""

    batch_size: int
    randomness: str


def apply_batched(function, args):
    """Returns function.apply(*args) inside vmap. Some tensors in `args` are batch tensors: they have the sizes of one element of the batch but hold
    the whole batch. Raises RuntimeError if the function does not support vmap."""
    own = function.vmap is not Function.vmap
    if own and function.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {function.__name__}, but it has both generate_vmap_rule=True and an overridden vmap staticmethod. "
            f"Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity. {_NOTES}"
        )
    if own:
        return _by_its_vmap(function, args)
    if not function.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {function.__name__}, but it does not have vmap support. Please override and implement the vmap staticmethod or set "
            f"generate_vmap_rule=True. {_NOTES}"
        )
    if not function._has_setup_context:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the setup_context staticmethod. " + _NOTES
        )
    return tree_map(lambda t: _C._batch(t) if isinstance(t, gradus.Tensor) else t, _Elements.apply(function, [_is_batched(arg) for arg in args], *map(_physical, args)))


def _is_batched(value):
    return isinstance(value, gradus.Tensor) and _C._is_batched(value)


def _physical(value):
    return _C._unbatch(value) if _is_batched(value) else value


def _by_its_vmap(function, args):
    info = VmapInfo(_C._batch_size(), _C._batch_randomness())
    results = function.vmap(info, tree_map(lambda value: 0 if _is_batched(value) else None, args), *tree_map(_physical, args))
    if not (isinstance(results, tuple) and len(results) == 2):
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with the output. "
            f"Got a {type(results)} instead"
        )
    outputs, out_dims = results
    leaves, spec = tree_flatten(outputs)
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise RuntimeError(
            f"The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected out_dims={out_dims} to be compatible with the "
            f"structure of `output`. out_dims has structure {tree_flatten(out_dims)[1]} but output has structure {spec}. {_NOTES}"
        )
    return tree_unflatten([leaf if dim is None else _C._batch(leaf, dim) for leaf, dim in zip(leaves, dims)], spec)


class _ElementContext:
    """The ctx that a custom function receives inside vmap, where tensors look like one element of the batch. The custom function saves such
    tensors in this ctx. _Elements then saves the tensors of the whole batch in the real ctx."""

    def __init__(self, needs_input_grad):
        self.needs_input_grad, self.saved_tensors, self.for_forward, self.constant, self.materialize = needs_input_grad, (), (), (), True

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors):
        self.for_forward = tensors

    def mark_non_differentiable(self, *outputs):
        self.constant = outputs

    def mark_dirty(self, *_):
        raise RuntimeError("mark_dirty is not supported with generate_vmap_rule=True")

    def set_materialize_grads(self, value):
        self.materialize = value


@contextmanager
def _level(size, randomness):
    """Context manager. In its block, a vmap with batch size `size` and the given `randomness` is active. Backward and jvp of a custom function run
    in such a block, with the batch size and randomness of forward. If a vmap with batch size `size` is already active, no new vmap is started."""
    inside = _C._batch_size() == size
    if not inside:
        _C._batch_begin(size, randomness)
    try:
        yield
    finally:
        if not inside:
            _C._batch_end()


class _Elements(Function):
    """Applies a custom function to each element of a batch. The arguments are ordinary tensors that hold the whole batch. `batched` has True for each
    argument whose dimension 0 is the batch, False for an argument that all elements share."""

    @staticmethod
    def forward(ctx, function, batched, *args):
        ctx.function, ctx.batched, ctx.level = function, batched, (_C._batch_size(), _C._batch_randomness())
        ctx.inner = inner = _ElementContext(ctx.needs_input_grad[2:])
        inputs = tuple(_C._batch(arg) if marked else arg for arg, marked in zip(args, batched))
        outputs = function.forward(*inputs)
        function.setup_context(inner, inputs, outputs)
        results = tree_map(lambda t: _C._unbatch(t) if isinstance(t, gradus.Tensor) else t, outputs)
        pairs = list(zip(*(value if isinstance(value, tuple) else (value,) for value in (outputs, results))))
        ctx.set_materialize_grads(inner.materialize)
        ctx.mark_non_differentiable(*(result for output, result in pairs if any(output is constant for constant in inner.constant)))
        ctx.marks, ctx.forward_marks = [[_is_batched(t) for t in saved] for saved in (inner.saved_tensors, inner.for_forward)]
        ctx.save_for_backward(*(_among(t, [*zip(inputs, args), *pairs]) for t in inner.saved_tensors))
        if inner.for_forward:
            ctx.save_for_forward(*map(_physical, inner.for_forward))
        inner.saved_tensors = inner.for_forward = inner.constant = ()
        return results

    @staticmethod
    def backward(ctx, *grads):
        with _level(*ctx.level):
            inner = _with_saved(ctx, ctx.marks)
            found = ctx.function.backward(inner, *(g if g is None else _C._batch(g) for g in grads))
            found = found if isinstance(found, tuple) else (found,)
            return (None, None, *(_summed(g, marked) for g, marked in zip(found, ctx.batched)))

    @staticmethod
    def jvp(ctx, _, __, *tangents):
        with _level(*ctx.level):
            inner = _with_saved(ctx, ctx.forward_marks or ctx.marks)
            return tree_map(_physical, ctx.function.jvp(inner, *(_C._batch(t) if marked and t is not None else t for t, marked in zip(tangents, ctx.batched))))


def _among(tensor, pairs):
    """Returns the tensor that holds the whole batch of `tensor`. `tensor` is a tensor under vmap, so it has the sizes of one element of the batch.
    `pairs` has a pair for each input and output of forward: the tensor under vmap, and the tensor with its whole batch. If `tensor` is the first of a
    pair, the result is the second of this pair and not a new view, because save_for_backward recognizes inputs and outputs by identity."""
    return next((physical for logical, physical in pairs if logical is tensor), _physical(tensor))


def _with_saved(ctx, marks):
    ctx.inner.saved_tensors = tuple(_C._batch(t) if marked else t for t, marked in zip(ctx.saved_tensors, marks))
    return ctx.inner


def _summed(grad, batched):
    """Returns the gradient of an argument as an ordinary tensor, or None if `grad` is None. If `batched` is true, the result has the batch as
    dimension 0. Otherwise one argument serves the whole batch, so its gradients are summed over the batch."""
    return grad if grad is None else _C._unbatch(grad) if batched else _C._unbatch(grad).sum(0)
