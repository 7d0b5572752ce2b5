"""Pooling: what chooses between a result and a result with indices, and sizes that are left open; the rest is operators."""
from __future__ import annotations

from gradus import _C
from gradus._C import nn as _nn

__all__ = ["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d",
           "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d",
           "lp_pool2d", "lp_pool3d", "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices"]

adaptive_avg_pool1d = _nn.adaptive_avg_pool1d
avg_pool1d = _nn.avg_pool1d
avg_pool2d = _nn.avg_pool2d
avg_pool3d = _nn.avg_pool3d
lp_pool1d = _nn.lp_pool1d
lp_pool2d = _nn.lp_pool2d
lp_pool3d = _nn.lp_pool3d


# ---- Windows of one size ----------------------------------------------------------------------------------------------------------------

def max_pool1d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """max_pool1d with return_indices=True, whatever is said of that here."""
    return _C.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """max_pool2d with return_indices=True, whatever is said of that here."""
    return _nn.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """max_pool3d with return_indices=True, whatever is said of that here."""
    return _nn.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of each window of (N, C, L), or (C, L); with return_indices also its place.

    >>> F.max_pool1d(gradus.tensor([[1.0, 3.0, 2.0, 0.0]]), 2).tolist()
    [[3.0, 2.0]]
    """
    pool = max_pool1d_with_indices if return_indices else _C.max_pool1d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of each window of (N, C, H, W), or (C, H, W); with return_indices also its place in the image, counted row by row.

    >>> F.max_pool2d(gradus.arange(16.0).reshape(1, 4, 4), 2, return_indices=True)[1].tolist()
    [[[5, 7], [13, 15]]]
    """
    pool = max_pool2d_with_indices if return_indices else _C.max_pool2d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """max_pool2d of (N, C, D, H, W), or (C, D, H, W)."""
    pool = max_pool3d_with_indices if return_indices else _C.max_pool3d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


# ---- Adaptive windows ----------------------------------------------------------------------------------------------------------------------

def _filled(output_size, input):
    """The sizes, with those of the input where they are None; one number stays."""
    if isinstance(output_size, int):
        return output_size
    if input.dim() <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    return [known if size is None else size for size, known in zip(output_size, input.shape[-len(output_size):])]


def adaptive_avg_pool2d(input, output_size):
    """The average of each window, of which there are output_size: (H, W), one number for both, or None for the size of the input.

    >>> F.adaptive_avg_pool2d(gradus.arange(16.0).reshape(1, 4, 4), (None, 1)).flatten().tolist()
    [1.5, 5.5, 9.5, 13.5]
    """
    return _nn.adaptive_avg_pool2d(input, _filled(output_size, input))


def adaptive_avg_pool3d(input, output_size):
    """adaptive_avg_pool2d of images of three dimensions."""
    return _nn.adaptive_avg_pool3d(input, _filled(output_size, input))


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    """adaptive_max_pool1d with return_indices=True, whatever is said of that here."""
    return _C.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    """adaptive_max_pool2d with return_indices=True, whatever is said of that here."""
    return _nn.adaptive_max_pool2d(input, _filled(output_size, input))


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    """adaptive_max_pool3d with return_indices=True, whatever is said of that here."""
    return _nn.adaptive_max_pool3d(input, _filled(output_size, input))


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """The largest element of each of output_size windows of (N, C, L), or (C, L); with return_indices also its place."""
    found = adaptive_max_pool1d_with_indices(input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """The largest element of each window, of which there are output_size: (H, W), one number for both, or None for the size of the input."""
    found = adaptive_max_pool2d_with_indices(input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """adaptive_max_pool2d of images of three dimensions."""
    found = adaptive_max_pool3d_with_indices(input, output_size)
    return found if return_indices else found[0]
