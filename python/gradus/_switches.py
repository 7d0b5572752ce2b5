"""Implements global switches of PyTorch, such as use_deterministic_algorithms. Most of them only store their value, because Gradus is always
deterministic and computes float32 products only in float32."""
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
    """Sets the switch for deterministic operators. It has no effect, because all operators are deterministic. TypeError: `mode` is not a bool.

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
    """True after use_deterministic_algorithms(True)."""
    return _debug_mode > 0


def is_deterministic_algorithms_warn_only_enabled():
    """True after use_deterministic_algorithms(True, warn_only=True)."""
    return _debug_mode == 1


def set_deterministic_debug_mode(debug_mode):
    """Like use_deterministic_algorithms, sets the switch for deterministic operators. 0 or "default" turns the switch off. 2 or "error" turns it on.
    1 or "warn" turns it on with warn_only=True."""
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
    """Returns the mode that was set: 0 for "default", 1 for "warn" or 2 for "error"."""
    return _debug_mode


def set_float32_matmul_precision(precision):
    """Sets the precision of float32 matrix products to "highest", "high" or "medium". The precision has no effect, because the products are always
    computed in float32."""
    global _precision
    if not isinstance(precision, str):
        raise RuntimeError(f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}")
    if precision not in ("highest", "high", "medium"):
        warnings.warn(f"{precision} is not one of 'highest', 'high', or 'medium'; the current setFloat32MatmulPrecision call has no effect.", stacklevel=2)
        return
    _precision = precision


def get_float32_matmul_precision():
    """Returns the value set by set_float32_matmul_precision, "highest" by default.

    >>> get_float32_matmul_precision()
    'highest'
    """
    return _precision


def set_warn_always(b, /):
    """Sets the switch for repeated warnings. It has no effect, because Python's warning filters decide which warnings are shown."""
    global _warn_always
    _warn_always = _expect_bool("setWarnOnlyOnce", b)


def is_warn_always_enabled():
    """Returns the value set by set_warn_always."""
    return _warn_always


def set_flush_denormal(mode, /):
    """Returns False, because flushing denormal numbers to zero is not supported."""
    _expect_bool("flush_denormal", mode)
    return False


def init_num_threads():
    """Does nothing, because the number of threads is determined when the library is loaded."""


def compiled_with_cxx11_abi():
    """Returns True. The library is written in C and is compatible with both C++ ABIs."""
    return True


def get_device_module(device=None):
    """Returns the module for a device given by name or torch.device, such as gradus.cpu or gradus.cuda. RuntimeError: there is no such module."""
    import gradus

    name = "cpu" if device is None else gradus.device(device).type
    module = getattr(gradus, name, None)
    if module is None:
        raise RuntimeError(f"Invalid device string: '{device}'")
    return module


def _assert(condition, message):
    """Raises AssertionError with the message if the condition is false."""
    assert condition, message


def typename(obj, /):
    """Returns the name of an object's type with its module. For a Tensor the name includes the dtype, as in torch.FloatTensor.

    >>> import gradus
    >>> typename(gradus.ones(1)), typename(3)
    ('torch.FloatTensor', 'int')
    """
    if isinstance(obj, _C.Tensor):
        return obj.type()
    kind = obj if isinstance(obj, type) else type(obj)
    return kind.__qualname__ if kind.__module__ in ("builtins", "") else f"{kind.__module__}.{kind.__qualname__}"
