"""A schedule that reduces the learning rate when a metric stops improving."""
import math

from gradus.optim.lr_scheduler._base import LRScheduler, check_optimizer, group_values, set_group_value, warn_of_epoch

__all__ = ["ReduceLROnPlateau"]


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the learning rate by ``factor`` when a metric has not improved for more than ``patience`` epochs.

    Args:
        optimizer (Optimizer): the optimizer whose option ``"lr"`` is set.
        mode (str): ``"min"`` if a smaller metric is better, ``"max"`` if a larger one is.
        factor (float): the factor, less than 1.
        patience (int): the number of epochs without improvement that are tolerated.
        threshold (float): the amount by which the metric must be better than the best so far.
        threshold_mode (str): ``"rel"`` if the threshold is a fraction of the best metric, ``"abs"`` if it is an absolute difference.
        cooldown (int): the number of epochs after a reduction in which epochs without improvement are not counted.
        min_lr (float or list): the lowest learning rate, for all groups or for each.
        eps (float): a learning rate is left unchanged if it would decrease by at most eps.

    Raises ValueError for other modes, for a factor of 1 or more, and if the list min_lr does not have one value for each group.

    >>> import gradus
    >>> optimizer = gradus.optim.SGD([gradus.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    >>> scheduler.step(3.0)
    >>> scheduler.step(4.0)
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel", cooldown=0, min_lr=0, eps=1e-8):
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        check_optimizer(optimizer)
        groups = len(optimizer.param_groups)
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != groups:
                raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
            self.default_min_lr = None
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * groups
        self.factor = factor
        self.optimizer = optimizer
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = group_values(optimizer, "lr")
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _init_is_better(self, mode, threshold, threshold_mode):
        """Stores the arguments for _is_better. Raises ValueError unless mode is "min" or "max" and threshold_mode is "rel" or "abs"."""
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.mode_worse = math.inf if mode == "min" else -math.inf

    def _reset(self):
        """Resets the best metric to the worst possible value, and the counts of bad epochs and of cooldown epochs to 0."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self):
        """True during the first ``cooldown`` epochs after a reduction. During this time epochs without improvement are not counted."""
        return self.cooldown_counter > 0

    def step(self, metrics, epoch=None):
        """Counts an epoch with the metric `metrics`, and reduces the learning rates if too many epochs have passed without improvement."""
        current = float(metrics)
        if epoch is not None:
            warn_of_epoch()
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = group_values(self.optimizer, "lr")

    def _is_better(self, value, best):
        """Returns True if `value` is better than `best` by more than the threshold."""
        if self.threshold_mode == "rel":
            return value < best * (1.0 - self.threshold) if self.mode == "min" else value > best * (self.threshold + 1.0)
        return value < best - self.threshold if self.mode == "min" else value > best + self.threshold

    def _reduce_lr(self):
        """Multiplies the learning rates by ``factor``, but does not set them below ``min_lr``."""
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(f"The number of param groups in the `optimizer` ({len(groups)}) differs from when `ReduceLROnPlateau` was "
                                   f"initialized ({len(self.min_lrs)}), usually due to a new param group being added to the optimizer. "
                                   "Please modify the `min_lrs` field to match the length of the `optimizer` param groups.")
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs):
            before = float(group["lr"])
            after = max(before * self.factor, least)
            if before - after > self.eps:
                set_group_value(group, "lr", after)

    def load_state_dict(self, state_dict):
        """Restores a state that ``state_dict`` returned."""
        self.__dict__.update(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)
