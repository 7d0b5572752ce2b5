"""Adafactor, an optimizer that stores running means of squared gradients per row and per column."""
from __future__ import annotations

import gradus
from gradus._C import _adafactor_step
from gradus.optim._group_step import StepByGroup
from gradus.optim._options import complete, number, scalar_dtype

__all__ = ["Adafactor"]


class Adafactor(StepByGroup):
    """Adafactor (Shazeer and Stern, 2018): for a matrix it stores running means of ``grad ** 2`` along rows and columns instead of per element.

    Args:
        params: real tensors, ``(name, tensor)`` pairs, or dictionaries of parameter groups.
        lr (float or Tensor): the largest relative step size; in step t the relative step size is ``min(lr, 1 / sqrt(t))``. The step size is the
            relative step size times the root mean square of the parameter.
        beta2_decay (float): the weight of ``grad ** 2`` in the running means is ``t ** beta2_decay`` in step t.
        eps (tuple): ``(eps1, eps2)``. ``eps1 ** 2`` is the lower bound of the running means; eps1 is the epsilon of the dtype when None. eps2 is the
            lower bound of the parameter's root mean square.
        d (float): updates are scaled down so that their root mean square is at most d.
        weight_decay (float): first multiplies the parameter by ``1 - lr * weight_decay``.
        foreach (bool, optional): accepted, without effect.
        maximize (bool): maximizes the objective instead of minimizing it.

    Raises ValueError for values out of range, RuntimeError for complex parameters.

    >>> import gradus
    >>> w = gradus.ones(2, 2, requires_grad=True)
    >>> optimizer = gradus.optim.Adafactor([w], lr=0.5)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> w[0, 0].item()
    0.5
    """

    def __init__(self, params, lr: float | gradus.Tensor = 1e-2, beta2_decay: float = -0.8, eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0,
                 weight_decay: float = 0.0, *, foreach=None, maximize: bool = False):
        if isinstance(lr, gradus.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for text, fits, value in (("Learning rate should be >= 0", 0.0 <= lr, lr), ("beta2_decay should be <= 0", 0.0 >= beta2_decay, beta2_decay),
                                  ("epsilon1 should be >= 0", eps[0] is None or 0.0 <= eps[0], eps[0]), ("epsilon2 should be >= 0", 0.0 <= eps[1], eps[1]),
                                  ("Clipping threshold d should be >= 1", 1.0 <= d, d), ("weight_decay should be >= 0", 0.0 <= weight_decay, weight_decay)):
            if not fits:
                raise ValueError(f"{text} but is: {value}")
        super().__init__(params, {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay, "foreach": foreach,
                                  "maximize": maximize})

    def __setstate__(self, state):
        super().__setstate__(state)
        complete(self, foreach=None)

    def _step_group(self, group, params, grads):
        if any(param.is_complex() for param in params):
            raise RuntimeError("Adafactor does not support complex parameters")
        states = self._states_of(params)
        for grad, state in zip(grads, states):
            if not state:
                self._start(grad, state)
        rows = [state["row_var"] if "row_var" in state else state["variance"] for state in states]
        columns = [state["col_var"] if "col_var" in state else state["variance"] for state in states]
        least, size = group["eps"]
        with gradus.no_grad():
            _adafactor_step(params, grads, rows, columns, [state["step"] for state in states], number(group["lr"]), group["beta2_decay"],
                            gradus.finfo(params[0].dtype).eps if least is None else least, size, group["d"], group["weight_decay"], group["maximize"])

    @staticmethod
    def _start(grad, state):
        """Creates the state of a parameter: the step count, and the running means, which start at zero."""
        state["step"] = gradus.tensor(0.0, dtype=scalar_dtype())
        if grad.dim() > 1:
            state["row_var"] = grad.new_zeros((*grad.shape[:-1], 1))
            state["col_var"] = grad.new_zeros((*grad.shape[:-2], 1, grad.shape[-1]))
        else:
            state["variance"] = gradus.zeros_like(grad)
