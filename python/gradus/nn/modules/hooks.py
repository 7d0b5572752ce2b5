"""Hooks of modules: those of one, those common to all modules, and the call of a module that has some.

A module's own hooks are registered by the methods of HookRegistry, a base of Module. Forward hooks are called here; backward_hook.py makes the
autograd nodes that backward hooks hang on.

Note [Hooked modules]: Module.__call__ looks at one flag, _hooked, and calls forward at once where it is False. It is an attribute of the
class Module for hooks common to all modules, and of an instance for its own. Registering sets it; it is cleared by the first call that
finds no hooks left.
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
    """A hook that gets a module as its first argument, without keeping it alive."""

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
    """Puts a hook into its dictionary and its id into every dictionary of marks; returns the handle."""
    handle = RemovableHandle(hooks, extra_dict=list(marks))
    hooks[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    if prepend:
        for each in (hooks, *marks):
            each.move_to_end(handle.id, last=False)
    return handle


# ---- Hooks common to all modules ------------------------------------------------------------------------------------------


class _CommonHooks(OrderedDict):
    """The dictionary of hooks common to all modules. It also notices hooks that a program inserts without a register function."""

    def __setitem__(self, key, hook):
        HookRegistry._hooked = True
        super().__setitem__(key, hook)


# The names are PyTorch's: programs save, clear and restore these dictionaries.
_global_buffer_registration_hooks = OrderedDict()
_global_module_registration_hooks = OrderedDict()
_global_parameter_registration_hooks = OrderedDict()
_global_forward_pre_hooks = _CommonHooks()
_global_forward_hooks = _CommonHooks()
_global_forward_hooks_with_kwargs = OrderedDict()
_global_forward_hooks_always_called = OrderedDict()
_global_backward_pre_hooks = _CommonHooks()
_global_backward_hooks = _CommonHooks()
_global_is_full_backward_hook = None  # the kind of the hooks in _global_backward_hooks: there is one kind at a time


def registered(hooks, module, name, value):
    """Returns the value that is registered under a name, after the registration hooks have seen and perhaps replaced it."""
    for hook in hooks.values():
        replacement = hook(module, name, value)
        if replacement is not None:
            value = replacement
    return value


def register_module_buffer_registration_hook(hook):
    """Calls hook(module, name, buffer) before any module registers a buffer; what it returns, unless None, is registered instead."""
    return add_hook(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook):
    """Calls hook(module, name, submodule) before any module registers a submodule; what it returns, unless None, is registered instead."""
    return add_hook(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook):
    """Calls hook(module, name, parameter) before any module registers a parameter; what it returns, unless None, is registered instead."""
    return add_hook(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook):
    """Calls hook(module, args) before forward of every module. It returns None or the arguments to use instead."""
    return add_hook(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Calls hook(module, args, output) after forward of every module. It returns None or the output to use instead.

    with_kwargs: it is hook(module, args, kwargs, output). always_call: it is also called when forward has raised.
    """
    marks = [_global_forward_hooks_with_kwargs] * with_kwargs + [_global_forward_hooks_always_called] * always_call
    return add_hook(_global_forward_hooks, hook, marks=marks)


def _use_backward_hooks(full):
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError("Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
                           "Please use only one of them.")
    _global_is_full_backward_hook = full


def register_module_backward_hook(hook):
    """Calls hook(module, grad_input, grad_output) for the last node of every module. Use register_module_full_backward_hook."""
    _use_backward_hooks(full=False)
    return add_hook(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook):
    """Calls hook(module, grad_output) before the gradients of any module are computed. It returns None or the gradient to use instead."""
    return add_hook(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook):
    """Calls hook(module, grad_input, grad_output) when the gradients of any module's inputs are known.

    It returns None or the grad_input to use instead.
    """
    _use_backward_hooks(full=True)
    return add_hook(_global_backward_hooks, hook)


# ---- Hooks of one module ----------------------------------------------------------------------------------------------------


