"""Rprop, an optimizer with a step size for each element, adapted from the signs of successive gradients."""
from __future__ import annotations

import gradus
from gradus._C import _rprop_step
from gradus.optim._group_step import GroupStep, check_lr, step_of_lists, zeros_of
from gradus.optim._options import number

__all__ = ["Rprop", "rprop"]


class Rprop(GroupStep):
    """Rprop (Riedmiller and Braun, 1993): ``p -= sign(grad) * size``, with a size for each element.

    The size grows while the gradient's sign stays the same. If the sign changes, the size shrinks and the element is not changed in this step.

    Args:
        params: tensors, ``(name, tensor)`` pairs, or dictionaries of parameter groups.
        lr (float or Tensor): the initial size.
        etas (tuple of float): the factors by which a size shrinks and grows.
        step_sizes (tuple of float): the least and the greatest size.
        capturable (bool): accepted, without effect.
        differentiable (bool): records the step for autograd, so that gradients flow through it.
        foreach (bool, optional): accepted, without effect.
        maximize (bool): maximizes the objective instead of minimizing it.

    Raises ValueError for values out of range.

    >>> import gradus
    >>> w = gradus.ones(1, requires_grad=True)
    >>> optimizer = gradus.optim.Rprop([w], lr=0.5)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> w.item()
    0.5
    """

    _operator = staticmethod(_rprop_step)
    _states = ("prev", "step_size", "step")

    def __init__(self, params, lr: float | gradus.Tensor = 1e-2, etas: tuple[float, float] = (0.5, 1.2), step_sizes: tuple[float, float] = (1e-6, 50),
                 *, capturable: bool = False, foreach=None, maximize: bool = False, differentiable: bool = False):
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
                                  "differentiable": differentiable, "capturable": capturable})

    def _start(self, param, state, group):
        lr = number(group["lr"])
        state["prev"] = zeros_of(param)
        state["step_size"] = gradus.full_like(param, complex(lr, lr) if param.is_complex() else lr, requires_grad=False)

    @staticmethod
    def _numbers(group):
        """Returns the scalar arguments of the operator `_operator`, read from the options of `group`."""
        return *group["etas"], *group["step_sizes"], group["maximize"]

    @staticmethod
    def _recorded_numbers(group, state, step):
        """Returns the numbers that the operator ``_recorded_step`` takes for this optimizer. step: the number of the step, from 1."""
        return *group["etas"], *group["step_sizes"]


def rprop(params, grads, prevs, step_sizes, state_steps, foreach=None, capturable=False, maximize=False, differentiable=False, has_complex=False, *,
          step_size_min, step_size_max, etaminus, etaplus):
    """Does the step of :class:`Rprop` for lists of parameters, gradients and states. Parameters and states are updated in place."""
    lists = {"prev": prevs, "step_size": step_sizes, "step": state_steps}
    group = {"etas": (etaminus, etaplus), "step_sizes": (step_size_min, step_size_max), "maximize": maximize}
    step_of_lists(Rprop, params, grads, lists, group, differentiable=differentiable)
