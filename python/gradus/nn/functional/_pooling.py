"""Pooling functions. They handle the argument return_indices, and None in an output size. Operators do the computation."""
from __future__ import annotations

from gradus import _C
from gradus._C import nn as _nn

from ._arguments import ntuple as _ntuple

__all__ = ["adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d",
           "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "fractional_max_pool2d",
           "fractional_max_pool2d_with_indices", "fractional_max_pool3d", "fractional_max_pool3d_with_indices", "max_pool1d", "max_pool1d_with_indices",
           "max_pool2d", "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d"]


# ---- Max pooling ------------------------------------------------------------------------------------------------------------------------

def max_pool1d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Returns the pair (result, indices) of max_pool1d. `return_indices` is ignored."""
    return _C.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Returns the pair (result, indices) of max_pool2d. `return_indices` is ignored."""
    return _nn.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Returns the pair (result, indices) of max_pool3d. `return_indices` is ignored."""
    return _nn.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Returns the largest element of each window of an input of shape (N, C, L) or (C, L). return_indices: also returns the index of each element
    along L.

    >>> F.max_pool1d(gradus.tensor([[1.0, 3.0, 2.0, 0.0]]), 2).tolist()
    [[3.0, 2.0]]
    """
    pool = max_pool1d_with_indices if return_indices else _C.max_pool1d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Returns the largest element of each window of images (N, C, H, W) or (C, H, W). return_indices: also returns the index of each element in the
    flattened H x W image.

    >>> F.max_pool2d(gradus.arange(16.0).reshape(1, 4, 4), 2, return_indices=True)[1].tolist()
    [[[5, 7], [13, 15]]]
    """
    pool = max_pool2d_with_indices if return_indices else _C.max_pool2d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Returns the largest element of each window of an input of shape (N, C, D, H, W) or (C, D, H, W).

    return_indices: also returns the index of each element in the flattened image.
    """
    pool = max_pool3d_with_indices if return_indices else _C.max_pool3d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


# ---- Adaptive pooling ----------------------------------------------------------------------------------------------------------------------

def _filled(output_size, input):
    """Returns `output_size` with None replaced by the input's size in that dimension. A single number is returned unchanged."""
    if isinstance(output_size, int):
        return output_size
    if input.dim() <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    return [known if size is None else size for size, known in zip(output_size, input.shape[-len(output_size):])]


def adaptive_avg_pool2d(input, output_size):
    """Divides images (N, C, H, W) or (C, H, W) into output_size windows, and returns the average of each window, (N, C, *output_size).

    output_size: (H, W), or one number for both. An element that is None means the size of the input in that dimension.

    >>> F.adaptive_avg_pool2d(gradus.arange(16.0).reshape(1, 4, 4), (None, 1)).flatten().tolist()
    [1.5, 5.5, 9.5, 13.5]
    """
    return _nn.adaptive_avg_pool2d(input, _filled(output_size, input))


def adaptive_avg_pool3d(input, output_size):
    """Divides an input of shape (N, C, D, H, W) or (C, D, H, W) into output_size windows, and returns the average of each window.

    output_size: (D, H, W), or one number for all. An element that is None means the size of the input in that dimension.
    """
    return _nn.adaptive_avg_pool3d(input, _filled(output_size, input))


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    """Returns the pair (result, indices) of adaptive_max_pool1d. `return_indices` is ignored."""
    return _C.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    """Returns the pair (result, indices) of adaptive_max_pool2d. `return_indices` is ignored."""
    return _nn.adaptive_max_pool2d(input, _filled(output_size, input))


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    """Returns the pair (result, indices) of adaptive_max_pool3d. `return_indices` is ignored."""
    return _nn.adaptive_max_pool3d(input, _filled(output_size, input))


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """Divides an input of shape (N, C, L) or (C, L) along L into output_size windows, and returns the largest element of each window. return_indices:
    also returns the index of each element along L."""
    found = adaptive_max_pool1d_with_indices(input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """Divides images (N, C, H, W) or (C, H, W) into output_size windows, and returns the largest element of each window. return_indices: also returns
    the index of each element in the flattened image.

    output_size: (H, W), or one number for both. An element that is None means the size of the input in that dimension.
    """
    found = adaptive_max_pool2d_with_indices(input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """Divides an input of shape (N, C, D, H, W) or (C, D, H, W) into output_size windows, and returns the largest element of each window.
    return_indices: also returns the index of each element in the flattened image."""
    found = adaptive_max_pool3d_with_indices(input, output_size)
    return found if return_indices else found[0]


# ---- Fractional max pooling --------------------------------------------------------------------------------------------------------------------

def _fractional(name, pool, dims, input, kernel_size, output_size, output_ratio, samples):
    """Returns the result of `pool`, a fractional max pooling operator over `dims` dimensions. Window positions are random unless `samples` gives
    them."""
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        ratios = _ntuple(dims)(output_ratio)
        if len(ratios) > dims:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
        output_size = [int(n * ratio) for n, ratio in zip(input.shape[-dims:], ratios)]
    if samples is None:
        batch = 1 if input.dim() == dims + 1 else input.size(0)
        samples = _C.rand(batch, input.size(-dims - 1), dims, dtype=input.dtype, device=input.device)
    return pool(input, _ntuple(dims)(kernel_size), _ntuple(dims)(output_size), samples)


def fractional_max_pool2d_with_indices(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
    """Returns the pair (result, indices) of fractional_max_pool2d. `return_indices` is ignored."""
    return _fractional("fractional_max_pool2d", _nn.fractional_max_pool2d, 2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
    """Returns the pair (result, indices) of fractional_max_pool3d. `return_indices` is ignored."""
    return _fractional("fractional_max_pool3d", _nn.fractional_max_pool3d, 3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
    """Returns the largest element of each window of (N, C, H, W) or (C, H, W), at random window positions (Graham, 2014).

    The number of windows is output_size, or output_ratio times the size of the input. return_indices: also returns the index of each element in the
    flattened image. Raises ValueError if neither output_size nor output_ratio is given.
    """
    found = fractional_max_pool2d_with_indices(input, kernel_size, output_size, output_ratio, _random_samples=_random_samples)
    return found if return_indices else found[0]


def fractional_max_pool3d(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
    """Returns the largest element of each window of (N, C, D, H, W) or (C, D, H, W), at random window positions (Graham, 2014).

    The number of windows is output_size, or output_ratio times the size of the input. return_indices: also returns the index of each element in the
    flattened image. Raises ValueError if neither output_size nor output_ratio is given.
    """
    found = fractional_max_pool3d_with_indices(input, kernel_size, output_size, output_ratio, _random_samples=_random_samples)
    return found if return_indices else found[0]


# ---- Max unpooling -----------------------------------------------------------------------------------------------------------------------------

def _unpooled_size(input, kernel_size, stride, padding, output_size):
    """Returns the spatial sizes of the output of max unpooling: `output_size`, or the sizes that the pooling windows cover if output_size is None.

    Raises ValueError if a size is negative, or if a size in output_size differs from the covered size by a stride or more.
    """
    dims = len(kernel_size)
    covered = [(n - 1) * s + k - 2 * p for n, k, s, p in zip(input.shape[-dims:], kernel_size, stride, padding)]
    wanted = covered if output_size is None else output_size[2:] if len(output_size) == dims + 2 else output_size
    if len(wanted) != dims:
        raise ValueError(f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of '{len(wanted)}'")
    for d, (size, s, n) in enumerate(zip(covered, stride, wanted)):
        if output_size is not None and not size - s < n < size + s:
            raise ValueError(f'invalid output_size "{wanted}" (dim {d} must be between {size - s} and {size + s})')
    for d, n in enumerate(wanted):
        if n < 0:
            raise ValueError(f"max_unpooling: output_size must contain non-negative spatial dimensions, but got output_size[{d}]={n}")
    return list(wanted)


def _unpool_arguments(dims, input, kernel_size, stride, padding, output_size):
    """Returns (output size, stride, padding) of max unpooling. Each has one number for each of the `dims` spatial dimensions."""
    kernel_size, padding = _ntuple(dims)(kernel_size), _ntuple(dims)(padding)
    stride = _ntuple(dims)(stride) if stride is not None else kernel_size
    return _unpooled_size(input, kernel_size, stride, padding, output_size), stride, padding


def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Inverts max_pool1d: returns (N, C, L) or (C, L) with the input's elements at `indices` and 0 elsewhere."""
    size, _, _ = _unpool_arguments(1, input, kernel_size, stride, padding, output_size)
    return _nn.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1]).squeeze(-1)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Inverts max_pool2d: returns images with the input's elements at `indices` and 0 elsewhere. indices: the indices that max_pool2d returned.

    output_size: the size of the images; when None it is computed from kernel size, stride and padding.

    >>> F.max_unpool2d(gradus.tensor([[[5.0]]]), gradus.tensor([[[3]]]), 2).tolist()
    [[[0.0, 0.0], [0.0, 5.0]]]
    """
    return _nn.max_unpool2d(input, indices, _unpool_arguments(2, input, kernel_size, stride, padding, output_size)[0])


def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Inverts max_pool3d: returns (N, C, D, H, W) or (C, D, H, W) with the input's elements at `indices` and 0 elsewhere."""
    return _nn.max_unpool3d(input, indices, *_unpool_arguments(3, input, kernel_size, stride, padding, output_size))
