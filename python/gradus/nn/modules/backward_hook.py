"""Full backward hooks of a module.

The tensors that go into a module, and those that come out, pass through an identity node each. The node of the outputs sees grad_output,
the node of the inputs sees grad_input, and the user's hooks are called when both are known.
"""
from __future__ import annotations

import warnings

import gradus
from gradus._C import Tensor


class BackwardHookFunction(gradus.autograd.Function):
    """The identity of several tensors as one node."""

    @staticmethod
    def forward(ctx, *tensors):
        ctx.mark_non_differentiable(*[tensor for tensor in tensors if not tensor.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        return grads


class BackwardHook:
    """The hooks of one call of a module: setup_inputs before forward, setup_outputs after it."""

    def __init__(self, module, hooks, pre_hooks):
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs = None
        self.input_count = 0
        self.input_places = None  # which arguments are tensors; None: no input requires a gradient
        self.output_count = 0
        self.output_places = None

    def setup_inputs(self, args):
        """Returns the arguments that forward gets."""
        args, self.input_places = _through_node(args, self.on_input_gradients)
        self.input_count = len(args)
        return args

    def setup_outputs(self, result):
        """Returns the result that the caller gets."""
        outputs = result if isinstance(result, tuple) else (result,)
        self.output_count = len(outputs)
        outputs, self.output_places = _through_node(outputs, self.on_output_gradients)
        return outputs if isinstance(result, tuple) else outputs[0]

    def on_input_gradients(self, grad_inputs, _):
        """Calls the hooks, from a hook of the inputs' node."""
        if self.grad_outputs is None:
            return None  # the gradient reached the inputs without passing the outputs, as in double backward
        grads = _spread(grad_inputs, self.input_places, self.input_count)
        for hook in self.hooks:
            changed = hook(self.module, grads, self.grad_outputs)
            if changed is None:
                continue
            if len(changed) != len(grads):
                raise RuntimeError(f"Backward hook returned an invalid number of grad_input, got {len(changed)}, but expected {len(grads)}")
            grads = changed
        self.grad_outputs = None
        return tuple(grads[place] for place in self.input_places)

    def on_output_gradients(self, _, grad_outputs):
        """Keeps the gradients of the outputs and calls the pre-hooks, from a hook of the outputs' node."""
        self.grad_outputs = _spread(grad_outputs, self.output_places, self.output_count)
        for hook in self.pre_hooks:
            changed = hook(self.module, self.grad_outputs)
            if changed is None:
                continue
            if len(changed) != self.output_count:
                raise RuntimeError(f"Backward pre hook returned an invalid number of grad_output, got {len(changed)}, "
                                   f"but expected {self.output_count}")
            self.grad_outputs = changed
        grads = self.grad_outputs
        if self.input_places is None:
            self.run_without_inputs()
        return tuple(grads[place] for place in self.output_places)

    def run_without_inputs(self):
        """No input will have a gradient: calls the hooks with what there is."""
        warnings.warn("Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require "
                      "gradients.", stacklevel=5)
        for hook in self.hooks:
            changed = hook(self.module, (None,) * self.input_count, self.grad_outputs)
            if changed is not None and not (isinstance(changed, tuple) and all(grad is None for grad in changed)):
                raise RuntimeError("Backward hook for Modules where no input requires gradient should always return None or None for all "
                                   "gradients.")
        self.grad_outputs = None


def _spread(values, places, count):
    spread = [None] * count
    for place, value in zip(places, values):
        spread[place] = value
    return tuple(spread)


def _through_node(values, hook):
    """Passes the tensors among the values through one identity node with the hook. Returns the values and the indices of the tensors; (values, None) if no tensor requires a
    gradient."""
    places = [place for place, value in enumerate(values) if isinstance(value, Tensor)]
    tensors = [values[place] for place in places]
    if not (gradus.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)):
        return values, None
    passed = BackwardHookFunction.apply(*tensors)
    node = next(tensor.grad_fn for tensor in passed if tensor.grad_fn is not None)
    node.register_hook(hook)
    changed = list(values)
    for place, tensor in zip(places, passed):
        changed[place] = tensor
    return (tuple(changed) if type(values) is tuple else type(values)(*changed)), places
