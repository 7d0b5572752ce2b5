"""Functions that check the argument `reduction` of a loss, and translate the deprecated flags size_average and reduce to a reduction."""
from __future__ import annotations

import warnings


def legacy_reduction(size_average, reduce, reduction, stacklevel=3):
    """Returns `reduction` if the deprecated flags size_average and reduce are None. Otherwise warns and returns what the flags select: "none" if
    `reduce` is False, otherwise "sum" if size_average is False, otherwise "mean"."""
    if size_average is None and reduce is None:
        return reduction
    average, reduces = size_average is None or size_average, reduce is None or reduce
    reduction = "mean" if average and reduces else "sum" if reduces else "none"
    warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.", stacklevel=stacklevel)
    return reduction


def named_reduction(size_average, reduce, reduction):
    """Returns `reduction` if the deprecated flags size_average and reduce are None. Otherwise returns the reduction that the flags select. Raises
    ValueError if `reduction` is not a string. An unknown name is returned unchanged; the operator then raises an error."""
    reduction = legacy_reduction(size_average, reduce, reduction, stacklevel=4)
    if not isinstance(reduction, str):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def checked_reduction(size_average, reduce, reduction):
    """Returns `reduction` if the deprecated flags size_average and reduce are None. Otherwise returns the reduction that the flags select. Raises
    ValueError if `reduction` is not "none", "mean" or "sum"."""
    reduction = legacy_reduction(size_average, reduce, reduction, stacklevel=4)
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=3)
        return "mean"
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction
