"""Adam, and the function adam(), which does its step for lists of tensors."""
from __future__ import annotations

import gradus
from gradus._C import _adam_step
from gradus.optim._group_step import GroupStep, check_betas, step_of_lists
from gradus.optim._options import complete, number

__all__ = ["Adam", "adam"]


class Adam(GroupStep):
    """Adam (Kingma and Ba, 2015): steps along the running mean of the gradient divided by the root of the running mean of its square.

    With ``m = beta1 * m + (1 - beta1) * grad`` and ``v = beta2 * v + (1 - beta2) * grad ** 2``, step number t is
    ``p -= lr * m / (1 - beta1 ** t) / (sqrt(v / (1 - beta2 ** t)) + eps)``.

    Args:
        params: tensors, ``(name, tensor)`` pairs, or dictionaries of parameter groups.
        lr (float or Tensor): the learning rate.
        betas (tuple of float): ``(beta1, beta2)``.
        eps (float): added to the divisor.
        weight_decay (float): adds ``weight_decay * p`` to the gradient.
        amsgrad (bool): divides by the root of the largest ``v`` so far (Reddi et al., 2018).
        maximize (bool): maximizes the objective instead of minimizing it.
        foreach, fused (bool, optional): accepted, without effect, because every step is one fused call.
        capturable (bool): accepted, without effect.
        differentiable (bool): records the step for autograd, so that gradients flow through it.
        decoupled_weight_decay (bool): applies weight_decay as AdamW does: multiplies the parameter by ``1 - lr * weight_decay`` and leaves the
            gradient unchanged.

    Raises ValueError for values out of range.

    >>> import gradus
    >>> w = gradus.ones(1, requires_grad=True)
    >>> optimizer = gradus.optim.Adam([w], lr=0.5)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> round(w.item(), 4)
    0.5
    """

    _operator = staticmethod(_adam_step)
    _states = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step")

    def __init__(self, params, lr: float | gradus.Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, amsgrad: bool = False, *, foreach=None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False, fused=None, decoupled_weight_decay: bool = False):
        if isinstance(lr, gradus.Tensor):
            if foreach and not capturable:
                raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
            if lr.numel() != 1:
                raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 <= eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        if not 0.0 <= weight_decay:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        tensors = sum(isinstance(beta, gradus.Tensor) for beta in betas)
        if tensors == 1 or (tensors == 0 and not all(isinstance(beta, float) for beta in betas)):
            raise ValueError("betas must be either both floats or both Tensors")
        for index, beta in enumerate(betas if tensors else ()):
            if foreach and not capturable:
                raise ValueError(f"betas[{index}] as a Tensor is not supported for capturable=False and foreach=True")
            if beta.numel() != 1:
                raise ValueError(f"Tensor betas[{index}] must be 1-element")
        defaults = {"lr": lr, "betas": tuple(map(number, betas)), "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
                    "maximize": maximize, "foreach": foreach, "capturable": capturable, "differentiable": differentiable,
                    "fused": fused, "decoupled_weight_decay": decoupled_weight_decay}
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        complete(self, amsgrad=False, decoupled_weight_decay=False, fused=None)

    @staticmethod
    def _numbers(group):
        """Returns the scalar arguments of the operator `_operator`, read from the options of `group`."""
        return (group["lr"], *group["betas"], group["weight_decay"], group["eps"], group["amsgrad"], group["maximize"], group["decoupled_weight_decay"])

    @staticmethod
    def _recorded_numbers(group, state, step):
        """Returns the numbers that the operator ``_recorded_step`` takes for this optimizer. step: the number of the step, from 1."""
        beta1, beta2 = group["betas"]
        return beta1, beta2, group["eps"], 1 - beta1**step, (1 - beta2**step) ** 0.5


def adam(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach=None, capturable=False, differentiable=False, fused=None,
         grad_scale=None, found_inf=None, has_complex=False, decoupled_weight_decay=False, *, amsgrad, beta1, beta2, lr, weight_decay, eps, maximize):
    """Does the step of :class:`Adam` for lists of parameters, gradients and states. Parameters and states are updated in place."""
    lists = {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "max_exp_avg_sq": max_exp_avg_sqs if amsgrad else [], "step": state_steps}
    group = {"lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize,
             "decoupled_weight_decay": decoupled_weight_decay}
    step_of_lists(Adam, params, grads, lists, group, differentiable=differentiable, fused=fused, grad_scale=grad_scale, found_inf=found_inf)
