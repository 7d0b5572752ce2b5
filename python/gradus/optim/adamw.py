"""AdamW: Adam whose weight decay does not go through the running means."""
from __future__ import annotations

import gradus

from gradus.optim.adam import Adam

__all__ = ["AdamW"]


class AdamW(Adam):
    """Adam with decoupled weight decay: each step first multiplies the parameter by ``1 - lr * weight_decay``.

    Arguments, errors and the rest of the step are those of :class:`Adam`; ``weight_decay`` is 0.01 unless given.

    >>> import gradus
    >>> w = gradus.ones(1, requires_grad=True)
    >>> optimizer = gradus.optim.AdamW([w], lr=0.5, weight_decay=0.0)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> round(w.item(), 4)
    0.5
    """

    def __init__(self, params, lr: float | gradus.Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False, foreach=None, capturable: bool = False,
                 differentiable: bool = False, fused=None):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
                         differentiable=differentiable, fused=fused, decoupled_weight_decay=True)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
