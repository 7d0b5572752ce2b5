"""Mixed precision: there is none. ``autocast`` and ``GradScaler`` can be written in a program, warn, and leave every dtype as it is."""
import functools
import warnings

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available", "is_autocast_enabled"]

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
    """A context and decorator that leaves dtypes as they are; with ``enabled=True`` it warns that it does.

    Args:
        device_type (str): ``"cpu"``, ``"cuda"``, ``"mps"`` or ``"xpu"``.
        dtype, cache_enabled: accepted, of no effect.
        enabled (bool): whether to warn.

    Raises ValueError and RuntimeError for what is no device.

    >>> with autocast("cpu", enabled=False):
    ...     pass
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if device_type not in _DEVICES:
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        if enabled:
            warnings.warn("Gradus has no mixed precision. Disabling autocast.", stacklevel=2)

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


class GradScaler:
    """PyTorch's scaler of losses, disabled: losses and gradients stay as they are, ``step`` is the optimizer's.

    Without mixed precision no gradient needs to be kept from underflow; with ``enabled=True`` it warns that it does nothing.

    >>> scaler = GradScaler("cpu", enabled=False)
    >>> scaler.scale(2.5), scaler.get_scale(), scaler.is_enabled()
    (2.5, 1.0, False)
    """

    def __init__(self, device="cuda", init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        if enabled:
            warnings.warn("GradScaler is enabled, but Gradus has no mixed precision. Disabling.", stacklevel=2)

    def is_enabled(self):
        """False."""
        return False

    def get_scale(self):
        """1.0."""
        return 1.0

    def scale(self, outputs):
        """The outputs themselves."""
        return outputs

    def unscale_(self, optimizer):
        """Nothing: the gradients have no scale."""

    def step(self, optimizer, *args, **kwargs):
        """The optimizer's step."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale=None):
        """Nothing: there is no scale."""

    def state_dict(self):
        """An empty dictionary, as that of any disabled scaler."""
        return {}

    def load_state_dict(self, state_dict):
        """Nothing, as any disabled scaler does."""
