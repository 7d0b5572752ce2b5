"""Schedules that decrease the learning rate along a cosine to ``eta_min`` (Loshchilov and Hutter, 2017)."""
from __future__ import annotations

import math

from gradus.optim.lr_scheduler._base import LRScheduler

__all__ = ["CosineAnnealingLR", "CosineAnnealingWarmRestarts"]


class CosineAnnealingLR(LRScheduler):
    """Sets the learning rate to ``eta_min + (initial - eta_min) * (1 + cos(pi * epoch / T_max)) / 2``.

    Each step computes the learning rate from the current one, so that other schedules may change it too.
    """

    def __init__(self, optimizer, T_max: int, eta_min=0.0, last_epoch=-1):
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _compute_lr(self):
        epoch, half, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return self._current_lrs()
        if self._step_count == 1 and epoch > 0:
            return [low + (base - low) * (1 + math.cos(epoch * math.pi / half)) / 2 for base in self.base_lrs]
        # If the previous rate was eta_min, the last formula below would divide by 0.
        if (epoch - 1 - half) % (2 * half) == 0:
            return [group["lr"] + (base - low) * (1 - math.cos(math.pi / half)) / 2
                    for base, group in zip(self.base_lrs, self.optimizer.param_groups)]
        return [(1 + math.cos(math.pi * epoch / half)) / (1 + math.cos(math.pi * (epoch - 1) / half)) * (group["lr"] - low) + low
                for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self):
        """Returns the learning rates of all groups for self.last_epoch, computed from the initial rates."""
        return [self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Decreases the learning rate along half a cosine in ``T_0`` epochs, then restarts from the initial rate.

    Each period is ``T_mult`` times as long as the one before. Raises ValueError if T_0 or T_mult is not a positive integer.
    """

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def _compute_lr(self):
        return [self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2 for base in self.base_lrs]

    def step(self, epoch=None):
        """Advances by one epoch, or to ``epoch``, which may be fractional, e.g. ``step(epoch + batch / batches)`` after each batch."""
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            self._go_to(0 if epoch is None else epoch)
            epoch = 0 if epoch is None else epoch
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            rates = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set_lrs(rates)

    def _go_to(self, epoch):
        """Sets T_cur, the epochs since the last restart, and T_i, the length of the period, for `epoch`."""
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            restarts = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**restarts - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**restarts
