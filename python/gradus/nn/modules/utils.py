"""Helpers for arguments that are a number for all dimensions or a tuple with a number per dimension, and for state dicts of DataParallel."""
from __future__ import annotations

from ..functional._arguments import ntuple as _ntuple

_single = _ntuple(1)
_pair = _ntuple(2)
_triple = _ntuple(3)
_quadruple = _ntuple(4)


def _reverse_repeat_tuple(t, n):
    """Returns the elements of `t` from last to first, each repeated n times, e.g. turns the padding of a convolution into the argument of F.pad."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size, defaults):
    """Returns out_size with each None replaced by the element of `defaults` at the same position, counted from the end. An integer is returned
    unchanged.

    Raises ValueError if `defaults` is not longer than out_size.
    """
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [default if size is None else size for size, default in zip(out_size, defaults[-len(out_size):])]


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Removes `prefix` from the keys of a state_dict and its metadata, in place, e.g. the "module." that DataParallel adds.

    >>> state = {"module.weight": 1}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'weight': 1}
    """
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix):]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    for key in list(metadata or ()):
        # The metadata of the wrapped module itself has the key "module", without the dot.
        if key and (key.startswith(prefix) or key == prefix.replace(".", "")):
            metadata[key[len(prefix):]] = metadata.pop(key)
