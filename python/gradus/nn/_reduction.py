"""Conversions between the name of a loss's reduction, its number, and the deprecated flags size_average and reduce."""
from gradus.nn.functional._reduction import checked_reduction, legacy_reduction


def get_enum(reduction):
    """Returns 0 for "none", 1 for "mean" and 2 for "sum"; raises ValueError otherwise."""
    return ("none", "mean", "sum").index(checked_reduction(None, None, reduction))


def legacy_get_string(size_average, reduce, emit_warning=True):
    """Returns the reduction that the deprecated flags select: "none" if `reduce` is False, otherwise "sum" if size_average is False, otherwise
    "mean".

    emit_warning: warns that the flags are deprecated.
    """
    if emit_warning:
        return legacy_reduction(size_average is not False, reduce is not False, "mean")
    return ("mean" if size_average is not False else "sum") if reduce is not False else "none"


def legacy_get_enum(size_average, reduce, emit_warning=True):
    """Returns the number of the reduction that the deprecated flags select: 0 ("none") if `reduce` is False, otherwise 2 ("sum") if size_average is
    False, otherwise 1 ("mean")."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
