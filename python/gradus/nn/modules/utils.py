"""Arguments that are one number for every dimension, or a number for each."""
from __future__ import annotations

from ..functional._arguments import ntuple as _ntuple

_single = _ntuple(1)
_pair = _ntuple(2)
_triple = _ntuple(3)
_quadruple = _ntuple(4)


def _reverse_repeat_tuple(t, n):
    """Returns the elements from the last to the first, each n times: the padding of a convolution in the order of F.pad."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size, defaults):
    """Returns the sizes, with the last of `defaults` where they are None; a single integer as it is."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [default if size is None else size for size, default in zip(out_size, defaults[-len(out_size):])]


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Strips the prefix from the keys of a state_dict, and of its metadata, in place: "module." is what DataParallel adds.

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
        if key and (key.startswith(prefix) or key == prefix.replace(".", "")):  # the model itself is "module" there
            metadata[key[len(prefix):]] = metadata.pop(key)
