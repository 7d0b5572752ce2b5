"""Optimizers that step group by group. Most of them call one operator for all parameters of a group."""
import gradus
from gradus import _C
from gradus.optim._options import check_step_options, complete, loss_of, number, scalar_dtype, with_gradients
from gradus.optim.optimizer import Optimizer

__all__ = ["GroupStep", "StepByGroup", "begin_of_lists", "check_at_least_zero", "check_betas", "check_lr", "step_of_lists", "zeros_of"]


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


def zeros_of(param):
    return gradus.zeros_like(param, requires_grad=False)


# Options that states of older versions lack.
_ADDED_OPTIONS = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}


# States of one number; and the option that a state depends on, for states that not all groups have.
_NUMBERS = ("step", "eta", "mu", "mu_product")
_OPTION_OF_STATE = {"max_exp_avg_sq": "amsgrad", "momentum_buffer": "momentum", "grad_avg": "centered"}


class StepByGroup(Optimizer):
    """A subclass writes ``_step_group(group, params, grads)``, the step of the parameters of a group that have a gradient."""

    def step(self, closure=None):
        """Change the parameters that have a gradient once.

        Args:
            closure (callable, optional): computes the loss again, with its gradients; what it returns is returned.
        """
        loss = loss_of(closure)
        for group in self.param_groups:
            params, grads = with_gradients(group["params"])
            if params:
                self._step_group(group, params, grads)
        return loss

    def _states_of(self, params):
        return list(map(self.state.__getitem__, params))


class GroupStep(StepByGroup):
    """A subclass says what its operator (schema/optim.toml) takes:

    ``_operator``
        the operator; its arguments are parameters, gradients, a list for each of ``_states``, and what ``_numbers(group)`` returns.
    ``_states``
        the names of the state, in the operator's order. A list is empty where the parameters have no such state.
    ``_start(param, state, group)``
        makes the state of a parameter, except for its ``"step"``: zeros, unless the subclass says otherwise.
    ``_recorded_numbers(group, state, step)``
        the numbers that the operator ``_recorded_step`` takes for the optimizer in step number `step`, for ``differentiable=True``.
    """

    def __init__(self, params, defaults):
        check_step_options({"fused": None, **defaults})
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        complete(self, **{option: default for option, default in _ADDED_OPTIONS.items() if option in self.defaults})

    def _step_group(self, group, params, grads):
        states = self._states_of(params)
        if not all(states):
            self._start_all(params, states, group)
        if group["differentiable"]:
            self._record(params, grads, states, group)
        else:
            lists = [[state[name] for state in states] if name in states[0] else [] for name in self._states]
            self._operator(params, grads, *lists, *map(number, self._numbers(group)))

    def _start_all(self, params, states, group):
        for param, state in zip(params, states):
            if not state:
                state["step"] = gradus.tensor(0.0, dtype=scalar_dtype())
                self._start(param, state, group)

    def _tensor_states(self, group):
        """Returns the names of the states that have a parameter's shape, with the group's options."""
        return [name for name in self._states if name not in _NUMBERS and (name not in _OPTION_OF_STATE or group[_OPTION_OF_STATE[name]])]

    def _start(self, param, state, group):
        state.update((name, zeros_of(param)) for name in self._tensor_states(group))

    def _record(self, params, grads, states, group):
        """Does the step by the operator ``_recorded_step``, which is recorded if the caller records gradients."""
        optimizer, decoupled = self._operator.__name__.removeprefix("_").removesuffix("_step"), group.get("decoupled_weight_decay", False)
        for param, grad, state in zip(params, grads, states):
            step = state["step"].add_(1).item()
            record_step(optimizer, param, grad, [state[name] for name in self._tensor_states(group)], group, decoupled, map(number, self._recorded_numbers(group, state, step)))
            self._after_recorded(group, state, step)

    def _after_recorded(self, group, state, step):
        """Updates the state from which the numbers of the next recorded step are computed."""


def step_of_lists(kind, params, grads, lists, group, *, differentiable=False, fused=False, grad_scale=None, found_inf=None):
    """The step of the class `kind` without an optimizer: `lists` has a list for each name of ``_states``, and `group` the options of a parameter group.

    With `fused`, gradients are divided by `grad_scale` first, and nothing is done where `found_inf` is 1.
    """
    if not all(isinstance(step, gradus.Tensor) for step in lists["step"]):
        raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
    if not begin_of_lists(grads, fused, grad_scale, found_inf) or not params:
        return
    if differentiable:
        states = [{name: values[i] for name, values in lists.items() if values} for i in range(len(params))]
        kind.__new__(kind)._record(params, grads, states, group)
    else:
        kind._operator(params, grads, *(lists[name] for name in kind._states), *map(number, kind._numbers(group)))


def begin_of_lists(grads, fused, grad_scale, found_inf):
    """Divides gradients by the scale of a GradScaler, for the functions that take it; False if there is no step to do."""
    if not fused and not (grad_scale is None and found_inf is None):
        raise AssertionError("Expected grad_scale and found_inf to be None")
    if found_inf is not None and found_inf.item() == 1:
        return False
    if grad_scale is not None:
        gradus._foreach_div_(grads, grad_scale)
    return True


def record_step(optimizer, param, grad, states, group, decoupled, numbers):
    """Changes a parameter and its states by the operator ``_recorded_step``. Returns the states that it made beyond those given."""
    rate, decay = (value if isinstance(value, gradus.Tensor) else None for value in (group.get("lr", 0), group.get("weight_decay", 0)))
    lr, weight_decay = 0 if rate is not None else group.get("lr", 0), 0 if decay is not None else group.get("weight_decay", 0)
    if param.is_complex():
        param, grad, *states = map(gradus.view_as_real, (param, grad.resolve_conj(), *states))
    made = _C._recorded_step(param, grad, states, optimizer, lr, rate, weight_decay, decay, group["maximize"], decoupled,
                             gradus.tensor(list(numbers), dtype=gradus.float64))
    for changed, value in zip([param, *states], made):
        changed.copy_(value)
    return made[1 + len(states):]
