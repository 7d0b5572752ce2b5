"""How losses name their reduction, and the size_average and reduce that did it once."""
from __future__ import annotations

import warnings


def legacy_reduction(size_average, reduce, reduction, stacklevel=3):
    """Returns the reduction that size_average and reduce ask for, with a warning; `reduction` where both are None."""
    if size_average is None and reduce is None:
        return reduction
    average, reduces = size_average is None or size_average, reduce is None or reduce
    reduction = "mean" if average and reduces else "sum" if reduces else "none"
    warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.", stacklevel=stacklevel)
    return reduction


def named_reduction(size_average, reduce, reduction):
    """legacy_reduction for a function whose operator knows the words. ValueError: no word at all."""
    reduction = legacy_reduction(size_average, reduce, reduction, stacklevel=4)
    if not isinstance(reduction, str):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def checked_reduction(size_average, reduce, reduction):
    """legacy_reduction, and ValueError for one that does not exist."""
    reduction = legacy_reduction(size_average, reduce, reduction, stacklevel=4)
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=3)
        return "mean"
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction
