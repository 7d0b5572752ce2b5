"""RMSprop, an optimizer that divides the gradient by the root of the running mean of its square."""
from __future__ import annotations

import gradus
from gradus._C import _rmsprop_step
from gradus.optim._group_step import GroupStep, check_at_least_zero, check_lr, step_of_lists

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(GroupStep):
    """RMSprop (Tieleman and Hinton, 2012): ``p -= lr * grad / (sqrt(v) + eps)``, where ``v = alpha * v + (1 - alpha) * grad ** 2``.

    Args:
        params: tensors, ``(name, tensor)`` pairs, or dictionaries of parameter groups.
        lr (float or Tensor): the learning rate.
        alpha (float): the decay factor of ``v``.
        eps (float): added to the divisor.
        weight_decay (float): adds ``weight_decay * p`` to the gradient.
        momentum (float): if positive, ``p -= lr * b`` with ``b = momentum * b + grad / (sqrt(v) + eps)``.
        centered (bool): subtracts the square of the running mean of the gradient from ``v`` (Graves, 2013).
        capturable (bool): accepted, without effect.
        differentiable (bool): records the step for autograd, so that gradients flow through it.
        foreach (bool, optional): accepted, without effect.
        maximize (bool): maximizes the objective instead of minimizing it.

    Raises ValueError for values out of range.

    >>> import gradus
    >>> w = gradus.ones(1, requires_grad=True)
    >>> optimizer = gradus.optim.RMSprop([w], lr=0.05, alpha=0.99)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> round(w.item(), 4)
    0.5
    """

    _operator = staticmethod(_rmsprop_step)
    _states = ("square_avg", "momentum_buffer", "grad_avg", "step")

    def __init__(self, params, lr: float | gradus.Tensor = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0, momentum: float = 0,
                 centered: bool = False, capturable: bool = False, foreach=None, maximize: bool = False, differentiable: bool = False):
        check_lr(lr)
        for name, value in (("epsilon value", eps), ("momentum value", momentum), ("weight_decay value", weight_decay),
                            ("alpha value", alpha)):
            check_at_least_zero(name, value)
        super().__init__(params, {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
                                  "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach, "maximize": maximize,
                                  "differentiable": differentiable})

    @staticmethod
    def _numbers(group):
        """Returns the scalar arguments of the operator `_operator`, read from the options of `group`."""
        return group["lr"], group["alpha"], group["eps"], group["weight_decay"], group["momentum"], group["maximize"]

    @staticmethod
    def _recorded_numbers(group, state, step):
        """Returns the numbers that the operator ``_recorded_step`` takes for this optimizer. step: the number of the step, from 1."""
        return group["alpha"], group["eps"], group["momentum"]


def rmsprop(params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps, foreach=None, maximize=False, differentiable=False,
            capturable=False, has_complex=False, *, lr, alpha, eps, weight_decay, momentum, centered):
    """Does the step of :class:`RMSprop` for lists of parameters, gradients and states. Parameters and states are updated in place."""
    lists = {"square_avg": square_avgs, "momentum_buffer": momentum_buffer_list if momentum > 0 else [], "grad_avg": grad_avgs if centered else [],
             "step": state_steps}
    group = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum, "centered": centered, "maximize": maximize}
    step_of_lists(RMSprop, params, grads, lists, group, differentiable=differentiable)
