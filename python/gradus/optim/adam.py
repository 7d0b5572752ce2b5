"""Adam, and the step it shares with AdamW: one call of C per group and step."""
from __future__ import annotations

from operator import itemgetter

import gradus
from gradus._C import _adam_step
from gradus.optim._options import check_group, check_step_options, complete, loss_of, number, with_gradients
from gradus.optim.optimizer import Optimizer

__all__ = ["Adam"]

_entries, _largest = itemgetter("exp_avg", "exp_avg_sq", "step"), itemgetter("max_exp_avg_sq")


def _check_beta(index, beta):
    if not 0.0 <= beta < 1.0:
        raise ValueError(f"Invalid beta parameter at index {index}: {beta}")


class Adam(Optimizer):
    """Adam: steps along the running mean of the gradient, divided by the root of the running mean of its square.

    With ``m = beta1 * m + (1 - beta1) * grad`` and ``v = beta2 * v + (1 - beta2) * grad ** 2``, step number t is
    ``p -= lr * m / (1 - beta1 ** t) / (sqrt(v / (1 - beta2 ** t)) + eps)``.

    Args:
        params: tensors, ``(name, tensor)`` pairs or dictionaries of groups.
        lr (float or Tensor): the learning rate.
        betas (tuple of float): ``(beta1, beta2)``.
        eps (float): added to the divisor.
        weight_decay (float): this times the parameter is added to its gradient.
        amsgrad (bool): divides by the root of the largest ``v`` so far.
        maximize (bool): climbs instead of descending.
        foreach, fused (bool, optional): accepted; every step is one fused call here.
        capturable, differentiable (bool): only False; there are no graphs of a device, and a step records no gradient.
        decoupled_weight_decay (bool): multiplies the parameter by ``1 - lr * weight_decay`` instead, as AdamW does.

    Raises ValueError for values out of range, NotImplementedError for options that only can be False.

    >>> import gradus
    >>> w = gradus.ones(1, requires_grad=True)
    >>> optimizer = gradus.optim.Adam([w], lr=0.5)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> round(w.item(), 4)
    0.5
    """

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
        _check_beta(0, betas[0])
        _check_beta(1, betas[1])
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
        check_step_options(defaults)
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        complete(self, amsgrad=False, maximize=False, foreach=None, capturable=False, differentiable=False, decoupled_weight_decay=False, fused=None)

    def step(self, closure=None):
        """Change the parameters that have a gradient once.

        Args:
            closure (callable, optional): computes the loss again, with its gradients; what it returns is returned.
        """
        loss = loss_of(closure)
        for group in self.param_groups:
            check_group(group)
            params, grads = with_gradients(group["params"])
            if not params:
                continue
            amsgrad = group["amsgrad"]
            states = list(map(self.state.__getitem__, params))
            if not all(states):
                self._start(params, states, amsgrad)
            exp_avgs, exp_avg_sqs, steps = zip(*map(_entries, states))
            beta1, beta2 = group["betas"]
            _adam_step(params, grads, exp_avgs, exp_avg_sqs, list(map(_largest, states)) if amsgrad else [], steps, number(group["lr"]),
                       number(beta1), number(beta2), number(group["weight_decay"]), number(group["eps"]), amsgrad, group["maximize"],
                       group["decoupled_weight_decay"])
        return loss

    @staticmethod
    def _start(params, states, amsgrad):
        """The state of parameters that have a gradient for the first time."""
        for param, state in zip(params, states):
            if not state:
                state["step"] = gradus.tensor(0.0, dtype=gradus.float32)
                state["exp_avg"] = gradus.zeros_like(param, requires_grad=False)
                state["exp_avg_sq"] = gradus.zeros_like(param, requires_grad=False)
                if amsgrad:
                    state["max_exp_avg_sq"] = gradus.zeros_like(param, requires_grad=False)
