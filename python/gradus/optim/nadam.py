"""NAdam, Adam with Nesterov momentum."""
from __future__ import annotations

import gradus
from gradus._C import _nadam_step
from gradus.optim._group_step import GroupStep, check_at_least_zero, check_betas, check_lr, step_of_lists
from gradus.optim._options import scalar_dtype

__all__ = ["NAdam", "nadam"]


class NAdam(GroupStep):
    """NAdam (Dozat, 2016): Adam whose step anticipates the next running mean of the gradient.

    Let ``mu(t) = beta1 * (1 - 0.5 * 0.96 ** (t * momentum_decay))``, and M the product of ``mu(1)`` to ``mu(t)``. Step t replaces Adam's
    bias-corrected mean by ``(1 - mu(t)) / (1 - M) * grad + mu(t + 1) / (1 - M * mu(t + 1)) * m``, where ``m`` is the running mean of the gradient.

    Args:
        params: tensors, ``(name, tensor)`` pairs, or dictionaries of parameter groups.
        lr (float or Tensor): the learning rate.
        betas (tuple of float): ``(beta1, beta2)``.
        eps (float): added to the divisor.
        weight_decay (float): adds ``weight_decay * p`` to the gradient.
        momentum_decay (float): the speed with which ``mu(t)`` approaches ``beta1``.
        decoupled_weight_decay (bool): multiplies the parameter by ``1 - lr * weight_decay`` and leaves the gradient unchanged.
        foreach (bool, optional): accepted, without effect.
        maximize (bool): maximizes the objective instead of minimizing it.
        capturable (bool): accepted, without effect.
        differentiable (bool): records the step for autograd, so that gradients flow through it.

    Raises ValueError for values out of range.

    >>> import gradus
    >>> w = gradus.ones(1, requires_grad=True)
    >>> optimizer = gradus.optim.NAdam([w], lr=0.5)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> w.item() < 0.5
    True
    """

    _operator = staticmethod(_nadam_step)
    _states = ("exp_avg", "exp_avg_sq", "step", "mu_product")

    def __init__(self, params, lr: float | gradus.Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *, foreach=None, maximize: bool = False,
                 capturable: bool = False, differentiable: bool = False):
        check_lr(lr)
        check_at_least_zero("epsilon value", eps)
        check_betas(betas)
        check_at_least_zero("weight_decay value", weight_decay)
        check_at_least_zero("momentum_decay value", momentum_decay)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
                                  "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach,
                                  "capturable": capturable, "differentiable": differentiable})

    def _start(self, param, state, group):
        state["mu_product"] = gradus.tensor(1.0, dtype=scalar_dtype())
        super()._start(param, state, group)

    @staticmethod
    def _numbers(group):
        """Returns the scalar arguments of the operator `_operator`, read from the options of `group`."""
        return (group["lr"], *group["betas"], group["eps"], group["weight_decay"], group["momentum_decay"], group["maximize"],
                group["decoupled_weight_decay"])

    @staticmethod
    def _recorded_numbers(group, state, step):
        """Returns the numbers that the operator ``_recorded_step`` takes for this optimizer. step: the number of the step, from 1."""
        beta1, beta2 = group["betas"]
        mu, mu_next = (beta1 * (1.0 - 0.5 * 0.96 ** (t * group["momentum_decay"])) for t in (step, step + 1))
        return beta1, beta2, group["eps"], 1 - beta2**step, mu, mu_next, state["mu_product"].mul_(mu).item()


def nadam(params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps, decoupled_weight_decay=False, foreach=None, capturable=False,
          differentiable=False, has_complex=False, maximize=False, *, beta1, beta2, lr, weight_decay, momentum_decay, eps):
    """Does the step of :class:`NAdam` for lists of parameters, gradients and states. Parameters and states are updated in place."""
    lists = {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "mu_product": mu_products, "step": state_steps}
    group = {"lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay, "maximize": maximize,
             "decoupled_weight_decay": decoupled_weight_decay}
    step_of_lists(NAdam, params, grads, lists, group, differentiable=differentiable)
