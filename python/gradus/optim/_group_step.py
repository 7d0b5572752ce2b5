"""Base classes of optimizers that step one parameter group at a time. Most optimizers call one operator for all parameters of a group."""
import gradus
from gradus import _C
from gradus.optim._options import check_step_options, complete, loss_of, number, scalar_dtype, with_gradients
from gradus.optim.optimizer import Optimizer

__all__ = ["GroupStep", "StepByGroup", "begin_of_lists", "check_at_least_zero", "check_betas", "check_lr", "step_of_lists", "zeros_of"]


def check_lr(lr):
    """Raises ValueError unless lr is one number of at least 0."""
    if isinstance(lr, gradus.Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    check_at_least_zero("learning rate", lr)


def check_at_least_zero(name, value):
    """Raises ValueError unless value >= 0."""
    if not 0.0 <= value:
        raise ValueError(f"Invalid {name}: {value}")


def check_betas(betas):
    """Raises ValueError unless both betas are in [0, 1)."""
    for index in (0, 1):
        if not 0.0 <= betas[index] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {betas[index]}")


def zeros_of(param):
    """Returns zeros with the shape, dtype and device of `param`."""
    return gradus.zeros_like(param, requires_grad=False)


# Options, with default values, that pickled optimizers of older versions lack.
_ADDED_OPTIONS = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}


# _NUMBERS: names of the states that are one number per parameter. _OPTION_OF_STATE: some states exist only if an option is true; this dictionary maps
# the state's name to the option's name.
_NUMBERS = ("step", "eta", "mu", "mu_product")
_OPTION_OF_STATE = {"max_exp_avg_sq": "amsgrad", "momentum_buffer": "momentum", "grad_avg": "centered"}


class StepByGroup(Optimizer):
    """Base of optimizers that update one parameter group at a time.

    A subclass defines ``_step_group(group, params, grads)``, which updates `params` in place. `params` are the parameters of `group` that
    have a gradient, and `grads` are their gradients.
    """

    def step(self, closure=None):
        """Updates the parameters that have a gradient.

        Args:
            closure (callable, optional): recomputes the loss and its gradients and returns the loss, which ``step`` then returns.
        """
        loss = loss_of(closure)
        for group in self.param_groups:
            params, grads = with_gradients(group["params"])
            if params:
                self._step_group(group, params, grads)
        return loss

    def _states_of(self, params):
        """Returns a list with the state dictionary of each parameter."""
        return list(map(self.state.__getitem__, params))


class GroupStep(StepByGroup):
    """Base of optimizers that step all parameters of a group by one call of an operator. A subclass defines:

    ``_operator``
        the operator. Its arguments are the parameters, the gradients, one list for each name in ``_states``, and the numbers
        ``_numbers(group)``.
    ``_states``
        the names of the states in the order of the operator's arguments. If the parameters do not have a state, its list is empty.
    ``_start(param, state, group)``
        creates the states of a parameter except ``"step"``, by default as zeros.
    ``_recorded_numbers(group, state, step)``
        returns the numbers for the operator ``_recorded_step``, which does one step with ``differentiable=True``. step: the number of the step.
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
        """Creates the state tensors of each parameter whose dictionary in `states` is empty, i.e. before its first step."""
        for param, state in zip(params, states):
            if not state:
                state["step"] = gradus.tensor(0.0, dtype=scalar_dtype())
                self._start(param, state, group)

    def _tensor_states(self, group):
        """Returns the names of the states that have the parameter's shape. Leaves out a state that belongs to an option which is false in `group`."""
        return [name for name in self._states if name not in _NUMBERS and (name not in _OPTION_OF_STATE or group[_OPTION_OF_STATE[name]])]

    def _start(self, param, state, group):
        state.update((name, zeros_of(param)) for name in self._tensor_states(group))

    def _record(self, params, grads, states, group):
        """Does a step with differentiable=True, i.e. one through which gradients can flow, by the operator ``_recorded_step``."""
        optimizer, decoupled = self._operator.__name__.removeprefix("_").removesuffix("_step"), group.get("decoupled_weight_decay", False)
        for param, grad, state in zip(params, grads, states):
            step = state["step"].add_(1).item()
            record_step(optimizer, param, grad, [state[name] for name in self._tensor_states(group)], group, decoupled, map(number, self._recorded_numbers(group, state, step)))
            self._after_recorded(group, state, step)

    def _after_recorded(self, group, state, step):
        """Updates the states that `_recorded_numbers` reads in the next step. Only ASGD has such states: the step size and averaging weight."""


def step_of_lists(kind, params, grads, lists, group, *, differentiable=False, fused=False, grad_scale=None, found_inf=None):
    """Does the step of the optimizer class `kind` without an optimizer object, for functions such as adam().

    lists: maps each name in ``_states`` to a list with the states of all parameters. group: the options of a parameter group. If `fused`, gradients
    are first divided by grad_scale, and nothing is updated if found_inf is 1.
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
    """Divides gradients in place by grad_scale, the scale of a GradScaler, unless it is None.

    Returns False if found_inf is 1, because the step must then be skipped, and True otherwise. Raises AssertionError if grad_scale or found_inf is
    given without `fused`.
    """
    if not fused and not (grad_scale is None and found_inf is None):
        raise AssertionError("Expected grad_scale and found_inf to be None")
    if found_inf is not None and found_inf.item() == 1:
        return False
    if grad_scale is not None:
        gradus._foreach_div_(grads, grad_scale)
    return True


def record_step(optimizer, param, grad, states, group, decoupled, numbers):
    """Updates a parameter and its states in place by the operator ``_recorded_step``. Returns the list of states that the operator created.

    optimizer: the optimizer's name, e.g. "adam". decoupled: multiplies the parameter by 1 - lr * weight_decay instead of adding weight_decay * param
    to the gradient. numbers: the numbers that the operator takes for this optimizer, e.g. the betas of "adam".
    """
    rate, decay = (value if isinstance(value, gradus.Tensor) else None for value in (group.get("lr", 0), group.get("weight_decay", 0)))
    lr, weight_decay = 0 if rate is not None else group.get("lr", 0), 0 if decay is not None else group.get("weight_decay", 0)
    if param.is_complex():
        param, grad, *states = map(gradus.view_as_real, (param, grad.resolve_conj(), *states))
    made = _C._recorded_step(param, grad, states, optimizer, lr, rate, weight_decay, decay, group["maximize"], decoupled,
                             gradus.tensor(list(numbers), dtype=gradus.float64))
    for changed, value in zip([param, *states], made):
        changed.copy_(value)
    return made[1 + len(states):]
