"""Rprop: steps of their own size for each element, by the signs of its gradients alone."""
from __future__ import annotations

import gradus
from gradus.optim._per_parameter import PerParameter, check_lr

__all__ = ["Rprop"]


class Rprop(PerParameter):
    """``p -= sign(grad) * size``: where a gradient keeps its sign the size grows, where it changes it shrinks and the step is left out.

    Args:
        params: tensors, ``(name, tensor)`` pairs or dictionaries of groups.
        lr (float or Tensor): the first size.
        etas (tuple of float): what sizes are multiplied by when they shrink and grow.
        step_sizes (tuple of float): the least and the greatest size.
        capturable, differentiable (bool): only False.
        foreach (bool, optional): accepted, of no effect.
        maximize (bool): climbs instead of descending.

    Raises ValueError for values out of range.

    >>> import gradus
    >>> w = gradus.ones(1, requires_grad=True)
    >>> optimizer = gradus.optim.Rprop([w], lr=0.5)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> w.item()
    0.5
    """

    def __init__(self, params, lr: float | gradus.Tensor = 1e-2, etas: tuple[float, float] = (0.5, 1.2), step_sizes: tuple[float, float] = (1e-6, 50),
                 *, capturable: bool = False, foreach=None, maximize: bool = False, differentiable: bool = False):
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
                                  "differentiable": differentiable, "capturable": capturable})

    def _start(self, param, state, group):
        lr = float(group["lr"])
        state["prev"] = gradus.zeros_like(param)
        state["step_size"] = gradus.full_like(param, complex(lr, lr) if param.is_complex() else lr, requires_grad=False)

    def _update(self, param, grad, state, group, lr, step):
        shrink, grow = group["etas"]
        agreement = grad.mul(state["prev"])
        factor = gradus.where(agreement > 0, grow, gradus.where(agreement < 0, shrink, 1.0)).to(grad.dtype)
        size = state["step_size"].mul_(factor).clamp_(*group["step_sizes"])
        grad = gradus.where(agreement < 0, gradus.zeros_like(grad), grad)
        param.addcmul_(grad.sign(), size, value=-1)
        state["prev"].copy_(grad)
