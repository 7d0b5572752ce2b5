"""Scaled products of float8 matrices. The operator takes lists of scales, so a single scale is wrapped in a list."""
from __future__ import annotations

import enum

from gradus import _C

__all__ = ["ScalingType", "SwizzleType", "scaled_mm"]


class ScalingType(enum.IntEnum):
    """Says which elements of a matrix share one scale: all elements, the elements of a row, or the elements of a block. Blocks are not
    implemented."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.IntEnum):
    """The order in memory of the scales of a matrix that has one scale per block."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def _listed(value):
    """Returns a list: empty for None, `value` as a list if it is a list or tuple, otherwise [value]."""
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def scaled_mm(mat_a, mat_b, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a=None, swizzle_b=None, bias=None, output_dtype=_C.bfloat16, contraction_dim=(),
              use_fast_accum=False):
    """Returns the product of two float8 matrices, each multiplied by its scales, converted to `output_dtype`.

    With ScalingType.TensorWise a scale is one number for the whole matrix. With ScalingType.RowWise scale_a has shape (m, 1), one number for each row
    of mat_a, and scale_b has shape (1, n), one number for each column of mat_b. The bias is added before rounding to output_dtype.

    >>> eye = gradus.eye(2).to(gradus.float8_e4m3fn)
    >>> F.scaled_mm(eye, eye, gradus.tensor(2.0), F.ScalingType.TensorWise, gradus.tensor(3.0), F.ScalingType.TensorWise, output_dtype=gradus.float32)
    tensor([[6., 0.],
            [0., 6.]])
    """
    return _C._scaled_mm_v2(mat_a, mat_b, _listed(scale_a), _listed(scale_recipe_a), _listed(swizzle_a), _listed(scale_b), _listed(scale_recipe_b), _listed(swizzle_b), bias,
                            output_dtype, list(contraction_dim), use_fast_accum)
