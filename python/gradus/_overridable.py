"""Makes functions written in Python overridable, like the functions of the extension: modes and classes with a __torch_function__ can take over their
calls."""
import functools

from gradus import _C
from gradus._C import Tensor, _call_override, _has_torch_function, _overloaded_among


# Names of the methods of Tensor that are written by hand, in C or in Python, and do not correspond to an operator of the schema.
HAND_WRITTEN = frozenset("""
__array__ __array_wrap__ __bool__ __complex__ __contains__ __deepcopy__ __dlpack__ __dlpack_device__ __float__ __format__ __index__ __int__ __len__ __reduce_ex__ __repr__ __reversed__
_is_view apply_ backward data_ptr detach_ dim element_size get_device is_complex is_conj is_floating_point is_inference is_neg is_nonzero is_pinned is_set_to is_shared is_signed item map2_
map_ new new_tensor numel numpy pin_memory register_hook register_post_accumulate_grad_hook retain_grad share_memory_ storage storage_offset storage_type tolist type untyped_storage
""".split())

_OPERATORS = {"__eq__": "eq", "__floordiv__": "floor_divide", "__invert__": "bitwise_not",
              **{f"__{prefix}{short}__": name + suffix for prefix, suffix in (("", ""), ("i", "_"))
                 for short, name in (("and", "bitwise_and"), ("or", "bitwise_or"), ("xor", "bitwise_xor"), ("lshift", "bitwise_left_shift"), ("rshift", "bitwise_right_shift"))}}
_REVERSED = {"__rsub__": "sub", "__rtruediv__": "div", "__rfloordiv__": "floor_divide", "__rmod__": "remainder", "__rpow__": "pow", "__rmatmul__": "matmul",
             "__rlshift__": "bitwise_left_shift", "__rrshift__": "bitwise_right_shift"}
# Maps functions of torch.special and torch.linalg to the equivalent function of torch.
_RENAMED = {"linalg_matmul": "matmul", "special_expit": "sigmoid", "special_gammainc": "igamma", "special_gammaincc": "igammac", "special_gammaln": "lgamma",
            "special_multigammaln": "mvlgamma", "special_psi": "digamma"}


def by_name(function, args):
    """Returns (function, args) for a simpler call with the same result as a call that __torch_function__ received. For example, x.__rsub__(y) gives
    (torch.sub, (y, x)), and torch.special.expit gives torch.sigmoid. Returns any other call unchanged."""
    name = function.__name__
    if name in _RENAMED or name.startswith("special_"):
        return getattr(_C, _RENAMED.get(name, name.removeprefix("special_")), function), args
    if name in _OPERATORS:
        return getattr(Tensor, _OPERATORS[name]), args
    return (getattr(_C, _REVERSED[name]), args[::-1]) if name in _REVERSED else (function, args)


def _items(arguments):
    for argument in arguments:
        if isinstance(argument, (list, tuple)):
            yield from argument
        else:
            yield argument


def overridable(function):
    """Returns a wrapper of `function`. An active mode, or the __torch_function__ of an argument's class, takes over calls of the wrapper. The items
    of a list argument count as arguments."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        relevant = tuple(_items((*args, *kwargs.values())))
        if _has_torch_function(relevant):
            return _call_override(call, tuple(_overloaded_among(relevant)), args, kwargs)
        return function(*args, **kwargs)

    return call


def add_methods(*functions):
    """Adds functions to Tensor as methods. If a function also exists in the module gradus, the method is a different function object, because
    __torch_function__ is told which of the two was called."""
    for function in functions:
        setattr(Tensor, function.__name__, overridable(getattr(function, "__wrapped__", function)))
