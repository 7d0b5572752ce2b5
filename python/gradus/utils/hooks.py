"""The handles that registering a hook returns."""
import warnings
import weakref

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


class RemovableHandle:
    """Removes one hook from the dictionary it was registered in; as a context manager, on leaving.

    The handle does not keep the dictionary alive. ``extra_dict`` is a dictionary, or a list of them, that hold something under the
    same number and lose it together with the hook.

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
        """Remove the hook; nothing happens if it is gone already."""
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
        # Nothing needs to be removed from a dictionary that is gone: an empty one takes its place.
        self._set(OrderedDict() if hooks is None else hooks, extra)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()


def unserializable_hook(f):
    """Returns the function, marked so that warn_if_has_hooks is silent about it."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor):
    """Warns of each hook of a tensor: hooks are not saved with it."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the function with "
                          "@torch.utils.hooks.unserializable_hook to suppress this warning", stacklevel=2)
