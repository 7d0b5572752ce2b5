"""Hooks of modules: registration for one module or globally, and the call of a module that has hooks.

HookRegistry, a base class of Module, registers the hooks of one module. Forward hooks are called here; backward_hook.py creates the autograd nodes
that call backward hooks.

Note [Hooked modules]: Module.__call__ tests one flag, _hooked, and calls forward directly if it is False, which keeps calls without hooks fast. The
flag is a class attribute of HookRegistry for global hooks, and an instance attribute for a module's hooks. Registering a hook sets the flag. The
first call that finds no hooks left clears it.
"""
from __future__ import annotations

import functools
import warnings
import weakref
from collections import OrderedDict

from gradus._C import Tensor
from gradus.utils.hooks import RemovableHandle

__all__ = [
    "register_module_buffer_registration_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
    "register_module_forward_pre_hook",
    "register_module_forward_hook",
    "register_module_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_full_backward_hook",
]


class BoundHook:
    """Calls `hook` with `module` as first argument. The reference to the module is weak, so that the hook does not keep it alive."""

    def __init__(self, hook, module):
        self.hook = hook
        self.module = weakref.ref(module)
        functools.update_wrapper(self, hook)

    def __call__(self, *args, **kwargs):
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self):
        return {"hook": self.hook, "module": self.module()}

    def __setstate__(self, state):
        if state["module"] is None:
            raise RuntimeError("You are trying to revive the hook of a dead Module!")
        self.hook = state["hook"]
        self.module = weakref.ref(state["module"])


