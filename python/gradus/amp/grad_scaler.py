"""GradScaler, which does not exist yet."""

import warnings

__all__ = ["GradScaler"]


class GradScaler:
    """PyTorch's scaler of losses, disabled: losses and gradients stay as they are, ``step`` is the optimizer's.

    For a device that is absent it is disabled, with a warning, as in PyTorch. Raises NotImplementedError where it is enabled on the cpu.

    >>> scaler = GradScaler("cpu", enabled=False)
    >>> scaler.scale(2.5), scaler.get_scale(), scaler.is_enabled()
    (2.5, 1.0, False)
    """

    def __init__(self, device="cuda", init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        if enabled and device == "cpu":
            raise NotImplementedError("GradScaler: scaling of gradients on the cpu is not available yet. Pass enabled=False")
        if enabled:
            warnings.warn(f"torch.{device}.amp.GradScaler is enabled, but {device.upper()} is not available.  Disabling.", stacklevel=2)

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
