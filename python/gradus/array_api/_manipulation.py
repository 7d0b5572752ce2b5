"""Manipulation and indexing functions of the standard."""
import gradus
from gradus.array_api._types import promoted

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis", "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "take",
           "take_along_axis", "tile", "unstack"]


def broadcast_arrays(*arrays):
    """Returns the arrays, expanded to the shape they broadcast to."""
    return tuple(gradus.broadcast_tensors(*arrays))


def broadcast_shapes(*shapes):
    """Returns the shape that shapes broadcast to. ValueError: they do not."""
    try:
        return tuple(gradus.broadcast_shapes(*shapes))
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def broadcast_to(x, /, shape):
    """Returns x expanded to a shape."""
    return gradus.broadcast_to(x, shape)


def concat(arrays, /, *, axis=0):
    """Arrays one behind the other along an axis; None: flattened ones."""
    arrays = promoted(*arrays)
    return gradus.cat([x.reshape(-1) for x in arrays]) if axis is None else gradus.cat(arrays, axis)


def expand_dims(x, /, axis=0):
    """Returns x with an axis of size 1 put in at each place."""
    axes = (axis,) if isinstance(axis, int) else axis
    n = x.ndim + len(axes)
    for one in axes:
        if not -n <= one < n:
            raise IndexError(f"axis {one} is out of bounds for an array of {n} dimensions")
    places = {one % n for one in axes}
    if len(places) < len(axes):
        raise ValueError(f"the axes {axes} name one place twice in an array of {n} dimensions")
    for one in sorted(places):
        x = x.unsqueeze(one)
    return x


def flip(x, /, *, axis=None):
    """Returns x with the order of the elements reversed along axes, or along all."""
    return gradus.flip(x, tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis)


def moveaxis(x, source, destination, /):
    """Returns x with axes moved to other places."""
    return gradus.moveaxis(x, source, destination)


def permute_dims(x, /, axes):
    """Returns x with its axes in another order."""
    return gradus.permute(x, axes)


def repeat(x, repeats, /, *, axis=None):
    """Returns each element repeated `repeats` times, along an axis or flattened."""
    return gradus.repeat_interleave(x, repeats.to(gradus.int64) if isinstance(repeats, gradus.Tensor) else repeats, axis)


def reshape(x, /, shape, *, copy=None):
    """Returns x in another shape. copy: True always copies; ValueError: False, and it must."""
    if copy is False:
        try:
            return x.view(shape)
        except RuntimeError as error:
            raise ValueError(str(error)) from None
    return x.clone().reshape(shape) if copy else x.reshape(shape)


def roll(x, /, shift, *, axis=None):
    """Returns x with the elements moved around along axes, or flattened."""
    return gradus.roll(x, shift, axis)


def squeeze(x, /, axis):
    """Returns x without axes of size 1. ValueError: one of them has another size."""
    axes = (axis,) if isinstance(axis, int) else axis
    for one in axes:
        if x.shape[one] != 1:
            raise ValueError(f"axis {one} has size {x.shape[one]}, not 1")
    return gradus.squeeze(x, axes) if axes else x


def stack(arrays, /, *, axis=0):
    """Arrays of one shape as parts of a new axis."""
    return gradus.stack(promoted(*arrays), axis)


def take(x, indices, /, *, axis=None):
    """Returns the elements of an axis at a vector of indices."""
    if axis is None and x.ndim != 1:
        raise ValueError(f"an array of {x.ndim} dimensions needs an axis")
    return x[(slice(None),) * (0 if axis is None else axis % x.ndim) + (indices,)]


def take_along_axis(x, indices, /, *, axis=-1):
    """Returns the elements of lines along an axis at indices of the same axis; the other axes broadcast."""
    return gradus.take_along_dim(x, indices.to(gradus.int64), axis)


def tile(x, repetitions, /):
    """Returns x as often as said along each axis."""
    return gradus.tile(x, repetitions)


def unstack(x, /, *, axis=0):
    """Returns the parts of an axis."""
    return gradus.unbind(x, axis)
