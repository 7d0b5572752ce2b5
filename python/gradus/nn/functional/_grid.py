"""Sampling of images at the points of a grid. Translates mode names to the operators' numbers and checks sizes."""
from __future__ import annotations

import warnings

from gradus import _C

__all__ = ["GRID_SAMPLE_INTERPOLATION_MODES", "GRID_SAMPLE_PADDING_MODES", "affine_grid", "grid_sample"]

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def _known(align_corners):
    """Returns `align_corners`, or False with a warning if it is None."""
    if align_corners is None:
        warnings.warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify align_corners=True if the old "
                      "behavior is desired. See the documentation of grid_sample for details.", stacklevel=3)
    return align_corners if align_corners is not None else False


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Returns images (N, C, H, W) or (N, C, D, H, W), interpolated at the points of `grid`, (N, ..., 2) or (N, ..., 3).

    A point is (x, y) or (x, y, z), where -1 and 1 are the outer edges of the image or, with align_corners, the centers of its first and last
    elements. mode: "bilinear", "nearest" or "bicubic". padding_mode, for points outside the image: "zeros", "border" or "reflection". Raises
    ValueError for other modes.

    >>> F.grid_sample(gradus.tensor([[[[1.0, 3.0]]]]), gradus.tensor([[[[0.0, 0.0]]]]), align_corners=True).item()
    2.0
    """
    if mode not in tuple(GRID_SAMPLE_INTERPOLATION_MODES):
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in tuple(GRID_SAMPLE_PADDING_MODES):
        raise ValueError(f"nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{padding_mode}'")
    return _C.grid_sampler(input, grid, GRID_SAMPLE_INTERPOLATION_MODES[mode], GRID_SAMPLE_PADDING_MODES[padding_mode], _known(align_corners))


def affine_grid(theta, size, align_corners=None):
    """Returns the grid with which grid_sample applies the affine maps `theta`, (N, 2, 3) or (N, 3, 4), to images of size `size`.

    size: (N, C, H, W) or (N, C, D, H, W). The grid is (N, H, W, 2) or (N, D, H, W, 3). Raises ValueError if `theta` is not floating-point or has
    another shape.

    >>> F.affine_grid(gradus.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2), align_corners=False).tolist()
    [[[[-0.5, 0.0], [0.5, 0.0]]]]
    """
    align_corners = _known(align_corners)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. " f"Got size {size}.")
    dims = len(size) - 2
    if theta.dim() != 3 or tuple(theta.shape[-2:]) != (dims, dims + 1):
        raise ValueError(f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {size}. Got {theta.shape}.")
    if align_corners and min(size[-dims:]) == 1:
        warnings.warn("Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is not an intended use case of "
                      "affine_grid. See the documentation of affine_grid for details.", stacklevel=2)
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return _C.affine_grid_generator(theta, size, align_corners)
