"""Averages of weights over training steps: stochastic weight averaging (SWA, Izmailov et al., 2018) and exponential moving averages (EMA)."""
from __future__ import annotations

import itertools
import math
from copy import deepcopy

import gradus
from gradus import _C
from gradus.nn import Module
from gradus.nn.modules.batchnorm import _BatchNorm
from gradus.optim.lr_scheduler._base import LRScheduler, per_group

__all__ = ["AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn", "update_bn"]


def _check_decay(decay):
    """Raises ValueError unless `decay` is in [0, 1]."""
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay=0.999):
    """Returns an ``avg_fn`` for :class:`AveragedModel` that computes ``decay * averaged + (1 - decay) * current``."""
    _check_decay(decay)

    @gradus.no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return _C._averaged_parameter(ema_param, current_param, decay, None)

    return ema_update


def get_swa_avg_fn():
    """Returns an ``avg_fn`` for :class:`AveragedModel` that computes the mean of the values that a parameter had in all calls of
    update_parameters so far."""

    @gradus.no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return _C._averaged_parameter(averaged_param, current_param, 0.0, gradus.as_tensor(num_averaged))

    return swa_update


def _is_inexact(tensor):
    """Returns True if the tensor is floating-point or complex, so that averages of it can be computed in place."""
    return tensor.is_floating_point() or tensor.is_complex()


def get_ema_multi_avg_fn(decay=0.999):
    """Returns a ``multi_avg_fn`` for :class:`AveragedModel` that updates a list of averages in place to ``decay * averaged + (1 - decay) *
    current``."""
    _check_decay(decay)

    @gradus.no_grad()
    def ema_update(ema_param_list, current_param_list, _):
        for averaged, current in zip(ema_param_list, current_param_list):
            if _is_inexact(averaged):
                averaged.lerp_(current, 1 - decay)
            else:
                averaged.copy_(_C._averaged_parameter(averaged, current, decay, None))

    return ema_update


def get_swa_multi_avg_fn():
    """Returns a ``multi_avg_fn`` for :class:`AveragedModel` that updates a list of averages in place. Each average becomes the mean of the
    values that its parameter had in all calls of update_parameters so far."""

    @gradus.no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        for averaged, current in zip(averaged_param_list, current_param_list):
            if _is_inexact(averaged):
                averaged.lerp_(current, (1 / (num_averaged + 1)).to(averaged.dtype) if isinstance(num_averaged, gradus.Tensor) else 1 / (num_averaged + 1))
            else:
                averaged.copy_(_C._averaged_parameter(averaged, current, 0.0, gradus.as_tensor(num_averaged)))

    return swa_update


class AveragedModel(Module):
    """A copy of a model, in the attribute ``module``, whose parameters are averages of the model's parameters over time.

    Args:
        model (Module): the model, which is copied.
        device (device, optional): the device of the copy.
        avg_fn (callable, optional): returns the new average for ``(averaged, current, num_averaged)``. The default is the mean over all updates.
        multi_avg_fn (callable, optional): replaces avg_fn; called once per update with the list of all averages, which it updates in place.
        use_buffers (bool): True: buffers are averaged too. False: the model's buffers are copied.

    >>> model = gradus.nn.Linear(1, 1)
    >>> averaged = AveragedModel(model)
    >>> averaged.update_parameters(model)
    >>> averaged.n_averaged.item()
    1
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", gradus.tensor(0, dtype=gradus.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        """Returns the result of the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model):
        """Updates the averages with the current parameters of `model`. The first call copies the parameters."""
        averaged, current = self._averaged_of(self.module), self._averaged_of(model)
        current = [tensor.to(average.device) for tensor, average in zip(current, averaged)]
        count = self.n_averaged.item()
        if count == 0:
            for average, tensor in zip(averaged, current):
                average.copy_(tensor)
        elif self.avg_fn is not None:
            for average, tensor in zip(averaged, current):
                average.copy_(self.avg_fn(average, tensor, self.n_averaged.to(average.device)))
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(averaged, current, self.n_averaged)
        if not self.use_buffers:
            for average, buffer in zip(self.module.buffers(), model.buffers()):
                average.detach().copy_(buffer.detach().to(average.device))
        self.n_averaged += 1

    def _averaged_of(self, module):
        """Returns the detached parameters of `module`, and its buffers if they are averaged too."""
        tensors = itertools.chain(module.parameters(), module.buffers()) if self.use_buffers else module.parameters()
        return [tensor.detach() for tensor in tensors]


@gradus.no_grad()
def update_bn(loader, model, device=None):
    """Recomputes the running statistics of all batch norms of a model by one pass over the data.

    Args:
        loader (iterable): batches. A batch is the model's input, or a list or tuple whose first element is the input.
        model (Module): the model.
        device (device, optional): the device to which inputs are moved; None leaves them where they are.
    """
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None
    for batch in loader:
        inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(inputs if device is None else inputs.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Moves the learning rates to ``swa_lr`` in anneal_epochs epochs, and leaves them there.

    Args:
        optimizer (Optimizer): the optimizer whose learning rates are set.
        swa_lr (float or list): the final learning rate, for all groups or for each.
        anneal_epochs (int): the number of epochs until the final rate is reached.
        anneal_strategy (str): ``"cos"`` or ``"linear"``.
        last_epoch (int): the last epoch when resuming, otherwise -1.

    Raises ValueError for another strategy, a negative number of epochs, and a list whose length is not the number of groups.
    """

    def __init__(self, optimizer, swa_lr: float, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        rates = per_group("swa_lr", optimizer, swa_lr)
        for group, rate in zip(optimizer.param_groups, rates):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t):
        """Returns the weight w that makes the learning rate ``w * swa_lr + (1 - w) * initial_rate``. t: the fraction of annealing epochs done."""
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def _compute_lr(self):
        epochs, step = max(1, self.anneal_epochs), self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = (self.anneal_func(max(0, min(1, count / epochs))) for count in (step - 1, step))
        rates = []
        for group in self.optimizer.param_groups:
            first = group["swa_lr"] if before == 1 else (group["lr"] - before * group["swa_lr"]) / (1 - before)
            rates.append(group["swa_lr"] * now + first * (1 - now))
        return rates
