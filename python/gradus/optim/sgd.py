"""SGD, stochastic gradient descent. A step calls one operator per parameter group."""
from __future__ import annotations

import gradus
from gradus._C import _sgd_step
from gradus.optim._group_step import StepByGroup, begin_of_lists, record_step
from gradus.optim._options import check_step_options, complete, number

__all__ = ["SGD", "sgd"]


class SGD(StepByGroup):
    """Stochastic gradient descent, optionally with momentum: ``p -= lr * b``, where ``b = momentum * b + (1 - dampening) * grad``.

    The first ``b`` is the gradient itself.

    Args:
        params: tensors, ``(name, tensor)`` pairs, or dictionaries of parameter groups.
        lr (float or Tensor): the learning rate.
        momentum (float): the decay factor of ``b``; with 0 no ``b`` is stored and the step is ``p -= lr * grad``.
        dampening (float): the gradient is multiplied by ``1 - dampening`` when it is added to ``b``.
        weight_decay (float): adds ``weight_decay * p`` to the gradient.
        nesterov (bool): steps along ``grad + momentum * b`` instead of ``b`` (Sutskever et al., 2013).
        maximize (bool): maximizes the objective instead of minimizing it.
        foreach, fused (bool, optional): accepted, without effect, because every step is one fused call.
        differentiable (bool): records the step for autograd, so that gradients flow through it.

    Raises ValueError for values out of range.

    >>> import gradus
    >>> w = gradus.ones(1, requires_grad=True)
    >>> optimizer = gradus.optim.SGD([w], lr=0.5, momentum=0.9)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> w.item()
    0.5
    """

    def __init__(self, params, lr: float | gradus.Tensor = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0,
                 nesterov: bool = False, *, maximize: bool = False, foreach=None, differentiable: bool = False, fused=None):
        if isinstance(lr, gradus.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
                    "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused}
        check_step_options(defaults)
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        complete(self, nesterov=False, maximize=False, foreach=None, differentiable=False, fused=False)

    def _step_group(self, group, params, grads):
        if group["differentiable"]:
            self._record(params, grads, group)
            return
        momentum = number(group["momentum"])
        options = (number(group["lr"]), momentum, number(group["dampening"]), number(group["weight_decay"]), group["nesterov"], group["maximize"])
        if momentum == 0:
            _sgd_step(params, grads, [], *options, False)
            return
        states = self._states_of(params)
        buffers = [state.get("momentum_buffer") for state in states]
        for i in _step_with_buffers(params, grads, buffers, options):
            states[i]["momentum_buffer"] = buffers[i]

    def _record(self, params, grads, group):
        """Does a step with differentiable=True, i.e. one through which gradients can flow, by the operator ``_recorded_step``."""
        momentum = group["momentum"]
        numbers = number(momentum), number(group["dampening"]), group["nesterov"]
        for param, grad in zip(params, grads):
            buffer = self.state[param].get("momentum_buffer") if momentum != 0 else None
            for made in record_step("sgd", param, grad, [] if buffer is None else [buffer], group, False, numbers):
                self.state[param]["momentum_buffer"] = made


def _step_with_buffers(params, grads, buffers, options):
    """Does a step with momentum. In the list `buffers`, replaces each None by a new tensor. Returns the indices of the new tensors."""
    fresh = [i for i, buffer in enumerate(buffers) if buffer is None]
    if not fresh:
        _sgd_step(params, grads, buffers, *options, False)
        return fresh
    for i in fresh:
        buffers[i] = gradus.empty_like(params[i], requires_grad=False)
    rest = [i for i in range(len(params)) if i not in fresh]
    for chosen, first in ((fresh, True), (rest, False)):
        if chosen:
            _sgd_step([params[i] for i in chosen], [grads[i] for i in chosen], [buffers[i] for i in chosen], *options, first)
    return fresh


def sgd(params, d_p_list, momentum_buffer_list, has_sparse_grad=False, foreach=None, fused=None, grad_scale=None, found_inf=None, *,
        weight_decay, momentum, lr, dampening, nesterov, maximize):
    """Does the step of :class:`SGD` for lists of parameters, gradients and momentum buffers.

    Parameters and buffers are updated in place. A buffer that is None is replaced in the list by a new tensor.
    """
    if not begin_of_lists(d_p_list, fused, grad_scale, found_inf) or not params:
        return
    options = (number(lr), number(momentum), number(dampening), number(weight_decay), nesterov, maximize)
    if momentum == 0:
        _sgd_step(params, d_p_list, [], *options, False)
    else:
        _step_with_buffers(params, d_p_list, momentum_buffer_list, options)
