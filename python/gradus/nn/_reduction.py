"""Reductions of losses by name and number, and the pair of flags that said them once."""
from gradus.nn.functional._reduction import checked_reduction, legacy_reduction


def get_enum(reduction):
    """Returns 0 for "none", 1 for "mean", 2 for "sum"; otherwise raises ValueError."""
    return ("none", "mean", "sum").index(checked_reduction(None, None, reduction))


def legacy_get_string(size_average, reduce, emit_warning=True):
    """Returns the name of the reduction that the two flags, or None for True, ask for."""
    if emit_warning:
        return legacy_reduction(size_average is not False, reduce is not False, "mean")
    return ("mean" if size_average is not False else "sum") if reduce is not False else "none"


def legacy_get_enum(size_average, reduce, emit_warning=True):
    """Returns the number of the reduction that the two flags ask for."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
