"""ASGD, gradient descent that also computes the mean of the parameters over the steps."""
from __future__ import annotations

import gradus
from gradus._C import _asgd_step
from gradus.optim._group_step import GroupStep, check_at_least_zero, check_lr, step_of_lists
from gradus.optim._options import number, scalar_dtype

__all__ = ["ASGD", "asgd"]


class ASGD(GroupStep):
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992): ``p = (1 - lambd * eta) * p - eta * grad``.

    The step size is ``eta = lr / (1 + lambd * lr * t) ** alpha``. From step ``t0`` on, ``state["ax"]`` is the mean of p over the steps.

    Args:
        params: tensors, ``(name, tensor)`` pairs, or dictionaries of parameter groups.
        lr (float or Tensor): the learning rate.
        lambd (float): the weight decay: each step multiplies the parameter by ``1 - lambd * eta``.
        alpha (float): the exponent with which the step size decreases.
        t0 (float): the step at which averaging starts.
        weight_decay (float): adds ``weight_decay * p`` to the gradient.
        foreach (bool, optional): accepted, without effect.
        maximize (bool): maximizes the objective instead of minimizing it.
        differentiable (bool): records the step for autograd, so that gradients flow through it.
        capturable (bool): accepted, without effect.

    Raises ValueError for values out of range.

    >>> import gradus
    >>> w = gradus.ones(1, requires_grad=True)
    >>> optimizer = gradus.optim.ASGD([w], lr=0.5, lambd=0)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> w.item()
    0.5
    """

    _operator = staticmethod(_asgd_step)
    _states = ("ax", "step", "eta", "mu")

    def __init__(self, params, lr: float | gradus.Tensor = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6, weight_decay: float = 0,
                 foreach=None, maximize: bool = False, differentiable: bool = False, capturable: bool = False):
        check_lr(lr)
        check_at_least_zero("weight_decay value", weight_decay)
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "foreach": foreach,
                                  "maximize": maximize, "differentiable": differentiable, "capturable": capturable})

    def _start(self, param, state, group):
        state["eta"] = gradus.tensor(float(number(group["lr"])), dtype=scalar_dtype())
        state["mu"] = gradus.tensor(1.0, dtype=scalar_dtype())
        super()._start(param, state, group)

    @staticmethod
    def _numbers(group):
        """Returns the scalar arguments of the operator `_operator`, read from the options of `group`."""
        return group["lr"], group["lambd"], group["alpha"], group["t0"], group["weight_decay"], group["maximize"]

    @staticmethod
    def _recorded_numbers(group, state, step):
        """Returns the numbers that the operator ``_recorded_step`` takes for this optimizer. step: the number of the step, from 1."""
        return group["lambd"], state["eta"].item(), state["mu"].item()

    def _after_recorded(self, group, state, step):
        lr = number(group["lr"])
        state["eta"].fill_(lr / (1 + group["lambd"] * lr * step) ** group["alpha"])
        state["mu"].fill_(1 / max(1, step - group["t0"]))


def asgd(params, grads, axs, mus, etas, state_steps, foreach=None, maximize=False, differentiable=False, capturable=False, has_complex=False, *,
         lambd, lr, t0, alpha, weight_decay):
    """Does the step of :class:`ASGD` for lists of parameters, gradients and states. Parameters and states are updated in place."""
    lists = {"ax": axs, "eta": etas, "mu": mus, "step": state_steps}
    group = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "maximize": maximize}
    step_of_lists(ASGD, params, grads, lists, group, differentiable=differentiable)
