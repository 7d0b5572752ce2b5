"""The state of a module as a dictionary of tensors, and back: the part of Module behind state_dict and load_state_dict."""
from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from typing import Any

import gradus
from gradus._C import Tensor

from ..parameter import Parameter, is_lazy
from .hooks import BoundHook, add_hook

_EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """The result of load_state_dict: keys that the state lacks, and keys that the module does not have."""

    __slots__ = ()

    def __repr__(self):
        return super().__repr__() if self.missing_keys or self.unexpected_keys else "<All keys matched successfully>"

    __str__ = __repr__


def _is_tensor_like(value):
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


class StateDict:
    """Saving and loading of parameters and buffers by name.

    A class with further state overrides get_extra_state and set_extra_state; one that saves in another form, _save_to_state_dict and
    _load_from_state_dict, which see the module alone and not its children. _version is kept beside the state, so that a class can tell states
    of an older form.
    """

    _version = 1

    def get_extra_state(self):
        """Override to return further state, which state_dict keeps under the key "_extra_state"."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state):
        """Override to take back what get_extra_state returned."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    # ---- Saving -------------------------------------------------------------------------------------------------------------

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """Returns all parameters and persistent buffers by name, as an OrderedDict, or put into destination.

        The tensors share memory with the module's. prefix: put before every name. keep_vars: they are the parameters themselves, not detached
        from the graph. The attribute _metadata of the result has the version of each module.

        >>> list(nn.Linear(2, 3).state_dict(prefix="first."))
        ['first.weight', 'first.bias']
        """
        if args:
            warnings.warn("Positional args are being deprecated, use kwargs instead.", FutureWarning, stacklevel=2)
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            changed = hook(self, destination, prefix, local_metadata)
            if changed is not None:
                if getattr(hook, "_from_public_api", False):
                    raise RuntimeError("state_dict post-hook must return None")
                destination = changed
        return destination

    def _local_state(self):
        """Own parameters and persistent buffers by name."""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                yield name, parameter
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                yield name, buffer

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, tensor in self._local_state():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if type(self).get_extra_state is not StateDict.get_extra_state:
            destination[prefix + _EXTRA_STATE] = self.get_extra_state()

    # ---- Loading ------------------------------------------------------------------------------------------------------------

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False):
        """Copies the tensors of a state_dict into the parameters and buffers of the same names.

        strict: names must be the same on both sides. assign: the tensors of state_dict become the module's own, with their dtype and device;
        requires_grad stays the module's. Returns a named tuple (missing_keys, unexpected_keys).

        TypeError: state_dict is no mapping. RuntimeError: names or shapes differ; the message lists all of them, and what fits has been loaded.

        >>> net, copy = nn.Linear(2, 3), nn.Linear(2, 3)
        >>> copy.load_state_dict(net.state_dict())
        <All keys matched successfully>
        >>> bool((net.weight == copy.weight).all())
        True
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)  # hooks and overrides may change it
        if metadata is not None:
            state_dict._metadata = metadata
        missing_keys, unexpected_keys, error_msgs = [], [], []

        def load(module, state_dict, prefix):
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local_metadata["assign_to_params_buffers"] = assign
            module._load_from_state_dict(state_dict, prefix, local_metadata, True, missing_keys, unexpected_keys, error_msgs)
            for name, child in module._modules.items():
                if child is not None:
                    child_prefix = f"{prefix}{name}."
                    load(child, {key: value for key, value in state_dict.items() if key.startswith(child_prefix)}, child_prefix)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, _IncompatibleKeys(missing_keys, unexpected_keys)) is not None:
                    raise AssertionError("Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, "
                                         "if incompatible_keys need to be modified, it should be done inplace.")

        load(self, state_dict, "")
        if strict:
            for title, keys in (("Unexpected", unexpected_keys), ("Missing", missing_keys)):
                if keys:
                    error_msgs.insert(0, f"{title} key(s) in state_dict: " + ", ".join(f'"{key}"' for key in keys) + ". ")
        if error_msgs:
            raise RuntimeError("Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(error_msgs)))
        return _IncompatibleKeys(missing_keys, unexpected_keys)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """Loads the module's own parameters and buffers from the keys that begin with prefix. Adds problems to the three lists."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        local_state = dict(self._local_state())
        for name, tensor in local_state.items():
            key = prefix + name
            if key in state_dict:
                self._load_tensor(name, tensor, key, state_dict[key], local_metadata, error_msgs)
            elif strict:
                missing_keys.append(key)
        extra_key = prefix + _EXTRA_STATE
        if type(self).set_extra_state is not StateDict.set_extra_state:
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra_key:
                    name, *rest = key[len(prefix):].split(".", 1)
                    if name not in (self._modules if rest else local_state):
                        unexpected_keys.append(key)

    def _load_tensor(self, name, tensor, key, value, local_metadata, error_msgs):
        """Copies value into one parameter or buffer, or with assign replaces this by value."""
        assign = local_metadata.get("assign_to_params_buffers", False)
        if not _is_tensor_like(value):
            error_msgs.append(f'While copying the parameter named "{key}", expected {gradus.__name__}.Tensor or Tensor-like object from '
                              f"checkpoint but received {type(value)}")
            return
        lazy = is_lazy(tensor)  # Then value has no sizes either, because a hook of lazy modules has given the tensor the sizes of any other value.
        if not lazy and tensor.shape == () and value.shape == (1,):
            value = value[0]
        if not lazy and value.shape != tensor.shape:
            error_msgs.append(f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
                              f"the shape in current model is {tensor.shape}.")
            return
        if not lazy and tensor.is_meta and not value.is_meta and not assign:
            warnings.warn(f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is a "
                          "no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their corresponding key in "
                          "the module instead of copying them in place?)", stacklevel=2)
        try:
            if not assign:
                with gradus.no_grad():
                    tensor.copy_(value)
                return
            if isinstance(tensor, Parameter):
                if isinstance(value, Parameter):
                    value.requires_grad_(tensor.requires_grad)
                else:
                    value = Parameter(value, requires_grad=tensor.requires_grad)
            setattr(self, name, value)
        except Exception as error:
            error_msgs.append(f'While copying the parameter named "{key}", whose dimensions in the model are {tensor.size()} and '
                              f"whose dimensions in the checkpoint are {value.size()}, an exception occurred : {error.args}.")

    # ---- Hooks --------------------------------------------------------------------------------------------------------------

    def register_state_dict_pre_hook(self, hook):
        """Calls hook(module, prefix, keep_vars) before the module's state is saved."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook):
        """Calls hook(module, state_dict, prefix, local_metadata) after the module's state is saved. It may change state_dict in place."""
        hook._from_public_api = True
        return add_hook(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook):
        """As register_state_dict_post_hook, but the hook may return another dictionary to use."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError("Cannot register the same function as the state dict post hook that was previously registered via "
                               "register_state_dict_post_hook")
        return add_hook(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook):
        """Calls hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs) before loading."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        """As register_load_state_dict_pre_hook; without with_module the hook does not get the module."""
        return add_hook(self._load_state_dict_pre_hooks, BoundHook(hook, self) if with_module else hook)

    def register_load_state_dict_post_hook(self, hook):
        """Calls hook(module, incompatible_keys) after loading. It may change the two lists in place, before strict looks at them."""
        return add_hook(self._load_state_dict_post_hooks, hook)