def add_hook(hooks, hook, *, prepend=False, marks=()):
    """Adds `hook` to the dictionary `hooks`. Returns a handle whose remove() removes the hook.

    prepend: the hook is called before the hooks that are registered already. marks: dictionaries in which the entry of the hook's id becomes True.
    """
    handle = RemovableHandle(hooks, extra_dict=list(marks))
    hooks[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    if prepend:
        for each in (hooks, *marks):
            each.move_to_end(handle.id, last=False)
    return handle


# ---- Global hooks, called for all modules ---------------------------------------------------------------------------------


class _CommonHooks(OrderedDict):
    """A dictionary of global hooks that sets the flag _hooked on every insertion, because programs may insert hooks without a register function."""

    def __setitem__(self, key, hook):
        HookRegistry._hooked = True
        super().__setitem__(key, hook)


# These dictionaries have the same names as in PyTorch, because programs save, clear and restore them.
_global_buffer_registration_hooks = OrderedDict()
_global_module_registration_hooks = OrderedDict()
_global_parameter_registration_hooks = OrderedDict()
_global_forward_pre_hooks = _CommonHooks()
_global_forward_hooks = _CommonHooks()
_global_forward_hooks_with_kwargs = OrderedDict()
_global_forward_hooks_always_called = OrderedDict()
_global_backward_pre_hooks = _CommonHooks()
_global_backward_hooks = _CommonHooks()
# True if the global backward hooks are full backward hooks, False if they are of the deprecated kind, None if there are none.
_global_is_full_backward_hook = None


def registered(hooks, module, name, value):
    """Calls the registration hooks hook(module, name, value) and returns the value to register: the last hook result that is not None, or `value`."""
    for hook in hooks.values():
        replacement = hook(module, name, value)
        if replacement is not None:
            value = replacement
    return value


def register_module_buffer_registration_hook(hook):
    """Registers hook(module, name, buffer), called before any module registers a buffer. A result other than None is registered instead.

    Returns a handle whose remove() removes the hook.
    """
    return add_hook(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook):
    """Registers hook(module, name, submodule), called before any module registers a submodule. A result other than None is registered instead.

    Returns a handle whose remove() removes the hook.
    """
    return add_hook(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook):
    """Registers hook(module, name, parameter), called before any module registers a parameter. A result other than None is registered instead.

    Returns a handle whose remove() removes the hook.
    """
    return add_hook(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook):
    """Registers hook(module, args), called before forward of every module. The hook returns None or new arguments. Returns a handle whose remove()
    removes the hook."""
    return add_hook(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Registers hook(module, args, output), called after forward of every module. The hook returns None, or a new output that replaces the old one.

    with_kwargs: the hook is hook(module, args, kwargs, output). always_call: the hook is also called if forward raises an exception. Returns a handle
    whose remove() removes the hook.
    """
    marks = [_global_forward_hooks_with_kwargs] * with_kwargs + [_global_forward_hooks_always_called] * always_call
    return add_hook(_global_forward_hooks, hook, marks=marks)


def _use_backward_hooks(full):
    """Records whether global backward hooks are full backward hooks (`full` is true) or of the deprecated kind. Raises RuntimeError if hooks of the
    other kind are registered."""
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError("Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
                           "Please use only one of them.")
    _global_is_full_backward_hook = full


def register_module_backward_hook(hook):
    """Registers hook(module, grad_input, grad_output), called after the backward pass of the autograd node that computed any module's output.

    Deprecated: use register_module_full_backward_hook. Returns a handle whose remove() removes the hook. Raises RuntimeError if a full backward hook
    is registered.
    """
    _use_backward_hooks(full=False)
    return add_hook(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook):
    """Registers hook(module, grad_output), called before the gradients of any module's inputs are computed. The hook returns None, or a new
    grad_output that replaces the old one. Returns a handle whose remove() removes the hook."""
    return add_hook(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook):
    """Registers hook(module, grad_input, grad_output), called when the gradients of any module's inputs have been computed.

    The hook returns None or a new grad_input. Returns a handle whose remove() removes the hook. Raises RuntimeError if a hook of
    register_module_backward_hook is registered.
    """
    _use_backward_hooks(full=True)
    return add_hook(_global_backward_hooks, hook)


# ---- Hooks of one module ----------------------------------------------------------------------------------------------------


class HookRegistry:
    """A base class of Module with the methods that register hooks for one module."""

    # False: no hook is registered, and a call runs forward directly. True: there may be hooks. See Note [Hooked modules].
    _hooked = False

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Registers hook(module, args), called before forward. The hook returns None, or new positional arguments (one value or a tuple).

        prepend: calls `hook` before the hooks registered so far. with_kwargs: the hook is hook(module, args, kwargs) and returns None or a tuple
        (args, kwargs). Returns a handle whose remove() removes the hook.

        >>> net = nn.Linear(2, 1)
        >>> handle = net.register_forward_pre_hook(lambda module, args: (args[0] * 0,))
        >>> bool((net(gradus.ones(2)) == net.bias).all())
        True
        >>> handle.remove()
        """
        self._hooked = True
        return add_hook(self._forward_pre_hooks, hook, prepend=prepend, marks=[self._forward_pre_hooks_with_kwargs] * with_kwargs)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Registers hook(module, args, output), called after forward. The hook returns None or a new output.

        prepend: calls `hook` before the hooks registered so far. with_kwargs: the hook is hook(module, args, kwargs, output). always_call: the hook
        is also called if forward or another hook raises an exception. In that case an exception of `hook` itself becomes a warning. Returns a handle
        whose remove() removes the hook.
        """
        self._hooked = True
        marks = [self._forward_hooks_with_kwargs] * with_kwargs + [self._forward_hooks_always_called] * always_call
        return add_hook(self._forward_hooks, hook, prepend=prepend, marks=marks)

    def _use_backward_hooks(self, full):
        """Records whether the module's backward hooks are full backward hooks (`full` is true) or of the deprecated kind. Raises RuntimeError if
        hooks of the other kind are registered."""
        if self._is_full_backward_hook is (not full):
            raise RuntimeError("Cannot use both regular backward hooks and full backward hooks on a single Module. "
                               "Please use only one of them.")
        self._is_full_backward_hook = full
        self._hooked = True

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Registers hook(module, grad_output), called before the gradients of the module's inputs are computed.

        grad_output is a tuple. The hook returns None or a new grad_output. Returns a handle whose remove() removes the hook.
        """
        self._hooked = True
        return add_hook(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """Registers hook(module, grad_input, grad_output), called when the gradients of the module's inputs have been computed.

        Both gradients are tuples. grad_input has one element for each positional argument of forward. The element is None if the argument is not a
        tensor. The hook returns None or a new grad_input. If no input requires a gradient, the hook is called when grad_output is known. Inputs and
        outputs of the module must not be changed in place. Returns a handle whose remove() removes the hook. Raises RuntimeError if the module has a
        hook of register_backward_hook.
        """
        self._use_backward_hooks(full=True)
        return add_hook(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook):
        """Registers hook(module, grad_input, grad_output), called after the backward pass of the autograd node that computed the output.

        grad_input: the gradients of that node's inputs, which need not be the module's inputs. Deprecated: use register_full_backward_hook. Returns a
        handle whose remove() removes the hook. Raises RuntimeError if a full backward hook is registered.
        """
        self._use_backward_hooks(full=False)
        return add_hook(self._backward_hooks, hook)


# ---- Calling a module that has hooks --------------------------------------------------------------------------------------------


def call_with_hooks(module, args, kwargs):
    """Returns the result of calling `module` with all its hooks. Clears the flags _hooked if there are no hooks, see Note [Hooked modules]."""
    common = _global_forward_pre_hooks or _global_forward_hooks or _global_backward_pre_hooks or _global_backward_hooks
    own = module._forward_pre_hooks or module._forward_hooks or module._backward_pre_hooks or module._backward_hooks
    if not common and HookRegistry._hooked:
        HookRegistry._hooked = False
    if not own:
        module.__dict__.pop("_hooked", None)
    if not (common or own):
        return module.forward(*args, **kwargs)
    call = _HookedCall(module, args, kwargs)
    try:
        return call.run()
    except Exception:
        call.run_always_called()
        raise


class _HookedCall:
    """The state of one call of a module with hooks: its arguments and its current result."""

    def __init__(self, module, args, kwargs):
        self.module = module
        self.args = args
        self.kwargs = kwargs
        self.result = None
        self.called = set()  # ids of the always_call hooks called so far; after an exception only the other always_call hooks are called

    def run(self):
        """Calls the module with all its hooks and returns the result."""
        module = self.module
        self.run_forward_pre_hooks()
        pre_hooks = [*_global_backward_pre_hooks.values(), *module._backward_pre_hooks.values()]
        full_hooks, node_hooks = self.backward_hooks()
        backward = None
        if full_hooks or pre_hooks:
            from .backward_hook import BackwardHook  # imported here because few programs use backward hooks

            backward = BackwardHook(module, full_hooks, pre_hooks)
            self.args = backward.setup_inputs(self.args)
        self.result = module.forward(*self.args, **self.kwargs)
        self.run_forward_hooks()
        if backward is not None:
            if not isinstance(self.result, (Tensor, tuple)):
                warnings.warn("For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
                              f"but received {type(self.result)}", stacklevel=5)
            self.result = backward.setup_outputs(self.result)
        if node_hooks:
            self.hook_last_node(node_hooks)
        return self.result

    def run_forward_pre_hooks(self):
        """Calls the forward pre-hooks, global ones first, and replaces the arguments by their results."""
        module = self.module
        for key, hook in (*_global_forward_pre_hooks.items(), *module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                changed = hook(module, self.args, self.kwargs)
                if changed is None:
                    continue
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}.")
                self.args, self.kwargs = changed
            else:
                changed = hook(module, self.args)
                if changed is not None:
                    self.args = changed if isinstance(changed, tuple) else (changed,)

    def run_forward_hook(self, key, hook):
        """Calls one forward hook. If the hook returns a value other than None, this becomes the module's result."""
        if key in self.module._forward_hooks_with_kwargs or key in _global_forward_hooks_with_kwargs:
            changed = hook(self.module, self.args, self.kwargs, self.result)
        else:
            changed = hook(self.module, self.args, self.result)
        if changed is not None:
            self.result = changed

    def run_forward_hooks(self):
        """Calls the forward hooks, global ones first."""
        always = self.module._forward_hooks_always_called
        for key, hook in (*_global_forward_hooks.items(), *self.module._forward_hooks.items()):
            if key in always or key in _global_forward_hooks_always_called:
                self.called.add(key)
            self.run_forward_hook(key, hook)

    def run_always_called(self):
        """Calls the always_call hooks that were not called because of an exception. Exceptions of these hooks become warnings."""
        for kind, hooks, always in (("global module", _global_forward_hooks, _global_forward_hooks_always_called),
                                    ("module", self.module._forward_hooks, self.module._forward_hooks_always_called)):
            for key, hook in list(hooks.items()):
                if key not in always or key in self.called:
                    continue
                try:
                    self.run_forward_hook(key, hook)
                except Exception as error:
                    warnings.warn(f"{kind} forward hook with ``always_call=True`` raised an exception that was silenced as another error was "
                                  f"raised in forward: {error}", stacklevel=4)

    def backward_hooks(self):
        """Returns (full backward hooks, backward hooks of the deprecated kind). In each list global hooks come first."""
        by_kind = {True: [], False: [], None: []}
        by_kind[_global_is_full_backward_hook] += _global_backward_hooks.values()
        by_kind[self.module._is_full_backward_hook] += self.module._backward_hooks.values()
        return by_kind[True], by_kind[False]

    def hook_last_node(self, hooks):
        """Registers `hooks`, backward hooks of the deprecated kind, with the autograd node of the output's first tensor."""
        output = self.result
        while not isinstance(output, Tensor):
            output = next(v for v in output.values() if isinstance(v, Tensor)) if isinstance(output, dict) else output[0]
        if output.grad_fn is not None:
            for hook in hooks:
                output.grad_fn.register_hook(BoundHook(hook, self.module))
