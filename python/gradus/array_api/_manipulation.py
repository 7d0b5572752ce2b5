"""Implements the manipulation and indexing functions of the Python array API standard."""
import gradus
from gradus.array_api._types import promoted

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis", "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "take",
           "take_along_axis", "tile", "unstack"]


def broadcast_arrays(*arrays):
    """Returns a tuple of the arrays expanded to their common broadcast shape."""
    return tuple(gradus.broadcast_tensors(*arrays))


def broadcast_shapes(*shapes):
    """Returns the shape to which the given shapes broadcast. ValueError: they do not broadcast."""
    try:
        return tuple(gradus.broadcast_shapes(*shapes))
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def broadcast_to(x, /, shape):
    """Returns `x` expanded to `shape` by broadcasting."""
    return gradus.broadcast_to(x, shape)


def concat(arrays, /, *, axis=0):
    """Returns the arrays concatenated along an axis. If `axis` is None they are flattened first."""
    arrays = promoted(*arrays)
    return gradus.cat([x.reshape(-1) for x in arrays]) if axis is None else gradus.cat(arrays, axis)


def expand_dims(x, /, axis=0):
    """Returns `x` with an axis of size 1 inserted at each position in `axis`, an int or a tuple. IndexError: a position is out of range."""
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
    """Returns `x` with the order of the elements reversed along `axis`, which is an int or a tuple. If `axis` is None, reverses along all axes."""
    return gradus.flip(x, tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis)


def moveaxis(x, source, destination, /):
    """Returns `x` with the axes `source` moved to the positions `destination`."""
    return gradus.moveaxis(x, source, destination)


def permute_dims(x, /, axes):
    """Returns `x` with axes permuted, so that axis i of the result is axis axes[i] of `x`."""
    return gradus.permute(x, axes)


def repeat(x, repeats, /, *, axis=None):
    """Returns `x` with each element repeated `repeats` times along an axis. If `axis` is None, `x` is flattened first."""
    return gradus.repeat_interleave(x, repeats.to(gradus.int64) if isinstance(repeats, gradus.Tensor) else repeats, axis)


def reshape(x, /, shape, *, copy=None):
    """Returns `x` with the given shape. If `copy` is True, the result is always a copy. If `copy` is False, the result is always a view, and
    ValueError is raised if a view is impossible."""
    if copy is False:
        try:
            return x.view(shape)
        except RuntimeError as error:
            raise ValueError(str(error)) from None
    return x.clone().reshape(shape) if copy else x.reshape(shape)


def roll(x, /, shift, *, axis=None):
    """Returns `x` with the elements shifted cyclically by `shift` along `axis`. If `axis` is None the flattened elements are shifted."""
    return gradus.roll(x, shift, axis)


def squeeze(x, /, axis):
    """Returns `x` without the given axes, an int or a tuple. ValueError: the size of one of them is not 1."""
    axes = (axis,) if isinstance(axis, int) else axis
    for one in axes:
        if x.shape[one] != 1:
            raise ValueError(f"axis {one} has size {x.shape[one]}, not 1")
    return gradus.squeeze(x, axes) if axes else x


def stack(arrays, /, *, axis=0):
    """Returns the arrays, which must have equal shapes, joined along a new axis."""
    return gradus.stack(promoted(*arrays), axis)


def take(x, indices, /, *, axis=None):
    """Returns the elements of `x` at the positions indices[0], indices[1], ... along `axis`. ValueError: `axis` is None and `x` is not a vector."""
    if axis is None and x.ndim != 1:
        raise ValueError(f"an array of {x.ndim} dimensions needs an axis")
    return x[(slice(None),) * (0 if axis is None else axis % x.ndim) + (indices,)]


def take_along_axis(x, indices, /, *, axis=-1):
    """Returns the elements of `x` at the positions `indices` along an axis. All other axes of `x` and `indices` broadcast."""
    return gradus.take_along_dim(x, indices.to(gradus.int64), axis)


def tile(x, repetitions, /):
    """Returns `x` repeated repetitions[i] times along each axis i."""
    return gradus.tile(x, repetitions)


def unstack(x, /, *, axis=0):
    """Returns a tuple of the slices of `x` along an axis. The slices do not have that axis."""
    return gradus.unbind(x, axis)
