"""LRScheduler, the base class of schedules, and functions that read and set options of an optimizer's parameter groups."""
import functools
import types
import warnings
import weakref

import gradus
from gradus.optim.optimizer import Optimizer

__all__ = ["LRScheduler", "check_optimizer", "group_values", "per_group", "set_group_value", "state_of_callable", "warn_of_epoch"]


def check_optimizer(optimizer):
    """Raises TypeError unless `optimizer` is an Optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _copy(value):
    """Returns a copy of a tensor, and any other value unchanged."""
    return value.clone() if isinstance(value, gradus.Tensor) else value


def group_values(optimizer, key):
    """Returns the list of values of option `key` of all groups. Tensors are copied, because schedules change them in place."""
    return [_copy(group[key]) for group in optimizer.param_groups]


def set_group_value(group, key, value):
    """Sets option `key` of a group. An option that is a tensor is changed in place."""
    if isinstance(group[key], gradus.Tensor):
        group[key].fill_(float(value))
    else:
        group[key] = value


def per_group(name, optimizer, value):
    """Returns a list with one value for each group. value: such a list, or one value for all groups.

    Raises ValueError, with the argument's name `name` in the text, if the list has another length.
    """
    count = len(optimizer.param_groups)
    if isinstance(value, (list, tuple)):
        if len(value) != count:
            raise ValueError(f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups "
                             f"has {count}.")
        return [_copy(item) for item in value]
    return [_copy(value) for _ in range(count)]


def state_of_callable(function):
    """Returns the part of a callable that a state dict contains: the attributes of an object, or None for a function."""
    return None if function is None or isinstance(function, types.FunctionType) else function.__dict__.copy()


def warn_of_epoch():
    """Warns that the argument `epoch` of step() is deprecated."""
    warnings.warn("The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
                  "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed form is "
                  "used instead of the new chainable form, where available.", UserWarning, stacklevel=3)


def _note_steps(optimizer):
    """Wraps optimizer.step so that it sets the flag _opt_called, from which a schedule can tell whether the optimizer was stepped first."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    function = optimizer.step.__func__
    # The optimizer owns the wrapper `step`. A strong reference from the wrapper back to the optimizer would be a reference cycle.
    reference = weakref.ref(optimizer)

    @functools.wraps(function)
    def step(*args, **kwargs):
        optimizer = reference()
        optimizer._opt_called = True
        return function(optimizer, *args, **kwargs)

    step._wrapped_by_lr_sched = True
    optimizer.step = step


class LRScheduler:
    """Base class of learning rate schedules.

    A subclass defines ``get_lr``, which returns the learning rate of each group, computed from ``self.last_epoch``, ``self.base_lrs`` and the current
    learning rates.

    Args:
        optimizer (Optimizer): the optimizer whose option ``"lr"`` is set.
        last_epoch (int): -1 to start; otherwise the schedule resumes after that epoch, and each group must have ``"initial_lr"``.

    Raises TypeError if `optimizer` is not an Optimizer, KeyError if ``"initial_lr"`` is missing.
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
        """Sets the initial learning rates, by a step to the first epoch."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self):
        """Returns a dictionary of all attributes except the optimizer. PyTorch's schedules can load it."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict):
        """Restores a state that ``state_dict`` returned. Learning rates are part of the optimizer's state, not of the schedule's state."""
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """Returns the learning rates that the schedule set last, one for each parameter group."""
        return self._last_lr

    def get_lr(self):
        """Returns the learning rates for ``self.last_epoch``. ``step`` calls this method; programs should call ``get_last_lr``."""
        if not self._get_lr_called_within_step and type(self)._compute_lr is not LRScheduler._compute_lr:
            warnings.warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", UserWarning, stacklevel=2)
        return self._compute_lr()

    def _compute_lr(self):
        """Returns the list of learning rates for ``self.last_epoch``. Subclasses define it."""
        raise NotImplementedError

    def step(self, epoch=None):
        """Advances by one epoch, or to ``epoch`` (deprecated), and sets the learning rates."""
        if self._step_count == 1:
            self._warn_of_order()
        self._step_count += 1
        if epoch is not None:
            warn_of_epoch()
        self._update_lr(epoch)

    def _warn_of_order(self):
        """Warns if the schedule is stepped before the optimizer."""
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warnings.warn("Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make "
                          "sure to call `optimizer.step()` before `lr_scheduler.step()`.", UserWarning, stacklevel=3)
        elif not getattr(self.optimizer, "_opt_called", False):
            warnings.warn("Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call them in the opposite order: "
                          "`optimizer.step()` before `lr_scheduler.step()`. Failure to do this will result in skipping the first value "
                          "of the learning rate schedule.", UserWarning, stacklevel=3)

    def _update_lr(self, epoch=None):
        """Advances to the next epoch, or to ``epoch``, and sets the learning rates. With ``epoch``, calls _get_closed_form_lr if it exists."""
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
        """Returns the current learning rates, one for each parameter group."""
        return group_values(self.optimizer, "lr")

    def _scaled_lrs(self, factor):
        """Returns the current learning rates times `factor`."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]
