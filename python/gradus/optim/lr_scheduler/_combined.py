"""Schedules that combine other schedules."""
from bisect import bisect_right

from gradus.optim.lr_scheduler._base import LRScheduler, group_values, set_group_value
from gradus.optim.lr_scheduler._plateau import ReduceLROnPlateau

__all__ = ["ChainedScheduler", "SequentialLR"]


class _Combined(LRScheduler):
    """Base of schedules that combine other schedules of one optimizer. The state_dict contains their states."""

    def _hold(self, schedulers, optimizer):
        """Stores the schedules. Raises TypeError for an object that is not a schedule, ValueError for a ReduceLROnPlateau or a schedule of another
        optimizer."""
        name = type(self).__name__
        for index, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {index} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be specified "
                                 f"when calling `step`, but got one at index {index} in the given schedulers sequence.")
            if scheduler.optimizer is not optimizer:
                raise ValueError(f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                                 f"{type(scheduler).__name__} at index {index} has {scheduler.optimizer}, which is different from "
                                 f"{type(optimizer).__name__}.")
        self._schedulers = schedulers
        self.optimizer = optimizer

    def state_dict(self):
        """Returns a dictionary of all attributes except the optimizer, with the state dicts of the schedules."""
        state = super().state_dict()
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict):
        """Restores a state that ``state_dict`` returned."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"]):
            scheduler.load_state_dict(state)


class SequentialLR(_Combined):
    """Runs schedules one after another. Schedule i + 1 begins at the epoch ``milestones[i]``.

    Raises ValueError if there are not exactly len(schedulers) - 1 milestones, or if a schedule belongs to another optimizer.
    """

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler, but got no scheduler.")
        self._hold(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError("Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone "
                             f"points, but got number of schedulers {len(schedulers)} and the number of milestones to be equal to "
                             f"{len(milestones)}")
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        # The constructor of each schedule has stepped it once. Undo these steps, then start the first schedule.
        for group in optimizer.param_groups:
            set_group_value(group, "lr", group["initial_lr"])
        _undo_step(self)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self):
        """Advances the current schedule by one epoch, or starts the next schedule if its milestone is reached."""
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def _undo_step(scheduler):
    """Undoes the step that a schedule's constructor did: decrements last_epoch of `scheduler`, or of all schedules that it combines."""
    if hasattr(scheduler, "_schedulers"):
        for inner in scheduler._schedulers:
            _undo_step(inner)
    elif hasattr(scheduler, "last_epoch"):
        scheduler.last_epoch -= 1


class ChainedScheduler(_Combined):
    """Applies several schedules in every epoch, one after another. Raises ValueError if there are none, or if they belong to different optimizers."""

    def __init__(self, schedulers, optimizer=None):
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler.")
        self._hold(schedulers, optimizer or schedulers[0].optimizer)
        self._last_lr = group_values(self.optimizer, "lr")

    def step(self):
        """Advances every schedule by one epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = group_values(self.optimizer, "lr")
