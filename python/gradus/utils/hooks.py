"""Handles of hooks, and the hooks of modules that see gradients."""

import weakref
from collections import OrderedDict

from gradus import _C

__all__ = ["RemovableHandle", "BackwardHook"]


class RemovableHandle:
    """Takes a hook out of the dictionary it was put into; as a context manager at the end of the block.

    The hook stands in `hooks_dict` under the handle's `id`, and what else is known of it in the dictionaries of `extra_dict`.
    """

    next_id = 0

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extra = extra_dict if isinstance(extra_dict, list) else [] if extra_dict is None else [extra_dict]
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra)

    def remove(self):
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self):
        return self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref)

    def __setstate__(self, state):
        # A dictionary that was gone is replaced by one of nobody's.
        hooks, self.id, extra = state
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(weakref.ref(OrderedDict() if d is None else d) for d in extra)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()


class GraphHandle(RemovableHandle):
    """Removes a hook of a tensor or of a node."""

    def __init__(self, number):
        self.id = number

    def remove(self):
        _C._remove_hook(self.id)

    def __getstate__(self):
        raise TypeError("the handle of a hook on a tensor or a node cannot be pickled")


class BackwardHook:
    """Calls the backward hooks of a module, around one call of it.

    Inputs and outputs of the module go through an identity each, whose node sees their gradients together.
    """

    def __init__(self, module, user_hooks, user_pre_hooks):
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs = None
        self.n_inputs = -1
        self.n_outputs = -1
        self.inputs_at = None  # positions of the tensors among the inputs; None: none of them requires a gradient
        self.outputs_at = None

    def setup_input_hook(self, args):
        def watch(node):
            node.register_hook(lambda grad_inputs, grad_outputs: self._after(grad_inputs))

        args, self.inputs_at = _watch_tensors(args, watch)
        self.n_inputs = len(args)
        return args

    def setup_output_hook(self, result):
        def watch(node):
            node.register_prehook(self._before)

        results = result if isinstance(result, tuple) else (result,)
        self.n_outputs = len(results)
        results, self.outputs_at = _watch_tensors(results, watch)
        return results if isinstance(result, tuple) else results[0]

    def _before(self, grads):
        grads = _spread(self.outputs_at, grads, self.n_outputs)
        for hook in self.user_pre_hooks:
            replaced = hook(self.module, grads)
            if replaced is not None:
                grads = _checked(replaced, grads, "Backward pre hook", "grad_output")
        self.grad_outputs = grads
        if self.inputs_at is None:
            self._run_without_inputs()
        return tuple(grads[i] for i in self.outputs_at)

    def _run_without_inputs(self):
        nothing = (None,) * self.n_inputs
        for hook in self.user_hooks:
            replaced = hook(self.module, nothing, self.grad_outputs)
            if replaced is not None and not (isinstance(replaced, tuple) and all(grad is None for grad in replaced)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for all gradients."
                )
        self.grad_outputs = None

    def _after(self, grads):
        if self.grad_outputs is None:
            return None  # gradients that came to the inputs past the outputs
        grads = _spread(self.inputs_at, grads, self.n_inputs)
        for hook in self.user_hooks:
            replaced = hook(self.module, grads, self.grad_outputs)
            if replaced is not None:
                grads = _checked(replaced, grads, "Backward hook", "grad_input")
        self.grad_outputs = None
        return tuple(grads[i] for i in self.inputs_at)


def _checked(replaced, grads, who, what):
    if not isinstance(replaced, tuple):
        replaced = (replaced,)
    if len(replaced) != len(grads):
        raise RuntimeError(f"{who} returned an invalid number of {what}, got {len(replaced)}, but expected {len(grads)}")
    return replaced


def _spread(positions, grads, n):
    """The gradients at their positions among n arguments."""
    spread = [None] * n
    for i, grad in zip(positions, grads):
        spread[i] = grad
    return tuple(spread)


def _watch_tensors(args, watch):
    """Puts an identity around the tensors, shows its node to `watch`, and tells where the tensors are; None when no gradient is wanted."""
    from gradus.autograd.function import Identity

    at = [i for i, arg in enumerate(args) if isinstance(arg, _C.Tensor)]
    if not (_C.is_grad_enabled() and any(args[i].requires_grad for i in at)):
        return args, None
    tensors = Identity.apply(*(args[i] for i in at))
    watch(next(t.grad_fn for t in tensors if t.grad_fn is not None))
    items = list(args)
    for i, tensor in zip(at, tensors):
        items[i] = tensor
    return type(args)(*items) if hasattr(args, "_fields") else tuple(items), at
