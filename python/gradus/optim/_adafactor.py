"""Adafactor: steps whose running squares are kept as rows and columns."""
from __future__ import annotations

import gradus
from gradus._C import _adafactor_step
from gradus.optim._group_step import StepByGroup
from gradus.optim._options import complete, number, scalar_dtype

__all__ = ["Adafactor"]


class Adafactor(StepByGroup):
    """Adafactor: a matrix keeps the running means of ``grad ** 2`` along rows and along columns, instead of one for each element.

    Args:
        params: tensors, ``(name, tensor)`` pairs or dictionaries of groups. Real ones.
        lr (float or Tensor): the largest rate; in step t it is ``min(lr, 1 / sqrt(t))``, relative to the parameter's size.
        beta2_decay (float): the new squares count ``t ** beta2_decay`` in step t.
        eps (tuple): the least squares (None: the epsilon of the dtype), and the least size of a parameter.
        d (float): the size to which updates are cut down.
        weight_decay (float): the parameter is first multiplied by ``1 - lr * weight_decay``.
        foreach (bool, optional): accepted; every step is one call of C.
        maximize (bool): maximizes the objective.

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
        state["step"] = gradus.tensor(0.0, dtype=scalar_dtype())
        if grad.dim() > 1:
            state["row_var"] = grad.new_zeros((*grad.shape[:-1], 1))
            state["col_var"] = grad.new_zeros((*grad.shape[:-2], 1, grad.shape[-1]))
        else:
            state["variance"] = gradus.zeros_like(grad)
