"""AdamW, Adam with decoupled weight decay: it decays the parameters directly, so the running means of the gradient do not contain the decay."""
from __future__ import annotations

import gradus

from gradus.optim.adam import Adam, adam

__all__ = ["AdamW", "adamw"]


class AdamW(Adam):
    """AdamW (Loshchilov and Hutter, 2019): Adam that first multiplies the parameter by ``1 - lr * weight_decay`` in each step.

    Takes the same arguments as :class:`Adam` and raises the same errors. The default of ``weight_decay`` is 0.01.

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


def adamw(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach=None, capturable=False, differentiable=False, fused=None,
          grad_scale=None, found_inf=None, has_complex=False, *, amsgrad, beta1, beta2, lr, weight_decay, eps, maximize):
    """Does the step of :class:`AdamW` for lists of parameters, gradients and states. Parameters and states are updated in place."""
    adam(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach, capturable, differentiable, fused, grad_scale, found_inf,
         has_complex, True, amsgrad=amsgrad, beta1=beta1, beta2=beta2, lr=lr, weight_decay=weight_decay, eps=eps, maximize=maximize)
