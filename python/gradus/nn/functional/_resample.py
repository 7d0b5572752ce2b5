"""Resizing of images: chooses the operator for a mode, and computes output sizes and scale factors. The operators do the interpolation."""
from __future__ import annotations

import operator
import warnings

from gradus._C import nn as _nn

from ._pooling import adaptive_avg_pool2d, adaptive_avg_pool3d

__all__ = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

# The operators that resize images. The keys of _NEAREST and _SMOOTH are pairs (mode, number of spatial dimensions). The keys of _AREA are numbers of
# spatial dimensions, those of _ANTIALIASED are modes. The operators in _SMOOTH and _ANTIALIASED also take align_corners.
_NEAREST = {("nearest", 1): _nn.upsample_nearest1d, ("nearest", 2): _nn.upsample_nearest2d, ("nearest", 3): _nn.upsample_nearest3d,
            ("nearest-exact", 1): _nn._upsample_nearest_exact1d, ("nearest-exact", 2): _nn._upsample_nearest_exact2d,
            ("nearest-exact", 3): _nn._upsample_nearest_exact3d}
_AREA = {1: _nn.adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}
_SMOOTH = {("linear", 1): _nn.upsample_linear1d, ("bilinear", 2): _nn.upsample_bilinear2d, ("trilinear", 3): _nn.upsample_trilinear3d,
           ("bicubic", 2): _nn.upsample_bicubic2d}
_ANTIALIASED = {"bilinear": _nn._upsample_bilinear2d_aa, "bicubic": _nn._upsample_bicubic2d_aa, "lanczos": _nn._upsample_lanczos2d_aa}
_NDIM = {"linear": 3, "bilinear": 4, "trilinear": 5}


def _is_integer(value):
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def _each(values, input, name, shown):
    """Returns `values` as a list with one value for each spatial dimension of `input`.

    Raises ValueError for a list of another length; `name` and `shown` are for the error text.
    """
    dims = input.dim() - 2
    if not isinstance(values, (list, tuple)):
        return [values] * dims
    if len(values) != dims:
        raise ValueError(f"Input and {name} must have the same number of spatial dimensions, but got input with spatial dimensions of {list(input.shape[2:])} and "
                         f"{shown} {values}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
                         + ("output size in (o1, o2, ...,oK) format." if name == "output" else "scale_factor in (s1, s2, ...,sK) format."))
    return list(values)


def _sizes(input, size, scale_factor, recompute):
    """Returns (sizes, factors): the output's spatial sizes, and for each dimension the scale factor that maps output positions to input positions.

    A factor is None if the operator is to compute it from the input and output sizes.
    """
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None:
        sizes = _each(size, input, "output", "output size of")
        if not all(_is_integer(n) for n in sizes):
            raise TypeError("expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], "
                            f"but got size with types {[type(n) for n in sizes]}")
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return sizes, [None] * len(sizes)
    factors = [float(factor) for factor in _each(scale_factor, input, "scale_factor", "scale_factor of shape")]
    return [int(n * factor) for n, factor in zip(input.shape[2:], factors)], [None] * len(factors) if recompute else factors


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False):
    """Returns images (N, C, L), (N, C, H, W) or (N, C, D, H, W) resized to `size`, or by the factor `scale_factor`.

    size, scale_factor: one number, or one for each spatial dimension. mode: "nearest", "nearest-exact", "area" (averages), "linear", "bilinear",
    "trilinear", "bicubic" or "lanczos". align_corners: maps the centers of corner elements onto each other. antialias: filters "bilinear", "bicubic"
    and "lanczos" when images become smaller. recompute_scale_factor: computes positions from the sizes instead of scale_factor. Raises ValueError or
    NotImplementedError for arguments that the mode does not support.

    >>> F.interpolate(gradus.tensor([[[1.0, 2.0]]]), scale_factor=2, mode="linear").tolist()
    [[[1.0, 1.25, 1.75, 2.0]]]
    """
    smooth = mode not in ("nearest", "area", "nearest-exact")
    if not smooth and align_corners is not None:
        raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
    dims = input.dim() - 2
    sizes, factors = _sizes(input, size, scale_factor, recompute_scale_factor or mode == "area" and size is None)
    if antialias and (mode not in _ANTIALIASED or dims != 2):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input")
    if mode == "area" and dims in _AREA:
        return _AREA[dims](input, sizes)
    if (mode, dims) in _NEAREST:
        return _NEAREST[mode, dims](input, sizes, *factors)
    if mode == "lanczos" and dims == 2 and (align_corners or not antialias):
        raise ValueError("Lanczos mode does not support align_corners=True" if align_corners else "Lanczos mode requires antialias=True")
    resample = _ANTIALIASED[mode] if antialias else _SMOOTH.get((mode, dims))
    if resample is not None:
        return resample(input, sizes, bool(align_corners), *factors)
    if mode in _NDIM and dims in (1, 2, 3):
        raise NotImplementedError(f"Got {dims + 2}D input, but {mode} mode needs {_NDIM[mode]}D input")
    raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | "
                              f"trilinear | lanczos | area | nearest-exact (got {mode})")


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """Returns interpolate(...). This function is deprecated and warns."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """Returns interpolate(...) with mode "nearest". This function is deprecated and warns."""
    warnings.warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """Returns interpolate(...) with mode "bilinear" and align_corners=True. This function is deprecated and warns."""
    warnings.warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
