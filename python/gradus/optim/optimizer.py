"""Optimizer, the base class of all optimizers, with parameter groups, state and hooks.

A subclass passes default options to ``__init__`` and defines ``step``. The state of a parameter is the dictionary ``self.state[parameter]``.
"""
import contextlib
import functools
import warnings
from collections import OrderedDict, defaultdict
from copy import deepcopy
from itertools import chain

import gradus
from gradus.utils.hooks import RemovableHandle

__all__ = ["Optimizer", "register_optimizer_step_pre_hook", "register_optimizer_step_post_hook", "swap_in_optimizer_params_and_state"]

_global_pre_hooks = OrderedDict()
_global_post_hooks = OrderedDict()


class _RequiredParameter:
    """The class of `required`, which stands in `defaults` for an option without default value. Every parameter group must set such an option."""

    def __repr__(self):
        return "<required parameter>"


required = _RequiredParameter()


def register_optimizer_step_pre_hook(hook):
    """Registers ``hook(optimizer, args, kwargs)``, called before every step of every optimizer. Returns a handle whose remove() removes the hook."""
    return _register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    """Registers ``hook(optimizer, args, kwargs)``, called after every step of every optimizer. Returns a handle whose remove() removes the hook."""
    return _register(_global_post_hooks, hook)


def _register(hooks, hook, prepend=False):
    """Adds `hook` to the dictionary `hooks`, as the first one if `prepend` is true. Returns a handle whose remove() removes the hook."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _type_name(value):
    """Returns the type of a value as PyTorch prints it in error texts."""
    if isinstance(value, gradus.Tensor):
        return value.type()
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _with_hooks(step):
    """Returns a method that calls the step hooks and `step`. If the step() of a subclass calls this method by super(), the hooks are not called a
    second time."""

    @functools.wraps(step)
    def hooked_step(self, *args, **kwargs):
        if not (self._optimizer_step_pre_hooks or self._optimizer_step_post_hooks or _global_pre_hooks or _global_post_hooks):
            return step(self, *args, **kwargs)
        if type(self).step is not hooked_step:
            return step(self, *args, **kwargs)
        for hook in chain(_global_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
            result = hook(self, args, kwargs)
            if result is not None:
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(f"{hook} must return None or a tuple of (new_args, new_kwargs), but got {result}.")
                args, kwargs = result
        loss = step(self, *args, **kwargs)
        for hook in chain(self._optimizer_step_post_hooks.values(), _global_post_hooks.values()):
            hook(self, args, kwargs)
        return loss

    hooked_step.hooked = True
    return hooked_step


class Optimizer:
    """Base class of all optimizers.

    Args:
        params: an iterable of tensors, of ``(name, tensor)`` pairs, or of dictionaries. Each dictionary is a parameter group, with tensors or pairs
            under ``"params"`` and options for them. The order of the tensors must be the same in every run, because ``state_dict`` numbers them.
        defaults (dict): values for options that a parameter group does not set.

    Raises TypeError if `params` is a single tensor or a set, or contains something that is not a tensor; ValueError if there are no parameters, if a
    tensor is not a leaf, or if a tensor is in two groups.

    >>> import gradus
    >>> class Descent(gradus.optim.Optimizer):
    ...     def step(self, closure=None):
    ...         with gradus.no_grad():
    ...             for group in self.param_groups:
    ...                 for p in group["params"]:
    ...                     p.sub_(p.grad, alpha=group["lr"])
    >>> w = gradus.ones(1, requires_grad=True)
    >>> optimizer = Descent([w], {"lr": 0.5})
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> w.item()
    0.5
    """

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):
            cls.step = _with_hooks(cls.step)

    def __init__(self, params, defaults):
        if isinstance(params, gradus.Tensor):
            raise TypeError("params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                            + _type_name(params))
        self.defaults = defaults
        self._make_hooks()
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def _make_hooks(self):
        """Creates the dictionaries of hooks that do not exist yet."""
        for name in ("step_pre", "step_post", "state_dict_pre", "state_dict_post", "load_state_dict_pre", "load_state_dict_post"):
            self.__dict__.setdefault(f"_optimizer_{name}_hooks", OrderedDict())

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._make_hooks()

    def __repr__(self):
        groups = [f"\nParameter Group {index}\n" + "".join(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
                  for index, group in enumerate(self.param_groups)]
        return f"{type(self).__name__} ({''.join(groups)})"

    def register_step_pre_hook(self, hook):
        """Registers ``hook(optimizer, args, kwargs)``, called before each step. The hook may return new ``(args, kwargs)``. Returns a handle whose
        remove() removes the hook."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """Registers ``hook(optimizer, args, kwargs)``, called after each step. Returns a handle whose remove() removes the hook."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Registers ``hook(optimizer)``, called before ``state_dict``. Returns a handle whose remove() removes the hook.

        prepend: calls the hook before the hooks registered so far.
        """
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Registers ``hook(optimizer, state_dict)``, called after ``state_dict``. The hook may return a new dictionary. Returns a handle
        whose remove() removes the hook."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Registers ``hook(optimizer, state_dict)``, called before ``load_state_dict``. The hook may return a new dictionary. Returns a
        handle whose remove() removes the hook."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Registers ``hook(optimizer)``, called after ``load_state_dict``. Returns a handle whose remove() removes the hook."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    def state_dict(self):
        """Returns the state and the parameter groups, with each parameter replaced by its index. PyTorch's optimizers can load the result.

        >>> import gradus
        >>> w = gradus.ones(1, requires_grad=True)
        >>> gradus.optim.SGD([w], lr=0.1).state_dict()["param_groups"][0]["params"]
        [0]
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers = {}
        packed_groups = []
        for group in self.param_groups:
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            packed_groups.append(packed)
        packed_state = {numbers[id(key)] if isinstance(key, gradus.Tensor) else key: value for key, value in self.state.items()}
        state_dict = {"state": packed_state, "param_groups": packed_groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            result = hook(self, state_dict)
            if result is not None:
                state_dict = result
        return state_dict

    def load_state_dict(self, state_dict):
        """Restores a state that ``state_dict`` of this class or of PyTorch's optimizer returned.

        Tensors of the state, except ``"step"``, are converted to the dtype and device of their parameter; a tensor that already has them is shared
        with ``state_dict``. Raises ValueError, and changes nothing, if the numbers of groups or parameters differ.
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            result = hook(self, state_dict)
            if result is not None:
                state_dict = result
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(self.param_groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(group["params"]) != len(saved["params"]) for group, saved in zip(self.param_groups, saved_groups)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
        params = {}
        for group, saved in zip(self.param_groups, saved_groups):
            params.update(zip(saved["params"], group["params"]))
            saved["params"] = group["params"]
            if "param_names" in group:
                saved.setdefault("param_names", group["param_names"])
        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            state[params.get(key, key)] = _cast_state(params[key], value) if key in params else value
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def zero_grad(self, set_to_none=True):
        """Sets the gradients to None, or with ``set_to_none=False`` to zero."""
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif param.grad is not None:
                    if param.grad.grad_fn is not None:
                        param.grad.detach_()
                    else:
                        param.grad.requires_grad_(False)
                    param.grad.zero_()

    def step(self, closure=None):
        """Updates the parameters. ``closure`` recomputes the loss and its gradients and returns the loss, which ``step`` then returns."""
        raise NotImplementedError

    def add_param_group(self, param_group):
        """Adds a parameter group, e.g. layers that are no longer frozen.

        Args:
            param_group (dict): tensors or ``(name, tensor)`` pairs under ``"params"``, and options under their names.

        Raises the same errors as the constructor, and in that case adds nothing.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params, names = _params_and_names(param_group["params"])
        for param in params:
            if not isinstance(param, gradus.Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + _type_name(param))
            if not self.defaults.get("differentiable") and not (param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
        distinct = {id(param) for param in params}
        if len(distinct) != len(params):
            warnings.warn("optimizer contains a parameter group with duplicate parameters; in future, this will cause an error",
                          stacklevel=3)
        for group in self.param_groups:
            if bool(names) != ("param_names" in group):
                raise ValueError("all optimizer param groups should be with/without names. cannot add param group "
                                 f"{'with' if names else 'without'} names to the optimizer")
            if not distinct.isdisjoint(map(id, group["params"])):
                raise ValueError("some parameters appear in more than one parameter group")
        param_group["params"] = params
        if names:
            param_group["param_names"] = names
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        self.param_groups.append(param_group)


@contextlib.contextmanager
def swap_in_optimizer_params_and_state(optimizer, swapin_parameters, swapin_optim_state):
    """Returns a context manager in which the optimizer has other parameters and another state.

    At the end of the context the optimizer's own parameters and state are restored.

    Args:
        optimizer (Optimizer): an optimizer with a state.
        swapin_parameters (dict): its values are the parameters inside the context, in the order of the optimizer's own parameters.
        swapin_optim_state (dict): a result of ``state_dict``. Its tensors are changed in place; tensors that a step adds to the state are discarded.

    >>> import gradus
    >>> w, other = gradus.ones(1, requires_grad=True), gradus.zeros(1, requires_grad=True)
    >>> optimizer = gradus.optim.SGD([w], lr=0.5)
    >>> other.grad = gradus.ones(1)
    >>> with gradus.optim.swap_in_optimizer_params_and_state(optimizer, {"w": other}, optimizer.state_dict()):
    ...     optimizer.step()
    >>> w.item(), other.item()
    (1.0, -0.5)
    """
    own_state, own_groups = optimizer.state, [dict(group) for group in optimizer.param_groups]
    given, state = iter(swapin_parameters.values()), defaultdict(dict)
    try:
        for group, saved in zip(optimizer.param_groups, swapin_optim_state["param_groups"], strict=True):
            group.update({key: value for key, value in saved.items() if key != "params"})
            group["params"] = [next(given) for _ in saved["params"]]
            for param, number in zip(group["params"], saved["params"]):
                state[param] = dict(swapin_optim_state["state"].get(number, {}))
        optimizer.state = state
        yield
    finally:
        for group, own in zip(optimizer.param_groups, own_groups):
            group.clear()
            group.update(own)
        optimizer.state = own_state


def _params_and_names(params):
    """Returns the tensors and the names of a group as two lists. Raises ValueError if only some tensors have a name, TypeError for a set."""
    if isinstance(params, gradus.Tensor):
        return [params], []
    if isinstance(params, set):
        raise TypeError("optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                        "will change between runs. Please use a list instead.")
    params = list(params)
    names = [param[0] for param in params if isinstance(param, tuple)]
    if names and len(names) != len(params):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return [param[1] for param in params] if names else params, names


def _cast_state(param, value, key=None):
    """Returns `value`, a part of a parameter's state, with its tensors converted to the parameter's dtype and device. Containers are copied.

    key: the name of `value` in the state. The value of "step" is converted to float32 and stays on its device.
    """
    if isinstance(value, gradus.Tensor):
        if key == "step":
            return value if value.dtype == gradus.float32 else value.to(dtype=gradus.float32)
        return value.to(dtype=param.dtype, device=param.device) if param.is_floating_point() else value.to(device=param.device)
    if isinstance(value, dict):
        return {key: _cast_state(param, item, key) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return type(value)(_cast_state(param, item) for item in value)
    return value
