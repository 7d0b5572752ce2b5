"""Schedules that multiply the learning rate by a factor that depends on the epoch.

Most have two methods. _compute_lr computes the rate from the current rate, so that other schedules and programs can change the rate too.
_get_closed_form_lr, which step(epoch) calls, computes the rate from the initial rate.
"""
from __future__ import annotations

from bisect import bisect_right
from collections import Counter

from gradus.optim.lr_scheduler._base import LRScheduler, state_of_callable

__all__ = ["ConstantLR", "ExponentialLR", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "PolynomialLR", "StepLR"]


class _ByFunctions(LRScheduler):
    """Base of schedules given by a function of the epoch: ``lr_lambda`` is one function for all groups, or a list with one function for each group.

    Raises ValueError if the list's length is not the number of groups, TypeError if a function is not callable.
    """

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        count = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * count
        if len(self.lr_lambdas) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(self.lr_lambdas)}")
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        """Returns a dictionary of all attributes except the optimizer. Functions are replaced by None, callable objects by their attributes."""
        state = super().state_dict()
        state["lr_lambdas"] = [state_of_callable(function) for function in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict):
        """Restores a state that ``state_dict`` returned. In lr_lambdas, functions stay unchanged, and callable objects get their saved attributes."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for function, state in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if state is not None:
                function.__dict__.update(state)


class LambdaLR(_ByFunctions):
    """Sets the learning rate to the initial rate times ``lr_lambda(epoch)``.

    >>> import gradus
    >>> optimizer = gradus.optim.SGD([gradus.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def _compute_lr(self):
        return [rate * function(self.last_epoch) for function, rate in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(_ByFunctions):
    """Multiplies the learning rate by ``lr_lambda(epoch)`` in every epoch."""

    def _compute_lr(self):
        if self._is_initial:
            return self._current_lrs()
        return [group["lr"] * function(self.last_epoch) for function, group in zip(self.lr_lambdas, self.optimizer.param_groups)]


class StepLR(LRScheduler):
    """Multiplies the learning rate by ``gamma`` every ``step_size`` epochs."""

    def __init__(self, optimizer, step_size: int, gamma: float = 0.1, last_epoch=-1):
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _compute_lr(self):
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._current_lrs()
        return self._scaled_lrs(self.gamma)

    def _get_closed_form_lr(self):
        """Returns the learning rates of all groups for self.last_epoch, computed from the initial rates."""
        return [rate * self.gamma ** (self.last_epoch // self.step_size) for rate in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiplies the learning rate by ``gamma`` at each epoch in ``milestones``, several times if the epoch occurs in the list several times."""

    def __init__(self, optimizer, milestones, gamma: float = 0.1, last_epoch=-1):
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _compute_lr(self):
        if self.last_epoch not in self.milestones:
            return self._current_lrs()
        return self._scaled_lrs(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self):
        """Returns the learning rates of all groups for self.last_epoch, computed from the initial rates."""
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [rate * self.gamma ** passed for rate in self.base_lrs]


class ConstantLR(LRScheduler):
    """Multiplies the learning rate by ``factor`` at epoch 0 and divides it by ``factor`` at epoch ``total_iters``.

    Raises ValueError for a factor outside [0, 1].
    """

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _compute_lr(self):
        if self.last_epoch == 0:
            return self._scaled_lrs(self.factor)
        if self.last_epoch != self.total_iters:
            return self._current_lrs()
        return self._scaled_lrs(1.0 / self.factor)

    def _get_closed_form_lr(self):
        """Returns the learning rates of all groups for self.last_epoch, computed from the initial rates."""
        return [rate * (self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)) for rate in self.base_lrs]


class LinearLR(LRScheduler):
    """Multiplies the initial rate by a factor that changes linearly from ``start_factor`` to ``end_factor`` in ``total_iters`` epochs.

    Raises ValueError for a start_factor outside (0, 1] or an end_factor outside [0, 1].
    """

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _compute_lr(self):
        if self.last_epoch == 0:
            return self._scaled_lrs(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current_lrs()
        change = self.end_factor - self.start_factor
        return self._scaled_lrs(1.0 + change / (self.total_iters * self.start_factor + (self.last_epoch - 1) * change))

    def _get_closed_form_lr(self):
        """Returns the learning rates of all groups for self.last_epoch, computed from the initial rates."""
        done = min(self.total_iters, self.last_epoch)
        return [rate * (self.start_factor + (self.end_factor - self.start_factor) * done / self.total_iters) for rate in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiplies the learning rate by ``gamma`` in every epoch."""

    def __init__(self, optimizer, gamma: float, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _compute_lr(self):
        return self._current_lrs() if self._is_initial else self._scaled_lrs(self.gamma)

    def _get_closed_form_lr(self):
        """Returns the learning rates of all groups for self.last_epoch, computed from the initial rates."""
        return [rate * self.gamma ** self.last_epoch for rate in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Sets the learning rate to the initial rate times ``(1 - epoch / total_iters) ** power``, and to 0 from epoch ``total_iters`` on."""

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _compute_lr(self):
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current_lrs()
        left, left_before = 1.0 - self.last_epoch / self.total_iters, 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._scaled_lrs((left / left_before) ** self.power)

    def _get_closed_form_lr(self):
        """Returns the learning rates of all groups for self.last_epoch, computed from the initial rates."""
        done = min(self.total_iters, self.last_epoch)
        return [rate * (1.0 - done / self.total_iters) ** self.power for rate in self.base_lrs]
