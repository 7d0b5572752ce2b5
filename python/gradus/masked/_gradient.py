"""Masks of the gradients of masked tensors.

The library differentiates the data; which elements of a gradient count is told beside it. Every masked tensor that goes into a call goes through _Enter, a function that
changes nothing: its gradient is the point where that of the call is masked. The mask follows from those of the gradients of the call's results by a rule of the call, and
is added to the GradMask of the tensor. The call's results have hooks that take what has been added to theirs: whatever used a result comes before it in a backward pass.
Masked elements of a gradient are 0, so that what the data have there, an infinity for example, does not reach the elements that count.
"""
import gradus
from gradus import _C
from gradus._C import DisableTorchFunctionSubclass, Tensor
from gradus.autograd import Function

from ._names import BINARY, UNARY
from ._tensor import MaskedTensor, masked

__all__ = ["Call", "GradMask", "as_masked", "construct", "data_of", "grad_of", "mark"]


class GradMask:
    """The elements that count in the gradient that a tensor has received so far; None: it has received none."""

    __slots__ = ("mask",)

    def __init__(self):
        self.mask = None

    def include(self, mask):
        self.mask = mask if self.mask is None else self.mask | mask

    def take(self):
        mask, self.mask = self.mask, None
        return mask


def as_masked(grad, mask):
    """Returns a gradient as a masked tensor. A gradient without a mask gets `mask`."""
    if isinstance(grad, MaskedTensor):
        return grad
    with DisableTorchFunctionSubclass():
        return masked(grad.view_as(grad), mask)


def grad_of(t):
    """Returns the gradient of a masked tensor, with the mask of all that has come to it."""
    grad = Tensor.grad.__get__(t)
    if grad is not None:
        mark(grad, t._mask if t._grad_mask.mask is None else t._grad_mask.mask)
    return grad


def mark(grad, mask):
    """Makes a gradient a masked tensor with the mask."""
    if isinstance(grad, MaskedTensor):
        grad._mask = mask
    else:
        masked(grad, mask)


def _plain(t):
    return t.as_subclass(Tensor)


class _Enter(Function):
    """Returns the data of a tensor, expanded to the sizes of a call. In backward rule(grad) returns the mask of the gradient, in the sizes of the call."""

    @staticmethod
    def forward(t, sizes, rule, grad_mask):
        data = _plain(t)
        return data if sizes is None or data.shape == sizes else data.expand(sizes)

    @staticmethod
    def setup_context(ctx, inputs, output):
        t, _, ctx.rule, ctx.grad_mask = inputs
        ctx.sizes = t.shape

    @staticmethod
    def backward(ctx, grad):
        with DisableTorchFunctionSubclass():
            grad, mask = _C._masked_gradient(_plain(grad), ctx.rule(grad), ctx.sizes)
            if ctx.grad_mask is not None:
                ctx.grad_mask.include(mask)
            return masked(grad, mask), None, None, None


class GetData(_Enter):
    """The data of a masked tensor for what is no masked tensor."""


def _is_recorded(t):
    return t.requires_grad and gradus.is_grad_enabled()


def data_of(t):
    """See MaskedTensor.get_data."""
    mask = t._mask
    return GetData.apply(t, None, lambda grad: mask, t._grad_mask) if _is_recorded(t) else _plain(t)


_ELEMENTWISE_NODES = frozenset(name.replace("_", "") for name in (*UNARY, *BINARY, "clone"))


def _through(grad_inputs, grad_outputs):
    """Masks the gradients of a node's inputs if the gradient of its output is masked. It is a hook of elementwise nodes: the gradient of 1 / x at a masked 0 stays masked."""
    grad = grad_outputs[0]
    if not isinstance(grad, MaskedTensor):
        return None
    with DisableTorchFunctionSubclass():
        return tuple(g if g is None or g.shape != grad.shape else masked(gradus.where(grad._mask, _plain(g), 0), grad._mask) for g in grad_inputs)


def _mask_history(node):
    """Registers _through on the nodes of the data's history, so that its gradient stays masked on the way to the leaves as long as nodes are elementwise."""
    pending = [node]
    while pending:
        node = pending.pop()
        if node is not None and node.name().partition("Backward")[0].lower() in _ELEMENTWISE_NODES and not node.metadata.get("masked"):
            node.metadata["masked"] = True
            node.register_hook(_through)
            pending += [before for before, _ in node.next_functions]


def construct(data, mask):
    """See as_masked_tensor."""
    call = Call()
    _mask_history(data.grad_fn)
    return call.leave(call.enter(data, call.same).clone(), mask)


class Call:
    """A call whose results are masked tensors; masks: those of the gradients of its results in a backward pass, by the number of the result."""

    __slots__ = ("masks",)

    def __init__(self):
        self.masks = {}

    def same(self, grad):
        """Returns the mask of the result's gradient: the rule of elementwise functions with one result."""
        return self.masks[0]

    def enter(self, t, rule, sizes=None):
        """Returns the data of a tensor, broadcast to sizes if they are given."""
        if _is_recorded(t):
            return _Enter.apply(t, sizes, rule, t._grad_mask if isinstance(t, MaskedTensor) else None)
        return _plain(t) if sizes is None or t.shape == sizes else _plain(t).expand(sizes)

    def leave(self, data, mask, number=0):
        """Data that the call has made, with a mask: result `number` of it."""
        result = data if isinstance(data, MaskedTensor) else masked(data, mask)
        if result.requires_grad:
            grad_mask = result._grad_mask

            def record(grad):
                found = grad_mask.take()
                self.masks[number] = found if found is not None else grad._mask if isinstance(grad, MaskedTensor) else mask

            Tensor.register_hook(result, record)
        return result
