"""Implements GradScaler, which multiplies the loss by a factor so that small gradients do not become 0 in float16."""
from __future__ import annotations

import warnings
from collections import abc, defaultdict
from enum import Enum

import gradus
from gradus import _C

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """Progress of an optimizer in an iteration: its gradients are still scaled, they have been divided by the scale, or ``step`` has been called."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _new_state():
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Multiplies losses by a scale, so that small gradients do not become 0 in float16. Before an optimizer step it divides the gradients by the
    scale. It skips steps with gradients that are not finite. ``update`` adapts the scale.

    If `device` is absent, the scaler is disabled with a warning, as in PyTorch. A disabled scaler changes neither losses nor gradients, and ``step``
    only calls the optimizer's step.

    Args:
        device (str): the device of the gradients.
        init_scale (float): the initial scale.
        growth_factor (float): the factor by which the scale is multiplied after ``growth_interval`` consecutive steps with finite gradients.
        backoff_factor (float): the factor by which the scale is multiplied after a skipped step.
        growth_interval (int): the number of consecutive steps with finite gradients before the scale grows.
        enabled (bool): if False, the scaler is disabled.

    >>> import gradus
    >>> weight = gradus.ones(1, requires_grad=True)
    >>> optimizer, scaler = gradus.optim.SGD([weight], lr=0.5), GradScaler("cpu", init_scale=4.0)
    >>> scaler.scale(weight.sum()).backward()
    >>> weight.grad.item()
    4.0
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> weight.item(), scaler.get_scale()
    (0.5, 4.0)
    """

    def __init__(self, device="cuda", init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        self._device = device
        self._enabled = enabled
        if enabled and device != "cpu":
            warnings.warn(f"torch.{device}.amp.GradScaler is enabled, but {device.upper()} is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale = None  # created when the first loss is scaled
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker = None
        self._per_optimizer_states = defaultdict(_new_state)

    def _check_scale_growth_tracker(self, function):
        fix = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
        if self._scale is None:
            raise AssertionError(f"Attempted {function} but _scale is None.  {fix}")
        return self._scale, self._growth_tracker

    def _lazy_init_scale_growth_tracker(self):
        self._scale = gradus.full((), self._init_scale, dtype=gradus.float32)
        self._growth_tracker = gradus.full((), self._init_growth_tracker, dtype=gradus.int32)

    def scale(self, outputs):
        """Returns `outputs`, a tensor or nested lists and tuples of tensors, multiplied by the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, gradus.Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker()
            return outputs * self._scale
        if not isinstance(outputs, abc.Iterable):
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")
        scaled = map(self.scale, outputs)
        return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled

    def _unscale_grads(self, optimizer, inv_scale, found_inf, allow_fp16):
        grads = [param.grad for group in optimizer.param_groups for param in group["params"] if param.grad is not None]
        if not allow_fp16 and any(grad.dtype == gradus.float16 for grad in grads):
            raise ValueError("Attempting to unscale FP16 gradients.")
        with gradus.no_grad():
            _C._amp_foreach_non_finite_check_and_unscale_(grads, found_inf, inv_scale)
        return {found_inf.device: found_inf} if grads else {}

    def unscale_(self, optimizer):
        """Divides the gradients of the optimizer's parameters by the scale, in place. A program that clips gradients calls ``unscale_`` before it
        clips them, and at most once for each step. RuntimeError: ``unscale_`` or ``step`` has already been called since the last ``update``."""
        if not self._enabled:
            return
        scale, _ = self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        state["found_inf_per_device"] = self._unscale_grads(optimizer, scale.double().reciprocal().float(), gradus.zeros(()), False)
        state["stage"] = OptState.UNSCALED

    def _found_inf(self, state):
        return any(found.item() for found in state["found_inf_per_device"].values())

    def step(self, optimizer, *args, **kwargs):
        """Divides the gradients by the scale, unless ``unscale_`` has already done so. If all gradients are finite, calls the optimizer's step and
        returns its result. Otherwise returns None. RuntimeError: a closure is given."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if self._found_inf(state) else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale=None):
        """Ends an iteration and updates the scale. `new_scale`, a number or a tensor of one element, becomes the scale if it is given. Otherwise
        the scale is multiplied by the backoff factor if a gradient was not finite. It is multiplied by the growth factor after enough consecutive
        steps with finite gradients."""
        if not self._enabled:
            return
        scale, growth_tracker = self._check_scale_growth_tracker("update")
        if isinstance(new_scale, gradus.Tensor):
            if new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError("new_scale should be a float or a 1-element torch.FloatTensor with requires_grad=False.")
            scale.copy_(new_scale.reshape(()))
        elif new_scale is not None:
            scale.fill_(new_scale)
        else:
            found = [found for state in self._per_optimizer_states.values() for found in state["found_inf_per_device"].values()]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            _C._amp_update_scale_(scale, growth_tracker, sum(found[1:], found[0]), self._growth_factor, self._backoff_factor, self._growth_interval)
        self._per_optimizer_states = defaultdict(_new_state)

    def _get_scale_async(self):
        return self._scale

    def get_scale(self):
        """Returns the scale as a float, or 1.0 if the scaler is disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self):
        """Returns the factor, above 1, by which the scale is multiplied when it grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        """Sets the factor, above 1, by which the scale is multiplied when it grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        """Returns the factor, below 1, by which the scale is multiplied after a skipped step."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        """Sets the factor, below 1, by which the scale is multiplied after a skipped step."""
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        """Returns the number of consecutive steps with finite gradients before the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        """Sets the number of consecutive steps with finite gradients before the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    def is_enabled(self):
        """True unless the scaler is disabled."""
        return self._enabled

    def state_dict(self):
        """Returns a dict of numbers that PyTorch's GradScaler can load as well: the scale, growth factor, backoff factor, growth interval and the
        number of consecutive steps with finite gradients so far. The dict is empty if the scaler is disabled."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": self._get_growth_tracker()}

    def load_state_dict(self, state_dict):
        """Restores the state from a dict that the method ``state_dict()`` returned. Does nothing if the scaler is disabled. RuntimeError: the dict is
        empty."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.")
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self):
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError("A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after scaler.update().")
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state
