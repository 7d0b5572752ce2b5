"""Muon: momentum whose matrix is made orthogonal."""
from __future__ import annotations

import gradus
from gradus._C import _muon_step
from gradus.optim._group_step import StepByGroup
from gradus.optim._options import number

__all__ = ["Muon"]


class Muon(StepByGroup):
    """Muon: steps along the running mean of the gradient, with all its singular values brought near 1 by Newton-Schulz iterations in bfloat16.

    Args:
        params: matrices, ``(name, tensor)`` pairs or dictionaries of groups. Other parameters are given to another optimizer.
        lr (float or Tensor): the learning rate.
        weight_decay (float): the parameter is first multiplied by ``1 - lr * weight_decay``.
        momentum (float): how much of the mean stays.
        nesterov (bool): goes along a mean that is one gradient ahead.
        ns_coefficients (tuple of float): those of x, x^3 and x^5 in an iteration.
        eps (float): the least norm that is divided by.
        ns_steps (int): the number of iterations.
        adjust_lr_fn (str, optional): ``"original"``, also where it is None, multiplies the rate by ``sqrt(max(1, rows / columns))``;
            ``"match_rms_adamw"`` by ``0.2 * sqrt(max(rows, columns))``.

    Raises ValueError for values out of range, and for parameters that are no matrices.

    >>> import gradus
    >>> w = gradus.eye(2, requires_grad=True)
    >>> optimizer = gradus.optim.Muon([w], lr=0.1)
    >>> w.sum().backward()
    >>> optimizer.step()
    """

    def __init__(self, params, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
                 ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7, ns_steps: int = 5,
                 adjust_lr_fn: str | None = None):
        if isinstance(lr, gradus.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for name, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not 0.0 <= value:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov, "ns_coefficients": ns_coefficients,
                                  "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn})
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}")

    def _step_group(self, group, params, grads):
        if any(param.is_complex() for param in params):
            raise RuntimeError("Muon does not support complex parameters")
        if len(group["ns_coefficients"]) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        states = self._states_of(params)
        for grad, state in zip(grads, states):
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = gradus.zeros_like(grad)
        with gradus.no_grad():
            _muon_step(params, grads, [state["momentum_buffer"] for state in states], number(group["lr"]), number(group["weight_decay"]),
                       group["momentum"], group["nesterov"], *group["ns_coefficients"], group["eps"], group["ns_steps"], group["adjust_lr_fn"])
