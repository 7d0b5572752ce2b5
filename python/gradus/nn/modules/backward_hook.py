"""Calls the full backward hooks of a module.

The tensor arguments of a module pass through an identity node of the autograd graph, and its tensor results through a second identity node. In the
backward pass the node of the results receives grad_output, and later the node of the arguments receives grad_input. The hooks are called when both
gradients are known.
"""
from __future__ import annotations

import warnings

import gradus
from gradus._C import Tensor


class BackwardHookFunction(gradus.autograd.Function):
    """An autograd function that returns its tensors unchanged, as the outputs of one autograd node."""

    @staticmethod
    def forward(ctx, *tensors):
        ctx.mark_non_differentiable(*[tensor for tensor in tensors if not tensor.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        return grads


class BackwardHook:
    """The backward hooks of one call of a module. setup_inputs is called before forward, setup_outputs after it."""

    def __init__(self, module, hooks, pre_hooks):
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs = None
        self.input_count = 0
        self.input_places = None  # indices of the tensor arguments, or None if no argument requires a gradient
        self.output_count = 0
        self.output_places = None

    def setup_inputs(self, args):
        """Passes the tensors in `args` through an identity autograd node. Returns the arguments of forward: `args` with these tensors replaced by the
        node's outputs."""
        args, self.input_places = _through_node(args, self.on_input_gradients)
        self.input_count = len(args)
        return args

    def setup_outputs(self, result):
        """Passes the tensors in `result` through an identity autograd node. Returns `result` with these tensors replaced by the node's outputs."""
        outputs = result if isinstance(result, tuple) else (result,)
        self.output_count = len(outputs)
        outputs, self.output_places = _through_node(outputs, self.on_output_gradients)
        return outputs if isinstance(result, tuple) else outputs[0]

    def on_input_gradients(self, grad_inputs, _):
        """Calls the hooks of the module with grad_input and grad_output, and returns the gradients as the hooks changed them. This method is a hook
        on the identity autograd node through which setup_inputs passes the arguments of forward."""
        if self.grad_outputs is None:
            return None  # The gradient reached the inputs without passing the outputs, as in double backward.
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
        """Stores the gradients of the module's results and calls the pre-hooks. This method is a hook on the identity autograd node through which
        setup_outputs passes the results of forward."""
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
        """Calls the hooks with a grad_input of None for each argument, because no argument requires a gradient."""
        warnings.warn("Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require "
                      "gradients.", stacklevel=5)
        for hook in self.hooks:
            changed = hook(self.module, (None,) * self.input_count, self.grad_outputs)
            if changed is not None and not (isinstance(changed, tuple) and all(grad is None for grad in changed)):
                raise RuntimeError("Backward hook for Modules where no input requires gradient should always return None or None for all "
                                   "gradients.")
        self.grad_outputs = None


def _spread(values, places, count):
    """Returns a tuple of `count` elements with `values` at the indices `places` and None elsewhere."""
    spread = [None] * count
    for place, value in zip(places, values):
        spread[place] = value
    return tuple(spread)


def _through_node(values, hook):
    """Passes the tensors among `values` through one identity node with the given hook. Returns (values, indices of the tensors).

    If no tensor requires a gradient, it returns (values, None).
    """
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
