"""SparseAdam, an optimizer for sparse gradients."""
from __future__ import annotations

import gradus
from gradus.optim._options import loss_of
from gradus.optim.optimizer import Optimizer

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam for sparse gradients. Gradients in Gradus are always dense, so a step with gradients raises RuntimeError, as in PyTorch.

    Args:
        params: tensors, ``(name, tensor)`` pairs, or dictionaries of parameter groups.
        lr (float or Tensor): the learning rate.
        betas (tuple of float): ``(beta1, beta2)``.
        eps (float): added to the divisor.
        maximize (bool): maximizes the objective instead of minimizing it.

    Raises ValueError for values out of range and for complex parameters; ``step`` raises RuntimeError for dense gradients.

    >>> import gradus
    >>> optimizer = gradus.optim.SparseAdam([gradus.ones(2, requires_grad=True)])
    >>> optimizer.step()
    """

    def __init__(self, params, lr: float | gradus.Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, maximize: bool = False):
        if isinstance(lr, gradus.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for index in (0, 1):
            if not 0.0 <= betas[index] < 1.0:
                raise ValueError(f"Invalid beta parameter at index {index}: {betas[index]}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        complex_params = [[g, i] for g, group in enumerate(self.param_groups) for i, param in enumerate(group["params"]) if param.is_complex()]
        if complex_params:
            raise ValueError(f"Complex params at indices {complex_params}: SparseAdam does not support complex parameters")

    def step(self, closure=None):
        """Returns the closure's loss. Raises RuntimeError if a parameter has a gradient: SparseAdam accepts only sparse gradients, as in PyTorch, and
        gradients in Gradus are dense."""
        loss = loss_of(closure)
        if any(param.grad is not None for group in self.param_groups for param in group["params"]):
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        return loss
