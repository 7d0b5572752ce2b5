"""Adamax, a variant of Adam that divides by a decaying maximum of absolute gradients."""
from __future__ import annotations

import gradus
from gradus._C import _adamax_step
from gradus.optim._group_step import GroupStep, check_at_least_zero, check_betas, check_lr, step_of_lists

__all__ = ["Adamax", "adamax"]


class Adamax(GroupStep):
    """Adamax (Kingma and Ba, 2015): ``p -= lr / (1 - beta1 ** t) * m / u`` in step t.

    ``m`` is the running mean of the gradient, as in Adam, and ``u = max(beta2 * u, abs(grad) + eps)``.

    Args:
        params: tensors, ``(name, tensor)`` pairs, or dictionaries of parameter groups.
        lr (float or Tensor): the learning rate.
        betas (tuple of float): ``(beta1, beta2)``.
        eps (float): added to the absolute gradient, so that ``u`` is not 0.
        weight_decay (float): adds ``weight_decay * p`` to the gradient.
        foreach (bool, optional): accepted, without effect.
        maximize (bool): maximizes the objective instead of minimizing it.
        differentiable (bool): records the step for autograd, so that gradients flow through it.
        capturable (bool): accepted, without effect.

    Raises ValueError for values out of range.

    >>> import gradus
    >>> w = gradus.ones(1, requires_grad=True)
    >>> optimizer = gradus.optim.Adamax([w], lr=0.5)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> round(w.item(), 4)
    0.5
    """

    _operator = staticmethod(_adamax_step)
    _states = ("exp_avg", "exp_inf", "step")

    def __init__(self, params, lr: float | gradus.Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, foreach=None, *, maximize: bool = False, differentiable: bool = False, capturable: bool = False):
        check_lr(lr)
        check_at_least_zero("epsilon value", eps)
        check_betas(betas)
        check_at_least_zero("weight_decay value", weight_decay)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach,
                                  "maximize": maximize, "differentiable": differentiable, "capturable": capturable})

    @staticmethod
    def _numbers(group):
        """Returns the scalar arguments of the operator `_operator`, read from the options of `group`."""
        return group["lr"], *group["betas"], group["eps"], group["weight_decay"], group["maximize"]

    @staticmethod
    def _recorded_numbers(group, state, step):
        """Returns the numbers that the operator ``_recorded_step`` takes for this optimizer. step: the number of the step, from 1."""
        return *group["betas"], group["eps"], 1 - group["betas"][0] ** step


def adamax(params, grads, exp_avgs, exp_infs, state_steps, foreach=None, maximize=False, differentiable=False, capturable=False, has_complex=False, *,
           eps, beta1, beta2, lr, weight_decay):
    """Does the step of :class:`Adamax` for lists of parameters, gradients and states. Parameters and states are updated in place."""
    lists = {"exp_avg": exp_avgs, "exp_inf": exp_infs, "step": state_steps}
    group = {"lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
    step_of_lists(Adamax, params, grads, lists, group, differentiable=differentiable)
