"""RAdam, Adam with a correction for the large variance of its divisor in the first steps."""
from __future__ import annotations

import gradus
from gradus._C import _radam_step
from gradus.optim._group_step import GroupStep, check_at_least_zero, check_betas, check_lr, step_of_lists

__all__ = ["RAdam", "radam"]


class RAdam(GroupStep):
    """RAdam (Liu et al., 2020): Adam whose divisor, the root of the mean square, is corrected for its variance and omitted in the first steps.

    With ``rho_inf = 2 / (1 - beta2) - 1`` and ``rho = rho_inf - 2 * t * beta2 ** t / (1 - beta2 ** t)``, step t has a divisor only if rho > 5. Such a
    step is also multiplied by ``sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho))``.

    Args:
        params: tensors, ``(name, tensor)`` pairs, or dictionaries of parameter groups.
        lr (float or Tensor): the learning rate.
        betas (tuple of float): ``(beta1, beta2)``.
        eps (float): added to the divisor.
        weight_decay (float): adds ``weight_decay * p`` to the gradient.
        decoupled_weight_decay (bool): multiplies the parameter by ``1 - lr * weight_decay`` and leaves the gradient unchanged.
        foreach (bool, optional): accepted, without effect.
        maximize (bool): maximizes the objective instead of minimizing it.
        capturable (bool): accepted, without effect.
        differentiable (bool): records the step for autograd, so that gradients flow through it.

    Raises ValueError for values out of range.

    >>> import gradus
    >>> w = gradus.ones(1, requires_grad=True)
    >>> optimizer = gradus.optim.RAdam([w], lr=0.5)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> round(w.item(), 4)
    0.5
    """

    _operator = staticmethod(_radam_step)
    _states = ("exp_avg", "exp_avg_sq", "step")

    def __init__(self, params, lr: float | gradus.Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, decoupled_weight_decay: bool = False, *, foreach=None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False):
        check_lr(lr)
        check_at_least_zero("epsilon value", eps)
        check_betas(betas)
        check_at_least_zero("weight_decay value", weight_decay)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
                                  "foreach": foreach, "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay,
                                  "differentiable": differentiable})

    @staticmethod
    def _numbers(group):
        """Returns the scalar arguments of the operator `_operator`, read from the options of `group`."""
        return (group["lr"], *group["betas"], group["eps"], group["weight_decay"], group["maximize"], group["decoupled_weight_decay"])

    @staticmethod
    def _recorded_numbers(group, state, step):
        """Returns the numbers that the operator ``_recorded_step`` takes for this optimizer. step: the number of the step, from 1."""
        beta1, beta2 = group["betas"]
        correction, rho_inf = 1 - beta2**step, 2 / (1 - beta2) - 1
        rho = rho_inf - 2 * step * beta2**step / correction
        factor = 0.0 if rho <= 5.0 else correction**0.5 * ((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)) ** 0.5
        return beta1, beta2, group["eps"], 1 - beta1**step, factor


def radam(params, grads, exp_avgs, exp_avg_sqs, state_steps, decoupled_weight_decay=False, foreach=None, differentiable=False, capturable=False,
          has_complex=False, maximize=False, *, beta1, beta2, lr, weight_decay, eps):
    """Does the step of :class:`RAdam` for lists of parameters, gradients and states. Parameters and states are updated in place."""
    lists = {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "step": state_steps}
    group = {"lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
             "decoupled_weight_decay": decoupled_weight_decay}
    step_of_lists(RAdam, params, grads, lists, group, differentiable=differentiable)
