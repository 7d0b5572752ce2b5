"""Averages of weights over the steps of a training: stochastic weight averaging (SWA) and exponential moving averages (EMA)."""
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
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay=0.999):
    """Returns an ``avg_fn`` of :class:`AveragedModel`: ``decay * averaged + (1 - decay) * current``."""
    _check_decay(decay)

    @gradus.no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return _C._averaged_parameter(ema_param, current_param, decay, None)

    return ema_update


def get_swa_avg_fn():
    """Returns an ``avg_fn`` of :class:`AveragedModel`: the mean of all models so far."""

    @gradus.no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return _C._averaged_parameter(averaged_param, current_param, 0.0, gradus.as_tensor(num_averaged))

    return swa_update


def _is_inexact(tensor):
    return tensor.is_floating_point() or tensor.is_complex()


def get_ema_multi_avg_fn(decay=0.999):
    """Returns a ``multi_avg_fn`` of :class:`AveragedModel`: as :func:`get_ema_avg_fn`, for lists of tensors in place."""
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
    """Returns a ``multi_avg_fn`` of :class:`AveragedModel`: as :func:`get_swa_avg_fn`, for lists of tensors in place."""

    @gradus.no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        for averaged, current in zip(averaged_param_list, current_param_list):
            if _is_inexact(averaged):
                averaged.lerp_(current, (1 / (num_averaged + 1)).to(averaged.dtype) if isinstance(num_averaged, gradus.Tensor) else 1 / (num_averaged + 1))
            else:
                averaged.copy_(_C._averaged_parameter(averaged, current, 0.0, gradus.as_tensor(num_averaged)))

    return swa_update


class AveragedModel(Module):
    """A copy of a model, under ``module``, whose parameters are averages of the model's.

    Args:
        model (Module): the model, which is copied.
        device (device, optional): where the copy is.
        avg_fn (callable, optional): gives an average from ``(averaged, current, num_averaged)``; the mean of all models unless given.
        multi_avg_fn (callable, optional): does that for lists of tensors in place.
        use_buffers (bool): averages buffers, too; otherwise they are copied.

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
        """Computes the result of the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model):
        """Take the model's parameters into the averages; the first ones are copied."""
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
        tensors = itertools.chain(module.parameters(), module.buffers()) if self.use_buffers else module.parameters()
        return [tensor.detach() for tensor in tensors]


@gradus.no_grad()
def update_bn(loader, model, device=None):
    """Compute the running statistics of all batch norms of a model anew, by one pass over the data.

    Args:
        loader (iterable): batches: tensors, or lists or tuples whose first element is the model's input.
        model (Module): the model.
        device (device, optional): where the inputs are brought.
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
    """Brings the learning rates to ``swa_lr`` in some epochs, and leaves them there.

    Args:
        optimizer (Optimizer): whose rates change.
        swa_lr (float or list): the last rate, one for all groups or one for each.
        anneal_epochs (int): how many epochs it takes.
        anneal_strategy (str): ``"cos"`` or ``"linear"``.
        last_epoch (int): the epoch to go on from; -1 begins.

    Raises ValueError for another strategy, a negative number of epochs, and a list of another length than that of the groups.
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
        """Returns how far the rates have come at the fraction t of the epochs."""
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
