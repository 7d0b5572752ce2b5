"""autocast, which does not exist yet."""
import functools
import warnings

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available", "is_autocast_enabled"]

_DEVICES = ("cpu", "cuda", "mps", "xpu")


def is_autocast_available(device_type):
    """False: no operator chooses its dtype by a context.

    >>> is_autocast_available("cpu")
    False
    """
    return False


def is_autocast_enabled(device_type=None):
    """False, inside of ``autocast`` too.

    >>> is_autocast_enabled("cpu")
    False
    """
    return False


class autocast:
    """A context and decorator that leaves dtypes as they are. For a device that is absent it is disabled, with a warning, as in PyTorch.

    Args:
        device_type (str): ``"cpu"``, ``"cuda"``, ``"mps"`` or ``"xpu"``.
        dtype, cache_enabled: accepted, of no effect.
        enabled (bool): must be False on the cpu.

    Raises NotImplementedError where it is enabled on the cpu; ValueError and RuntimeError for what is no device.

    >>> with autocast("cpu", enabled=False):
    ...     pass
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if device_type not in _DEVICES:
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self._enabled = False
        if enabled and device_type == "cpu":
            raise NotImplementedError("autocast: mixed precision on the cpu is not available yet. Pass enabled=False, or convert the model and its inputs, "
                                      "as by model.to(torch.bfloat16)")
        if enabled:
            warnings.warn(f"{device_type.upper()} is not available. Disabling autocast.", stacklevel=2)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False

    def __call__(self, function):
        if not callable(function):
            raise TypeError(f"autocast()(func) requires a callable, but got {type(function).__name__}")

        @functools.wraps(function)
        def run(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return run


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """The forward of an ``autograd.Function`` as it is: outside of autocast ``cast_inputs`` has no effect in PyTorch either."""
    return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs) if fwd is None else fwd


def custom_bwd(bwd=None, *, device_type):
    """The backward of an ``autograd.Function`` as it is."""
    return functools.partial(custom_bwd, device_type=device_type) if bwd is None else bwd
