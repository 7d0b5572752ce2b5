"""Adagrad, an optimizer that divides the gradient by the root of the sum of all squared gradients."""
from __future__ import annotations

import gradus
from gradus._C import _adagrad_step
from gradus.optim._group_step import GroupStep, check_at_least_zero, check_lr, step_of_lists

__all__ = ["Adagrad", "adagrad"]


class Adagrad(GroupStep):
    """Adagrad (Duchi et al., 2011): ``p -= lr / (1 + (t - 1) * lr_decay) * grad / (sqrt(sum) + eps)`` in step t, with ``sum += grad ** 2``.

    Args:
        params: tensors, ``(name, tensor)`` pairs, or dictionaries of parameter groups.
        lr (float or Tensor): the learning rate.
        lr_decay (float): step t divides the learning rate by ``1 + (t - 1) * lr_decay``.
        weight_decay (float): adds ``weight_decay * p`` to the gradient.
        initial_accumulator_value (float): the initial value of ``sum``.
        eps (float): added to the divisor.
        foreach, fused (bool, optional): accepted, without effect, because every step is one fused call.
        maximize (bool): maximizes the objective instead of minimizing it.
        differentiable (bool): records the step for autograd, so that gradients flow through it.

    Raises ValueError for values out of range.

    >>> import gradus
    >>> w = gradus.ones(1, requires_grad=True)
    >>> optimizer = gradus.optim.Adagrad([w], lr=0.5)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> w.item()
    0.5
    """

    _operator = staticmethod(_adagrad_step)
    _states = ("sum", "step")

    def __init__(self, params, lr: float | gradus.Tensor = 1e-2, lr_decay: float = 0, weight_decay: float = 0, initial_accumulator_value: float = 0,
                 eps: float = 1e-10, foreach=None, *, maximize: bool = False, differentiable: bool = False, fused=None):
        check_lr(lr)
        for name, value in (("lr_decay value", lr_decay), ("weight_decay value", weight_decay),
                            ("initial_accumulator_value value", initial_accumulator_value), ("epsilon value", eps)):
            check_at_least_zero(name, value)
        defaults = {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
                    "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize,
                    "differentiable": differentiable, "fused": fused}
        super().__init__(params, defaults)
        for group in self.param_groups:
            self._start_all(group["params"], [self.state[param] for param in group["params"]], group)

    def share_memory(self):
        """Moves the states ``sum`` to shared memory, for training by several processes."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    def _start(self, param, state, group):
        value = group["initial_accumulator_value"]
        state["sum"] = gradus.full_like(param, complex(value, value) if param.is_complex() else value, requires_grad=False)

    @staticmethod
    def _numbers(group):
        """Returns the scalar arguments of the operator `_operator`, read from the options of `group`."""
        return group["lr"], group["lr_decay"], group["eps"], group["weight_decay"], group["maximize"]

    @staticmethod
    def _recorded_numbers(group, state, step):
        """Returns the numbers that the operator ``_recorded_step`` takes for this optimizer. step: the number of the step, from 1."""
        return group["eps"], 1 + (step - 1) * group["lr_decay"]


def adagrad(params, grads, state_sums, state_steps, fused=None, grad_scale=None, found_inf=None, has_sparse_grad=False, foreach=None,
            differentiable=False, has_complex=False, *, lr, weight_decay, lr_decay, eps, maximize):
    """Does the step of :class:`Adagrad` for lists of parameters, gradients and states. Parameters and states are updated in place."""
    lists = {"sum": state_sums, "step": state_steps}
    group = {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
    step_of_lists(Adagrad, params, grads, lists, group, differentiable=differentiable, fused=fused, grad_scale=grad_scale, found_inf=found_inf)
