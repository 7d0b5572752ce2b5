"""Saving and loading of a module's state as a dictionary of tensors: Module's methods state_dict and load_state_dict."""
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
    """The result of load_state_dict: keys of the module that the state_dict lacks, and keys of the state_dict that the module lacks."""

    __slots__ = ()

    def __repr__(self):
        return super().__repr__() if self.missing_keys or self.unexpected_keys else "<All keys matched successfully>"

    __str__ = __repr__


def _is_tensor_like(value):
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


class StateDict:
    """A base class of Module that saves and loads parameters and buffers by name.

    A class with additional state overrides get_extra_state and set_extra_state. A class that saves in another format overrides _save_to_state_dict
    and _load_from_state_dict, which handle one module without its children. The class attribute _version is saved, so that a class recognizes state
    dicts of older versions.
    """

    _version = 1

    def get_extra_state(self):
        """Returns additional state, which state_dict stores under the key "_extra_state". Subclasses override this method."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state):
        """Restores the state that get_extra_state returned. Subclasses override this method."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    # ---- Saving -------------------------------------------------------------------------------------------------------------

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """Returns an OrderedDict of all parameters and persistent buffers by name, or adds them to `destination`.

        The tensors share memory with the module's tensors. prefix: prepended to every name. keep_vars: stores the parameters themselves instead of
        detached tensors. The attribute _metadata of the result contains the version of each module.

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
        """Yields (name, tensor) for the parameters and persistent buffers of this module, but not of its submodules."""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                yield name, parameter
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                yield name, buffer

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Adds the tensors and the extra state of this module, but not of its submodules, to `destination`."""
        for name, tensor in self._local_state():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if type(self).get_extra_state is not StateDict.get_extra_state:
            destination[prefix + _EXTRA_STATE] = self.get_extra_state()

    # ---- Loading ------------------------------------------------------------------------------------------------------------

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False):
        """Copies the tensors of a state_dict into the parameters and buffers of the same names.

        strict: requires that state_dict contains exactly the names of the module's parameters and persistent buffers. assign: instead of copying,
        makes the tensors of state_dict the module's tensors, with their dtype and device; requires_grad is preserved. Returns a named tuple
        (missing_keys, unexpected_keys). Raises TypeError if state_dict is not a mapping, RuntimeError if names or shapes differ. The error lists all
        differences; tensors that match are loaded nevertheless.

        >>> net, copy = nn.Linear(2, 3), nn.Linear(2, 3)
        >>> copy.load_state_dict(net.state_dict())
        <All keys matched successfully>
        >>> bool((net.weight == copy.weight).all())
        True
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)  # a copy, because hooks and overridden methods may change the dictionary
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
        """Loads the module's parameters and buffers, without submodules, from the keys that begin with `prefix`. Keys and errors are added to
        missing_keys, unexpected_keys and error_msgs."""
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
        """Copies `value` into the parameter or buffer `tensor`. With load_state_dict(assign=True), replaces `tensor` by `value` instead. On failure,
        adds a message to error_msgs."""
        assign = local_metadata.get("assign_to_params_buffers", False)
        if not _is_tensor_like(value):
            error_msgs.append(f'While copying the parameter named "{key}", expected {gradus.__name__}.Tensor or Tensor-like object from '
                              f"checkpoint but received {type(value)}")
            return
        lazy = is_lazy(tensor)  # True only if `value` has no shape either; otherwise _lazy_load_hook has given `tensor` a shape.
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
        """Registers hook(module, prefix, keep_vars), called before the module's state is saved. Returns a handle whose remove() removes the hook."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook):
        """Registers hook(module, state_dict, prefix, local_metadata), called after the module's state is saved. The hook may change state_dict in
        place.

        Returns a handle whose remove() removes the hook.
        """
        hook._from_public_api = True
        return add_hook(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook):
        """Registers hook(module, state_dict, prefix, local_metadata), called after the module's state is saved. The hook may change state_dict in
        place, or return another dictionary that replaces it. Returns a handle whose remove() removes the hook."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError("Cannot register the same function as the state dict post hook that was previously registered via "
                               "register_state_dict_post_hook")
        return add_hook(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook):
        """Registers a hook that is called before the module's state is loaded.

        The hook's arguments are (module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs). Returns a handle
        whose remove() removes the hook.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        """Registers a hook that is called before the module's state is loaded. Returns a handle whose remove() removes the hook.

        The hook's arguments are (state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs), preceded by the module if
        with_module is true.
        """
        return add_hook(self._load_state_dict_pre_hooks, BoundHook(hook, self) if with_module else hook)

    def register_load_state_dict_post_hook(self, hook):
        """Registers hook(module, incompatible_keys), called after loading. Returns a handle whose remove() removes the hook.

        incompatible_keys is the pair (missing_keys, unexpected_keys). The hook may change these lists in place before they are checked.
        """
        return add_hook(self._load_state_dict_post_hooks, hook)
