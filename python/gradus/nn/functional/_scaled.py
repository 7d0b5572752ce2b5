"""Products of float8 matrices: one value where the operator takes lists."""
from __future__ import annotations

import enum

from gradus import _C

__all__ = ["ScalingType", "SwizzleType", "scaled_mm"]


class ScalingType(enum.IntEnum):
    """The part of a matrix that has one scale: the matrix, a row, or a block. Blocks are not implemented."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.IntEnum):
    """How scales of blocks lie in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def _listed(value):
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def scaled_mm(mat_a, mat_b, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a=None, swizzle_b=None, bias=None, output_dtype=_C.bfloat16, contraction_dim=(),
              use_fast_accum=False):
    """Returns the product of two float8 matrices whose elements stand for themselves times a scale: one of the matrix (ScalingType.TensorWise), or one of each row of mat_a, (m, 1), and
    each column of mat_b, (1, n) (ScalingType.RowWise). A bias is added before the result is rounded to output_dtype.

    >>> eye = gradus.eye(2).to(gradus.float8_e4m3fn)
    >>> F.scaled_mm(eye, eye, gradus.tensor(2.0), F.ScalingType.TensorWise, gradus.tensor(3.0), F.ScalingType.TensorWise, output_dtype=gradus.float32)
    tensor([[6., 0.],
            [0., 6.]])
    """
    return _C._scaled_mm_v2(mat_a, mat_b, _listed(scale_a), _listed(scale_recipe_a), _listed(swizzle_a), _listed(scale_b), _listed(scale_recipe_b), _listed(swizzle_b), bias,
                            output_dtype, list(contraction_dim), use_fast_accum)
