"""Collation: ``default_collate`` stacks samples into a batch. ``default_convert`` converts the NumPy arrays in one sample to tensors."""
import collections.abc
import copy
import sys

import gradus
from gradus.utils.data._utils.worker import get_worker_info

__all__ = ["collate", "collate_float_fn", "collate_int_fn", "collate_numpy_array_fn", "collate_numpy_scalar_fn", "collate_str_fn", "collate_tensor_fn", "default_collate", "default_collate_fn_map", "default_convert"]

default_collate_err_msg_format = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _is_text_or_object(array):
    """Returns True if a NumPy array contains text or objects, which cannot become tensors."""
    return array.dtype.kind in "SUO"


def default_convert(data):
    """Returns `data` with NumPy arrays and NumPy scalars converted to tensors, also inside containers. Other values, and arrays of text or objects,
    stay unchanged.

    >>> default_convert({"x": [1, "a"]})
    {'x': [1, 'a']}
    """
    kind = type(data)
    if isinstance(data, gradus.Tensor):
        return data
    if kind.__module__ == "numpy" and kind.__name__ not in ("str_", "bytes_", "string_"):
        return data if kind.__name__ == "ndarray" and _is_text_or_object(data) else gradus.as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        return _like_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return kind(*map(default_convert, data))
    if isinstance(data, tuple):
        return [default_convert(item) for item in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [default_convert(item) for item in data])
    return data


def _like_mapping(mapping, items):
    """Returns `items` as a mapping of the same class as `mapping`, or as a dict if that class cannot be constructed from them."""
    try:
        if isinstance(mapping, collections.abc.MutableMapping):
            clone = copy.copy(mapping)
            clone.update(items)
            return clone
        return type(mapping)(items)
    except TypeError:
        return items


def _like_sequence(sequence, items):
    """Returns `items` as a sequence of the same class as `sequence`, or as a list if that class cannot be constructed from them."""
    try:
        if isinstance(sequence, collections.abc.MutableSequence):
            clone = copy.copy(sequence)
            for index, item in enumerate(items):
                clone[index] = item
            return clone
        return type(sequence)(items)
    except TypeError:
        return items


def collate(batch, *, collate_fn_map=None):
    """Returns the samples in ``batch`` combined into one batch. The class of the samples' elements decides which function combines them.

    Args:
        batch (list): samples with the same structure.
        collate_fn_map (dict, optional): maps a class, or a tuple of classes, to a function ``f(batch, *, collate_fn_map)``.

    Raises TypeError for a class that is neither in the map nor a container, RuntimeError for sequences of different lengths.

    >>> collate([(1, 2), (3, 4)], collate_fn_map={int: lambda batch, *, collate_fn_map: sum(batch)})
    [4, 6]
    """
    first = batch[0]
    kind = type(first)
    function = _function_for(first, collate_fn_map or {})
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, collections.abc.Mapping):
        return _like_mapping(first, {key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)))
    if isinstance(first, collections.abc.Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)]
        return columns if isinstance(first, tuple) else _like_sequence(first, columns)
    raise TypeError(default_collate_err_msg_format.format(kind))


def _function_for(sample, functions):
    """Returns the collate function for the class of a sample, or None."""
    if type(sample) in functions:
        return functions[type(sample)]
    for kind, function in functions.items():
        if isinstance(sample, kind):
            return function
    # NumPy's classes can only occur if a program has imported NumPy.
    numpy = sys.modules.get("numpy")
    if numpy is not None and functions is default_collate_fn_map:
        if isinstance(sample, numpy.ndarray):
            return collate_numpy_array_fn
        if isinstance(sample, (numpy.bool_, numpy.number, numpy.object_)):
            return collate_numpy_scalar_fn
    return None


def collate_tensor_fn(batch, *, collate_fn_map=None):
    """Returns the tensors stacked along a new first dimension. In a worker process the result is in memory shared with the loader's process."""
    first = batch[0]
    if get_worker_info() is None or first.device.type != "cpu" or first.requires_grad or any(each.dtype != first.dtype for each in batch):
        return gradus.stack(batch, 0)
    storage = gradus.UntypedStorage._new_shared(len(batch) * first.nbytes)
    return gradus.stack(batch, 0, out=gradus.empty(0, dtype=first.dtype).set_(storage, 0, (len(batch), *first.shape)))


def collate_float_fn(batch, *, collate_fn_map=None):
    """Returns a float64 tensor of the numbers in `batch`."""
    return gradus.tensor(batch, dtype=gradus.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    """Returns an int64 tensor of the numbers in `batch`."""
    return gradus.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    """Returns `batch`, the list of strings, unchanged."""
    return batch


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    """Returns one tensor, the arrays in `batch` stacked along a new first dimension. Raises TypeError if they contain text or objects."""
    if _is_text_or_object(batch[0]):
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([gradus.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    """Returns a tensor of the NumPy numbers in `batch`."""
    return gradus.as_tensor(batch)


default_collate_fn_map = {gradus.Tensor: collate_tensor_fn, float: collate_float_fn, int: collate_int_fn, str: collate_str_fn,
                          bytes: collate_str_fn}


def default_collate(batch):
    """Returns a batch of samples. Tensors and arrays are stacked along a new first dimension, and numbers become one tensor.

    Strings are not converted. Containers are collated element by element. Raises TypeError for elements of other classes.

    >>> import gradus
    >>> default_collate([(1, "a"), (2, "b")])
    [tensor([1, 2]), ('a', 'b')]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
