"""LRScheduler, the base class, and what schedules do to the groups of an optimizer."""
import functools
import types
import warnings
import weakref

import gradus
from gradus.optim.optimizer import Optimizer

__all__ = ["LRScheduler", "check_optimizer", "group_values", "per_group", "set_group_value", "state_of_callable", "warn_of_epoch"]


def check_optimizer(optimizer):
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _copy(value):
    return value.clone() if isinstance(value, gradus.Tensor) else value


def group_values(optimizer, key):
    """Returns an option of each group; tensors are copied, as steps of a schedule change them in place."""
    return [_copy(group[key]) for group in optimizer.param_groups]


def set_group_value(group, key, value):
    """Set an option of a group, in place where it is a tensor."""
    if isinstance(group[key], gradus.Tensor):
        group[key].fill_(float(value))
    else:
        group[key] = value


def per_group(name, optimizer, value):
    """Returns an argument as a list with one value for each group: a list or tuple has to have as many."""
    count = len(optimizer.param_groups)
    if isinstance(value, (list, tuple)):
        if len(value) != count:
            raise ValueError(f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups "
                             f"has {count}.")
        return [_copy(item) for item in value]
    return [_copy(value) for _ in range(count)]


def state_of_callable(function):
    """Returns what a state dict keeps of a callable that was given: the attributes of an object, and None for a function."""
    return None if function is None or isinstance(function, types.FunctionType) else function.__dict__.copy()


def warn_of_epoch():
    warnings.warn("The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
                  "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed form is "
                  "used instead of the new chainable form, where available.", UserWarning, stacklevel=3)


def _note_steps(optimizer):
    """Let the optimizer remember that it has stepped, so that a schedule can tell when it is stepped too early."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    function = optimizer.step.__func__
    reference = weakref.ref(optimizer)  # The optimizer owns this wrapper, so it must not own the optimizer.

    @functools.wraps(function)
    def step(*args, **kwargs):
        optimizer = reference()
        optimizer._opt_called = True
        return function(optimizer, *args, **kwargs)

    step._wrapped_by_lr_sched = True
    optimizer.step = step


class LRScheduler:
    """Base class of schedules. A subclass writes ``get_lr``, which returns a rate for each group from ``self.last_epoch``,
    ``self.base_lrs`` and the rates as they are.

    Args:
        optimizer (Optimizer): whose ``"lr"`` to set.
        last_epoch (int): -1 begins; another number goes on after that epoch, where each group has to have ``"initial_lr"``.

    Raises TypeError for what is no optimizer, KeyError for a missing ``"initial_lr"``.
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer, last_epoch=-1):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for index, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copy(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{index}] when resuming scheduler with "
                               "last_epoch >= 0: load the state of the optimizer first, or begin with last_epoch=-1")
        self.base_lrs = group_values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _note_steps(optimizer)
        self._initial_step()

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self):
        """Returns all attributes but the optimizer; PyTorch's schedules load it."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict):
        """Take over what ``state_dict`` gave; the rates of the optimizer are in its own state."""
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """Returns the rates that were set last, one for each group."""
        return self._last_lr

    def get_lr(self):
        """Returns the rates for ``self.last_epoch``; ``step`` calls it, others want ``get_last_lr``."""
        if not self._get_lr_called_within_step and type(self)._compute_lr is not LRScheduler._compute_lr:
            warnings.warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", UserWarning, stacklevel=2)
        return self._compute_lr()

    def _compute_lr(self):
        raise NotImplementedError

    def step(self, epoch=None):
        """Go on by one epoch and set the rates. ``epoch`` goes to that one instead; it is deprecated."""
        if self._step_count == 1:
            self._warn_of_order()
        self._step_count += 1
        if epoch is not None:
            warn_of_epoch()
        self._update_lr(epoch)

    def _warn_of_order(self):
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warnings.warn("Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make "
                          "sure to call `optimizer.step()` before `lr_scheduler.step()`.", UserWarning, stacklevel=3)
        elif not getattr(self.optimizer, "_opt_called", False):
            warnings.warn("Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call them in the opposite order: "
                          "`optimizer.step()` before `lr_scheduler.step()`. Failure to do this will result in skipping the first value "
                          "of the learning rate schedule.", UserWarning, stacklevel=3)

    def _update_lr(self, epoch=None):
        self._get_lr_called_within_step = True
        try:
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            closed_form = getattr(self, "_get_closed_form_lr", None) if epoch is not None else None
            rates = closed_form() if closed_form else self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set_lrs(rates)

    def _set_lrs(self, rates):
        for group, rate in zip(self.optimizer.param_groups, rates):
            set_group_value(group, "lr", rate)
        self._last_lr = group_values(self.optimizer, "lr")

    def _current_lrs(self):
        return group_values(self.optimizer, "lr")

    def _scaled_lrs(self, factor):
        return [group["lr"] * factor for group in self.optimizer.param_groups]
