"""Muon, an optimizer that orthogonalizes the momentum of matrices."""
from __future__ import annotations

import gradus
from gradus._C import _muon_step
from gradus.optim._group_step import StepByGroup
from gradus.optim._options import number

__all__ = ["Muon"]


class Muon(StepByGroup):
    """Muon (Jordan et al., 2024): steps along the orthogonalized running mean of the gradient.

    Newton-Schulz iterations in bfloat16 bring all singular values of the mean close to 1.

    Args:
        params: matrices, ``(name, tensor)`` pairs, or dictionaries of parameter groups. Use another optimizer for other parameters.
        lr (float or Tensor): the learning rate.
        weight_decay (float): first multiplies the parameter by ``1 - lr * weight_decay``.
        momentum (float): the decay factor of the running mean.
        nesterov (bool): uses Nesterov momentum: steps along the mean after one more update with the same gradient.
        ns_coefficients (tuple of float): the coefficients of x, x^3 and x^5 in a Newton-Schulz iteration.
        eps (float): the lower bound of the norm by which the matrix is divided before the iterations.
        ns_steps (int): the number of iterations.
        adjust_lr_fn (str, optional): ``"original"`` (also None) multiplies the learning rate by ``sqrt(max(1, rows / columns))``,
            ``"match_rms_adamw"`` by ``0.2 * sqrt(max(rows, columns))``.

    Raises ValueError for values out of range and for parameters that are not matrices.

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
