"""RemovableHandle, the handle that the registration of a hook returns, and functions that warn of hooks that cannot be pickled."""
import warnings
import weakref

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


class RemovableHandle:
    """The handle of a registered hook. remove(), or the end of a ``with`` block, removes the hook from its dictionary.

    The handle holds only weak references. ``extra_dict`` is a dictionary, or a list of dictionaries, with entries under the same id; remove() deletes
    these entries too.

    >>> from collections import OrderedDict
    >>> hooks = OrderedDict()
    >>> handle = RemovableHandle(hooks)
    >>> hooks[handle.id] = print
    >>> handle.remove()
    >>> len(hooks)
    0
    """

    next_id = 0

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self._set(hooks_dict, extra_dict if isinstance(extra_dict, list) else [] if extra_dict is None else [extra_dict])

    def _set(self, hooks_dict, extra_dicts):
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.extra_dict_ref = tuple(map(weakref.ref, extra_dicts))

    def remove(self):
        """Removes the hook. Does nothing if it was removed already."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self):
        extra = [hooks for hooks in (ref() for ref in self.extra_dict_ref) if hooks is not None]
        return self.hooks_dict_ref(), self.id, extra

    def __setstate__(self, state):
        from collections import OrderedDict

        hooks, self.id, extra = state
        # If the dictionary no longer exists, there is nothing to remove, so an empty dictionary replaces it.
        self._set(OrderedDict() if hooks is None else hooks, extra)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()


def unserializable_hook(f):
    """Marks the hook `f`, so that warn_if_has_hooks does not warn of it. Returns `f`."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor):
    """Warns of each hook of a tensor, because hooks are not saved with the tensor."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the function with "
                          "@torch.utils.hooks.unserializable_hook to suppress this warning", stacklevel=2)
