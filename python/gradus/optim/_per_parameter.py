"""Optimizers whose step is written over tensor operators, one parameter after another."""
import gradus
from gradus.optim._options import check_group, check_step_options, complete, loss_of, number
from gradus.optim.optimizer import Optimizer

__all__ = ["PerParameter", "check_at_least_zero", "check_betas", "check_lr"]


def check_lr(lr):
    if isinstance(lr, gradus.Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    check_at_least_zero("learning rate", lr)


def check_at_least_zero(name, value):
    if not 0.0 <= value:
        raise ValueError(f"Invalid {name}: {value}")


def check_betas(betas):
    for index in (0, 1):
        if not 0.0 <= betas[index] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {betas[index]}")


class PerParameter(Optimizer):
    """A subclass writes ``_start(param, state, group)``, which makes the state of a parameter, and ``_update(param, grad, state, group,
    lr, step)``, which changes both in place. Weight decay, ``maximize`` and complex parameters, as pairs of real ones, are done here.
    """

    def __init__(self, params, defaults):
        check_step_options({"fused": None, **defaults})
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        complete(self, foreach=None, maximize=False, differentiable=False)

    def step(self, closure=None):
        """Change the parameters that have a gradient once.

        Args:
            closure (callable, optional): computes the loss again, with its gradients; what it returns is returned.
        """
        loss = loss_of(closure)
        with gradus.no_grad():
            for group in self.param_groups:
                check_group(group)
                for param in group["params"]:
                    if param.grad is not None:
                        self._step_of(param, param.grad, group)
        return loss

    def _step_of(self, param, grad, group):
        state = self.state[param]
        if not state:
            state["step"] = gradus.tensor(0.0, dtype=gradus.float32)
            self._start(param, state, group)
        state["step"] += 1
        lr, weight_decay = number(group["lr"]), number(group.get("weight_decay", 0))
        if group["maximize"]:
            grad = -grad
        if weight_decay != 0:
            if group.get("decoupled_weight_decay"):
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        if param.is_complex():
            param, grad = gradus.view_as_real(param), gradus.view_as_real(grad)
            state = {key: gradus.view_as_real(value) if value.is_complex() else value for key, value in state.items()}
        self._update(param, grad, state, group, lr, state["step"].item())
