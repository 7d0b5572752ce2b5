"""Switches of the process that programs set. Gradus gives the same bits for the same inputs, and has one precision of products: so most are kept and have no effect."""
import warnings

from gradus import _C

__all__ = ["are_deterministic_algorithms_enabled", "compiled_with_cxx11_abi", "get_deterministic_debug_mode", "get_device_module", "get_float32_matmul_precision",
           "init_num_threads", "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled", "set_deterministic_debug_mode",
           "set_float32_matmul_precision", "set_flush_denormal", "set_warn_always", "typename", "use_deterministic_algorithms"]

_DEBUG_MODES = ("default", "warn", "error")
_debug_mode = 0
_warn_always = False
_precision = "highest"


def _expect_bool(name, value):
    if not isinstance(value, bool):
        raise RuntimeError(f"{name} expects a bool, but got {type(value).__name__}")
    return value


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Says whether operators must be deterministic, which they are in any case.

    >>> use_deterministic_algorithms(True)
    >>> are_deterministic_algorithms_enabled()
    True
    >>> use_deterministic_algorithms(False)
    """
    global _debug_mode
    if not isinstance(mode, bool):
        raise TypeError(f"_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not {type(mode).__name__}")
    _debug_mode = (1 if warn_only else 2) if mode else 0


def are_deterministic_algorithms_enabled():
    """Returns what use_deterministic_algorithms has set."""
    return _debug_mode > 0


def is_deterministic_algorithms_warn_only_enabled():
    """True after use_deterministic_algorithms(True, warn_only=True)."""
    return _debug_mode == 1


def set_deterministic_debug_mode(debug_mode):
    """use_deterministic_algorithms by number or name: 0 or "default": not; 1 or "warn": warn only; 2 or "error"."""
    global _debug_mode
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}")
        debug_mode = _DEBUG_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    _debug_mode = int(debug_mode)


def get_deterministic_debug_mode():
    """Returns 0, 1 or 2: see set_deterministic_debug_mode."""
    return _debug_mode


def set_float32_matmul_precision(precision):
    """Says how exact products of float32 must be: "highest", "high" or "medium". They are computed in float32 in any case."""
    global _precision
    if not isinstance(precision, str):
        raise RuntimeError(f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}")
    if precision not in ("highest", "high", "medium"):
        warnings.warn(f"{precision} is not one of 'highest', 'high', or 'medium'; the current setFloat32MatmulPrecision call has no effect.", stacklevel=2)
        return
    _precision = precision


def get_float32_matmul_precision():
    """Returns what set_float32_matmul_precision has set; "highest" by default.

    >>> get_float32_matmul_precision()
    'highest'
    """
    return _precision


def set_warn_always(b, /):
    """Says whether warnings come every time. Python's own filters decide that here."""
    global _warn_always
    _warn_always = _expect_bool("setWarnOnlyOnce", b)


def is_warn_always_enabled():
    """Returns what set_warn_always has set."""
    return _warn_always


def set_flush_denormal(mode, /):
    """False: tiny numbers are not flushed to zero."""
    _expect_bool("flush_denormal", mode)
    return False


def init_num_threads():
    """Nothing: the number of threads is known from the start."""


def compiled_with_cxx11_abi():
    """True: the library is C, which goes with either."""
    return True


def get_device_module(device=None):
    """Returns the module of a type of device, by name or torch.device: gradus.cpu, gradus.cuda …"""
    import gradus

    name = "cpu" if device is None else gradus.device(device).type
    module = getattr(gradus, name, None)
    if module is None:
        raise RuntimeError(f"Invalid device string: '{device}'")
    return module


def _assert(condition, message):
    """The statement ``assert`` as a function. AssertionError with the message if the condition is false."""
    assert condition, message


def typename(obj, /):
    """Returns the name of the type of an object, with its module; of a Tensor that of its dtype, too.

    >>> import gradus
    >>> typename(gradus.ones(1)), typename(3)
    ('torch.FloatTensor', 'int')
    """
    if isinstance(obj, _C.Tensor):
        return obj.type()
    kind = obj if isinstance(obj, type) else type(obj)
    return kind.__qualname__ if kind.__module__ in ("builtins", "") else f"{kind.__module__}.{kind.__qualname__}"