class HookRegistry:
    """The part of Module that registers hooks for its calls and gradients."""

    _hooked = False  # Note [Hooked modules]

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Calls hook(module, args) before each forward. It returns None, or the positional arguments to use instead (one, or a tuple).

        prepend: before the hooks there are. with_kwargs: it is hook(module, args, kwargs) and returns None or a tuple (args, kwargs).

        >>> net = nn.Linear(2, 1)
        >>> handle = net.register_forward_pre_hook(lambda module, args: (args[0] * 0,))
        >>> bool((net(gradus.ones(2)) == net.bias).all())
        True
        >>> handle.remove()
        """
        self._hooked = True
        return add_hook(self._forward_pre_hooks, hook, prepend=prepend, marks=[self._forward_pre_hooks_with_kwargs] * with_kwargs)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Calls hook(module, args, output) after each forward. It returns None or the output to use instead.

        prepend: before the hooks there are. with_kwargs: it is hook(module, args, kwargs, output). always_call: it is also called when
        forward, or a hook, has raised; what it raises itself is then only warned of.
        """
        self._hooked = True
        marks = [self._forward_hooks_with_kwargs] * with_kwargs + [self._forward_hooks_always_called] * always_call
        return add_hook(self._forward_hooks, hook, prepend=prepend, marks=marks)

    def _use_backward_hooks(self, full):
        if self._is_full_backward_hook is (not full):
            raise RuntimeError("Cannot use both regular backward hooks and full backward hooks on a single Module. "
                               "Please use only one of them.")
        self._is_full_backward_hook = full
        self._hooked = True

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Calls hook(module, grad_output) before the gradients of the module's inputs are computed.

        grad_output is a tuple. The hook returns None or the gradients to use instead.
        """
        self._hooked = True
        return add_hook(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """Calls hook(module, grad_input, grad_output) when the gradients of the module's inputs are known.

        Both are tuples: grad_input has a place for each positional argument of forward, None for one that is no tensor. The hook returns None
        or the grad_input to use instead. Where no input requires a gradient it is called when the gradient of the outputs is known. Inputs
        and outputs must not be changed in place. RuntimeError: the module has a hook of register_backward_hook.
        """
        self._use_backward_hooks(full=True)
        return add_hook(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook):
        """Calls hook(module, grad_input, grad_output) for the node that made the output, which may not be all of the module.

        Use register_full_backward_hook.
        """
        self._use_backward_hooks(full=False)
        return add_hook(self._backward_hooks, hook)


# ---- The call of a module with hooks --------------------------------------------------------------------------------------------


def call_with_hooks(module, args, kwargs):
    """Calls a module that may have hooks: see Note [Hooked modules]."""
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
    """One call: its arguments and its result so far."""

    def __init__(self, module, args, kwargs):
        self.module = module
        self.args = args
        self.kwargs = kwargs
        self.result = None
        self.called = set()  # ids of the always_call hooks that were called

    def run(self):
        module = self.module
        self.run_forward_pre_hooks()
        pre_hooks = [*_global_backward_pre_hooks.values(), *module._backward_pre_hooks.values()]
        full_hooks, node_hooks = self.backward_hooks()
        backward = None
        if full_hooks or pre_hooks:
            from .backward_hook import BackwardHook  # a module of its own, loaded by the programs that use it

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
        if key in self.module._forward_hooks_with_kwargs or key in _global_forward_hooks_with_kwargs:
            changed = hook(self.module, self.args, self.kwargs, self.result)
        else:
            changed = hook(self.module, self.args, self.result)
        if changed is not None:
            self.result = changed

    def run_forward_hooks(self):
        always = self.module._forward_hooks_always_called
        for key, hook in (*_global_forward_hooks.items(), *self.module._forward_hooks.items()):
            if key in always or key in _global_forward_hooks_always_called:
                self.called.add(key)
            self.run_forward_hook(key, hook)

    def run_always_called(self):
        """Calls the always_call hooks that an exception has skipped."""
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
        """Returns the full hooks and those of the last node, common ones first."""
        by_kind = {True: [], False: [], None: []}
        by_kind[_global_is_full_backward_hook] += _global_backward_hooks.values()
        by_kind[self.module._is_full_backward_hook] += self.module._backward_hooks.values()
        return by_kind[True], by_kind[False]

    def hook_last_node(self, hooks):
        output = self.result
        while not isinstance(output, Tensor):
            output = next(v for v in output.values() if isinstance(v, Tensor)) if isinstance(output, dict) else output[0]
        if output.grad_fn is not None:
            for hook in hooks:
                output.grad_fn.register_hook(BoundHook(hook, self.module))
