"""LazyModuleMixin, a base class of modules that take the sizes of their parameters from their first input."""
from __future__ import annotations

import itertools

import gradus

from ..parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Base of modules whose parameters are UninitializedParameter at first. A subclass must list this class first among its base classes.

    A subclass defines initialize_parameters(*inputs), which is called before the first forward and materializes the parameters. After the
    initialization, the module's class becomes cls_to_become, unless cls_to_become is None.
    """

    cls_to_become: type | None = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Adds the module's tensors to `destination`. If keep_vars is false, initialized tensors are detached."""
        persistent = [(name, buffer) for name, buffer in self._buffers.items() if name not in self._non_persistent_buffers_set]
        for name, tensor in itertools.chain(self._parameters.items(), persistent):
            if tensor is not None:
                destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()

    def _lazy_load_hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """Materializes uninitialized parameters and buffers with the shapes that the state_dict has for them."""
        for name, tensor in itertools.chain(self._parameters.items(), self._buffers.items()):
            loaded = state_dict.get(prefix + name)
            if tensor is not None and loaded is not None and is_lazy(tensor) and not is_lazy(loaded):
                with gradus.no_grad():
                    tensor.materialize(loaded.shape)

    def initialize_parameters(self, *args, **kwargs):
        """Gives uninitialized parameters the shapes that fit args and kwargs, the arguments of forward. Every subclass overrides this method."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self):
        """Returns True if a parameter or buffer has no shape yet."""
        return any(is_lazy(tensor) for tensor in itertools.chain(self._parameters.values(), self._buffers.values()))

    def _infer_parameters(self, module, args, kwargs=None):
        """A forward pre-hook that initializes the parameters at the first call and then removes itself."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self):
        """Raises RuntimeError, because modules with uninitialized parameters cannot be replicated."""
        raise RuntimeError("Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to correctly initialize the modules")
