"""Implements autocast and its settings. The key `autocast` of an operator's entry in schema/ says how the operator's arguments are cast, and
src/autograd/autocast.c casts them."""
import collections
import functools
import warnings

import gradus
from gradus import _C

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "get_autocast_dtype", "is_autocast_available", "is_autocast_enabled", "set_autocast_dtype",
           "set_autocast_enabled"]

# The autocast settings of devices that Gradus does not have. They are only stored and have no effect.
_enabled = dict.fromkeys(("cuda", "mps", "xpu"), False)
_dtypes = dict.fromkeys(_enabled, gradus.float16)


def _check_device(device_type):
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if not is_autocast_available(device_type):
        raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")


def is_autocast_available(device_type):
    """True if `device_type` is the name of a device that ``autocast`` accepts, even if the device is absent.

    >>> is_autocast_available("cpu"), is_autocast_available("abacus")
    (True, False)
    """
    return device_type == "cpu" or device_type in _enabled


def is_autocast_enabled(device_type=None):
    """True if autocast is on for `device_type`, which defaults to "cuda". RuntimeError: `device_type` is not the name of a device.

    >>> with autocast("cpu"):
    ...     is_autocast_enabled("cpu")
    True
    """
    device_type = "cuda" if device_type is None else device_type
    _check_device(device_type)
    return _C.is_autocast_cpu_enabled() if device_type == "cpu" else _enabled[device_type]


def set_autocast_enabled(device_type, enabled):
    """Turns autocast on or off in this thread, without restoring the previous setting later. For an absent device the setting is only stored."""
    _check_device(device_type)
    if device_type == "cpu":
        _C.set_autocast_cpu_enabled(enabled)
    else:
        _enabled[device_type] = bool(enabled)


def get_autocast_dtype(device_type):
    """Returns the dtype to which autocast casts the arguments of matrix products, convolutions and attention.

    >>> get_autocast_dtype("cpu")
    torch.bfloat16
    """
    _check_device(device_type)
    return _C.get_autocast_cpu_dtype() if device_type == "cpu" else _dtypes[device_type]


def set_autocast_dtype(device_type, dtype):
    """Sets the dtype to which autocast casts the arguments of matrix products, convolutions and attention on devices of type `device_type`."""
    _check_device(device_type)
    if device_type == "cpu":
        _C.set_autocast_cpu_dtype(dtype)
    else:
        _dtypes[device_type] = dtype


class autocast:
    """Context manager and decorator. Inside, matrix products, convolutions and attention are computed in a dtype of 16 bits, and losses in float32.

    Casts are recorded for autograd, so gradients have the dtypes of the parameters. If the device is absent, autocast is disabled with a warning, as
    in PyTorch.

    Args:
        device_type (str): ``"cpu"``, ``"cuda"``, ``"mps"`` or ``"xpu"``.
        dtype (dtype, optional): ``bfloat16`` or ``float16``. The default is ``get_autocast_dtype(device_type)``. Any other dtype disables autocast
            with a warning.
        enabled (bool): if False, turns autocast off inside.
        cache_enabled (bool, optional): if False, parameters are cast again in every call instead of once.

    Raises ValueError if `device_type` is not a str, and RuntimeError if it is not the name of a device.

    >>> import gradus
    >>> with autocast("cpu"):
    ...     (gradus.ones(2, 2) @ gradus.ones(2, 2)).dtype
    torch.bfloat16
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        _check_device(device_type)
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = _C.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and device_type != "cpu":
            warnings.warn(f"{device_type.upper()} is not available. Disabling autocast.", stacklevel=2)
            enabled = False
        elif enabled and self.fast_dtype not in (gradus.bfloat16, gradus.float16):
            warnings.warn("In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
                          "CPU Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.", stacklevel=2)
            enabled = False
        self._enabled = enabled

    def __enter__(self):
        self.prev_cache_enabled = _C.is_autocast_cache_enabled()
        self.prev = is_autocast_enabled(self.device)
        self.prev_fastdtype = get_autocast_dtype(self.device)
        set_autocast_enabled(self.device, self._enabled)
        set_autocast_dtype(self.device, self.fast_dtype)
        _C.autocast_increment_nesting()
        _C.set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        if _C.autocast_decrement_nesting() == 0:
            _C.clear_autocast_cache()
        set_autocast_enabled(self.device, self.prev)
        set_autocast_dtype(self.device, self.prev_fastdtype)
        _C.set_autocast_cache_enabled(self.prev_cache_enabled)
        return False

    def __call__(self, func):
        if not callable(func):
            raise TypeError(f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you mean to use autocast as a context manager? "
                            "For example:\n    with torch.autocast(device_type=...):\n        output = model(input)")

        return autocast_decorator(self, func)


def autocast_decorator(autocast_instance, func):
    """Returns a wrapper that calls `func` inside of `autocast_instance`."""

    @functools.wraps(func)
    def decorated(*args, **kwargs):
        with autocast_instance:
            return func(*args, **kwargs)

    return decorated


def _cast(value, device_type, dtype):
    """Returns `value` with all floating-point tensors on the device `device_type` cast to `dtype`, except float64 tensors. Tensors in nested
    dicts, lists and tuples are cast too, and these containers are copied. Any other object is returned unchanged."""
    if isinstance(value, gradus.Tensor):
        fits = value.is_floating_point() and value.device.type == device_type and value.dtype != gradus.float64
        return value.to(dtype) if fits else value
    if isinstance(value, collections.abc.Mapping):
        return {_cast(key, device_type, dtype): _cast(item, device_type, dtype) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(item, device_type, dtype) for item in value)
    return value


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """Decorates the ``forward`` of an ``autograd.Function`` for use with autocast. The first argument of ``forward`` must be ctx.

    Args:
        device_type (str): the device whose autocast setting applies.
        cast_inputs (dtype, optional): if given, a call inside of autocast casts floating-point tensor arguments to this dtype, and ``forward`` runs
            with autocast turned off.
    """
    _check_device(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args, **kwargs):
        args[0]._dtype = get_autocast_dtype(device_type)
        args[0]._fwd_used_autocast = is_autocast_enabled(device_type)
        if cast_inputs is None or not args[0]._fwd_used_autocast:
            args[0]._fwd_used_autocast = args[0]._fwd_used_autocast and cast_inputs is None
            return fwd(*args, **kwargs)
        args[0]._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorated


def custom_bwd(bwd=None, *, device_type):
    """Decorates the ``backward`` of an ``autograd.Function`` so that it runs with the autocast setting that was active in ``forward``. ``forward``
    must be decorated with ``custom_fwd``."""
    _check_device(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*args, **kwargs):
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorated
