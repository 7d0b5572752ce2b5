"""Adadelta, an optimizer whose step size is the root mean square of recent steps divided by the root mean square of recent gradients."""
from __future__ import annotations

import gradus
from gradus._C import _adadelta_step
from gradus.optim._group_step import GroupStep, check_at_least_zero, check_lr, step_of_lists

__all__ = ["Adadelta", "adadelta"]


class Adadelta(GroupStep):
    """Adadelta (Zeiler, 2012): ``p -= lr * d``, where ``d = sqrt(u + eps) / sqrt(v + eps) * grad``.

    v is the running mean of ``grad ** 2``, and u the running mean of ``d ** 2``.

    Args:
        params: tensors, ``(name, tensor)`` pairs, or dictionaries of parameter groups.
        lr (float or Tensor): the learning rate.
        rho (float): the decay factor of the running means.
        eps (float): added to both running means, so that the first steps are not 0 and the divisor is not 0.
        weight_decay (float): adds ``weight_decay * p`` to the gradient.
        foreach (bool, optional): accepted, without effect.
        capturable (bool): accepted, without effect.
        differentiable (bool): records the step for autograd, so that gradients flow through it.
        maximize (bool): maximizes the objective instead of minimizing it.

    Raises ValueError for values out of range.

    >>> import gradus
    >>> w = gradus.ones(1, requires_grad=True)
    >>> optimizer = gradus.optim.Adadelta([w])
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> 0.99 < w.item() < 1
    True
    """

    _operator = staticmethod(_adadelta_step)
    _states = ("square_avg", "acc_delta", "step")

    def __init__(self, params, lr: float | gradus.Tensor = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0, foreach=None, *,
                 capturable: bool = False, maximize: bool = False, differentiable: bool = False):
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_at_least_zero("epsilon value", eps)
        check_at_least_zero("weight_decay value", weight_decay)
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
                                  "capturable": capturable, "foreach": foreach, "differentiable": differentiable})

    @staticmethod
    def _numbers(group):
        """Returns the scalar arguments of the operator `_operator`, read from the options of `group`."""
        return group["lr"], group["rho"], group["eps"], group["weight_decay"], group["maximize"]

    @staticmethod
    def _recorded_numbers(group, state, step):
        """Returns the numbers that the operator ``_recorded_step`` takes for this optimizer. step: the number of the step, from 1."""
        return group["rho"], group["eps"]


def adadelta(params, grads, square_avgs, acc_deltas, state_steps, capturable=False, foreach=None, differentiable=False, has_complex=False, *, lr, rho,
             eps, weight_decay, maximize):
    """Does the step of :class:`Adadelta` for lists of parameters, gradients and states. Parameters and states are updated in place."""
    lists = {"square_avg": square_avgs, "acc_delta": acc_deltas, "step": state_steps}
    group = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
    step_of_lists(Adadelta, params, grads, lists, group, differentiable=differentiable)
