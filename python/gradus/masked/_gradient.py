"""Determines the masks of the gradients of masked tensors.

The library differentiates the data only; this file determines which elements of a gradient are masked. Every masked argument of a call passes through
_Enter, a Function that returns the data unchanged. In backward, _Enter masks the argument's gradient and adds the mask to the argument's GradMask. A
rule for the called function computes the mask from the masks of the gradients of the call's results.

A tensor can be the result of one call and an argument of several later calls. Its GradMask is the OR of the masks from all these later calls. A hook
on the tensor reads the GradMask. By then the mask is complete, because a backward pass processes the later calls first.

Masked elements of a gradient are 0. Otherwise data at masked elements, for example an infinity, could change the gradients of unmasked elements.
"""
import gradus
from gradus import _C
from gradus._C import DisableTorchFunctionSubclass, Tensor
from gradus.autograd import Function

from ._names import BINARY, UNARY
from ._tensor import MaskedTensor, masked

__all__ = ["Call", "GradMask", "as_masked", "construct", "data_of", "grad_of", "mark"]


class GradMask:
    """Collects the masks of the gradients that a tensor receives in a backward pass. `mask` is the elementwise OR of the masks so far, or None before
    the first gradient."""

    __slots__ = ("mask",)

    def __init__(self):
        self.mask = None

    def include(self, mask):
        self.mask = mask if self.mask is None else self.mask | mask

    def take(self):
        mask, self.mask = self.mask, None
        return mask


def as_masked(grad, mask):
    """Returns a gradient as a masked tensor. If the gradient has no mask it gets `mask`."""
    if isinstance(grad, MaskedTensor):
        return grad
    with DisableTorchFunctionSubclass():
        return masked(grad.view_as(grad), mask)


def grad_of(t):
    """Returns `grad` of the masked tensor `t` as a masked tensor. An element is unmasked if it was unmasked in any of the gradients that were
    accumulated."""
    grad = Tensor.grad.__get__(t)
    if grad is not None:
        mark(grad, t._mask if t._grad_mask.mask is None else t._grad_mask.mask)
    return grad


def mark(grad, mask):
    """Turns a gradient into a masked tensor with the given mask, in place."""
    if isinstance(grad, MaskedTensor):
        grad._mask = mask
    else:
        masked(grad, mask)


def _as_tensor(t):
    return t.as_subclass(Tensor)


class _Enter(Function):
    """Function whose forward returns the data of the tensor `t`, expanded to `sizes` unless that is None. rule(grad) returns the mask of `grad`, the
    gradient of the expanded data. Backward reduces `grad` and the mask to the sizes of `t`. If `grad_mask`, a GradMask, is not None, backward also
    merges the mask into `grad_mask` by OR."""

    @staticmethod
    def forward(t, sizes, rule, grad_mask):
        data = _as_tensor(t)
        return data if sizes is None or data.shape == sizes else data.expand(sizes)

    @staticmethod
    def setup_context(ctx, inputs, output):
        t, _, ctx.rule, ctx.grad_mask = inputs
        ctx.sizes = t.shape

    @staticmethod
    def backward(ctx, grad):
        with DisableTorchFunctionSubclass():
            grad, mask = _C._masked_gradient(_as_tensor(grad), ctx.rule(grad), ctx.sizes)
            if ctx.grad_mask is not None:
                ctx.grad_mask.include(mask)
            return masked(grad, mask), None, None, None


class GetData(_Enter):
    """Returns the data of a masked tensor as an ordinary tensor, differentiably."""


def _is_recorded(t):
    return t.requires_grad and gradus.is_grad_enabled()


def data_of(t):
    """Returns the data of the masked tensor `t` as an ordinary tensor, differentiably. In backward the gradient of `t` gets the mask of `t`."""
    mask = t._mask
    return GetData.apply(t, None, lambda grad: mask, t._grad_mask) if _is_recorded(t) else _as_tensor(t)


_ELEMENTWISE_NODES = frozenset(name.replace("_", "") for name in (*UNARY, *BINARY, "clone"))


def _through(grad_inputs, grad_outputs):
    """Hook of elementwise nodes. Returns the gradients of the inputs with the mask of the output's gradient, or None if that gradient has no mask.
    For example, the gradient of 1 / x at a masked 0 stays masked."""
    grad = grad_outputs[0]
    if not isinstance(grad, MaskedTensor):
        return None
    with DisableTorchFunctionSubclass():
        return tuple(g if g is None or g.shape != grad.shape else masked(gradus.where(grad._mask, _as_tensor(g), 0), grad._mask) for g in grad_inputs)


def _mask_history(node):
    """Registers the hook _through on `node` and, recursively, on its predecessors (next_functions). Stops at each node that is not elementwise. With
    the hook, the gradient stays masked on its way to the leaves."""
    pending = [node]
    while pending:
        node = pending.pop()
        if node is not None and node.name().partition("Backward")[0].lower() in _ELEMENTWISE_NODES and not node.metadata.get("masked"):
            node.metadata["masked"] = True
            node.register_hook(_through)
            pending += [before for before, _ in node.next_functions]


def construct(data, mask):
    """Returns a copy of `data` as a masked tensor with `mask`, differentiably. Implements as_masked_tensor."""
    call = Call()
    _mask_history(data.grad_fn)
    return call.leave(call.enter(data, call.same).clone(), mask)


class Call:
    """The state of a call whose results are masked tensors. During a backward pass, `masks` maps the index of each result to the mask of that
    result's gradient."""

    __slots__ = ("masks",)

    def __init__(self):
        self.masks = {}

    def same(self, grad):
        """Returns the mask of the gradient of the call's only result. Elementwise functions pass this method to enter() as `rule`, because the
        gradients of their arguments have the same mask as the gradient of the result."""
        return self.masks[0]

    def enter(self, t, rule, sizes=None):
        """Returns the data of the argument `t`, broadcast to `sizes` if they are given. In backward, rule(grad) returns the mask of the argument's
        gradient."""
        if _is_recorded(t):
            return _Enter.apply(t, sizes, rule, t._grad_mask if isinstance(t, MaskedTensor) else None)
        return _as_tensor(t) if sizes is None or t.shape == sizes else _as_tensor(t).expand(sizes)

    def leave(self, data, mask, number=0):
        """Returns `data` as a masked tensor with `mask`. Registers a hook on the masked tensor. The hook stores the mask of the tensor's gradient in
        self.masks[number]. number: the index of the masked tensor among the results of the call."""
        result = data if isinstance(data, MaskedTensor) else masked(data, mask)
        if result.requires_grad:
            grad_mask = result._grad_mask

            def record(grad):
                found = grad_mask.take()
                self.masks[number] = found if found is not None else grad._mask if isinstance(grad, MaskedTensor) else mask

            Tensor.register_hook(result, record)
        return result
