"""Cyclical schedules: the learning rate rises and falls, and the momentum changes in the opposite direction."""
from __future__ import annotations

import math

from gradus.optim.lr_scheduler._base import LRScheduler, check_optimizer, per_group, set_group_value, state_of_callable

__all__ = ["CyclicLR", "OneCycleLR"]


class _WithMomentum(LRScheduler):
    """Base of schedules that also set each group's momentum, i.e. its option ``"momentum"`` or, for optimizers like Adam, the first of
    ``"betas"``."""

    def _begin_momentum(self, base_momentum, max_momentum, last_epoch):
        """Returns base_momentum and max_momentum as lists with one value for each group.

        If last_epoch is -1, also sets the momentum of each group to max_momentum. Raises ValueError if the optimizer has no momentum.
        """
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in defaults
        lows, highs = per_group("base_momentum", self.optimizer, base_momentum), per_group("max_momentum", self.optimizer, max_momentum)
        if last_epoch == -1:
            for low, high, group in zip(lows, highs, self.optimizer.param_groups):
                self._set_momentum(group, high)
                group["max_momentum"] = high
                group["base_momentum"] = low
        return lows, highs

    def _set_momentum(self, group, momentum):
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_WithMomentum):
    """Cyclical learning rates (Smith, 2017): the rate goes from ``base_lr`` to ``max_lr`` and back repeatedly. Call ``step`` after every batch.

    Args:
        optimizer (Optimizer): the optimizer whose groups are changed.
        base_lr, max_lr (float or list): the lowest and the highest learning rate, for all groups or for each.
        step_size_up (int): the number of steps from the lowest to the highest rate.
        step_size_down (int, optional): the number of steps back; ``step_size_up`` when None.
        mode (str): what happens to the amplitude ``max_lr - base_lr``. ``"triangular"``: it is constant; ``"triangular2"``: it is halved in each
            cycle; ``"exp_range"``: it is multiplied by ``gamma ** step``.
        gamma (float): the base of the factor ``gamma ** step`` in mode ``"exp_range"``.
        scale_fn (callable, optional): returns the factor of the amplitude for the number of the cycle or step; ``mode`` is then ignored.
        scale_mode (str): the argument of ``scale_fn``: ``"cycle"`` or ``"iterations"`` (the step).
        cycle_momentum (bool): moves the momentum from ``max_momentum`` to ``base_momentum`` while the rate rises, and back while it falls.
        base_momentum, max_momentum (float or list): the bounds of the momentum, for all groups or for each.
        last_epoch (int): the number of the last step when resuming, otherwise -1.

    Raises ValueError for another mode, for lists whose length is not the number of groups, and for an optimizer without momentum.
    """

    def __init__(self, optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=None, mode="triangular", gamma: float = 1.0, scale_fn=None,
                 scale_mode="cycle", cycle_momentum=True, base_momentum=0.8, max_momentum=0.9, last_epoch=-1):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = per_group("base_lr", optimizer, base_lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn else "iterations" if mode == "exp_range" else "cycle"
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups):
                set_group_value(group, "lr", rate)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._begin_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x):
        """Returns the amplitude as a fraction of ``max_lr - base_lr``. ``x``: the number of the cycle or of the step, as ``scale_mode`` says."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / (2.0 ** (x - 1)) if self.mode == "triangular2" else self.gamma**x

    def _compute_lr(self):
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        part = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for low, high, group in zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups):
                self._set_momentum(group, high - (high - low) * part * scale)
        return [low + (high - low) * part * scale for low, high in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self):
        """Returns a dictionary of all attributes except the optimizer. A ``scale_fn`` that is an object is represented by its attributes."""
        state = super().state_dict()
        state["_scale_fn_custom"] = state_of_callable(self._scale_fn_custom)
        return state

    def load_state_dict(self, state_dict):
        """Restores a state that ``state_dict`` returned. Keeps the object ``scale_fn`` and restores its attributes."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        if state_dict["_scale_fn_custom"] is not None:
            self._scale_fn_custom.__dict__.update(state_dict["_scale_fn_custom"])


class OneCycleLR(_WithMomentum):
    """One-cycle schedule (Smith and Topin, 2018): the rate rises to ``max_lr``, then falls far below the initial rate.

    Call ``step`` after every batch.

    Args:
        optimizer (Optimizer): the optimizer whose groups are changed.
        max_lr (float or list): the highest learning rate, for all groups or for each.
        total_steps (int, optional): the total number of steps; ``epochs * steps_per_epoch`` when None.
        epochs, steps_per_epoch (int, optional): their product is the total number of steps if ``total_steps`` is None.
        pct_start (float): the fraction of the steps in which the rate rises.
        anneal_strategy (str): ``"cos"`` or ``"linear"``.
        cycle_momentum (bool): moves the momentum from ``max_momentum`` to ``base_momentum`` while the rate rises, and back while it falls.
        base_momentum, max_momentum (float or list): the bounds of the momentum, for all groups or for each.
        div_factor (float): the initial rate is ``max_lr / div_factor``.
        final_div_factor (float): the final rate is the initial rate divided by this factor.
        three_phase (bool): the rate rises, falls back to the initial rate in the same number of steps, and then falls to the final rate.
        last_epoch (int): the number of the last step when resuming, otherwise -1.

    Raises ValueError for values out of range, for an optimizer without momentum, and for a step beyond the total number of steps.
    """

    def __init__(self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3, anneal_strategy="cos",
                 cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, div_factor=25.0, final_div_factor=1e4, three_phase=False,
                 last_epoch=-1):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        rise = float(pct_start * self.total_steps) - 1
        fall = float(2 * pct_start * self.total_steps) - 2
        self._schedule_phases = [_phase(rise, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
        if three_phase:
            self._schedule_phases += [_phase(fall, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                                      _phase(self.total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")]
        else:
            self._schedule_phases.append(_phase(self.total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"))
        rates = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for rate, group in zip(rates, optimizer.param_groups):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start, end, part):
        """Returns the learning rate or momentum after the fraction `part` of a phase. The phase changes this value from `start` to `end`."""
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def _compute_lr(self):
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        begin = 0.0
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            begin = phase["end_step"]
        part = (step - begin) / (phase["end_step"] - begin)
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            for group in groups:
                self._set_momentum(group, self._anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], part))
        return [self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], part) for group in groups]


def _phase(end_step, start_lr, end_lr, start_momentum, end_momentum):
    """Returns a dictionary that describes a phase, in which the rate only rises or only falls.

    end_step: the phase's last step. The other arguments are the names of group options that hold the learning rates and momenta at its start and end.
    """
    return {"end_step": end_step, "start_lr": start_lr, "end_lr": end_lr, "start_momentum": start_momentum, "end_momentum": end_momentum}


def _total_steps(total_steps, epochs, steps_per_epoch):
    """Returns total_steps, or epochs * steps_per_epoch if total_steps is None. ValueError: a needed argument is None or not a positive integer."""
    if total_steps is None and (epochs is None or steps_per_epoch is None):
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    given = {"total_steps": total_steps} if total_steps is not None else {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(given.values())
