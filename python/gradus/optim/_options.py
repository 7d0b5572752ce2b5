"""Functions that optimizers share: checks of options that change nothing here, states of older versions, closures, numbers that may be tensors, parameters that have a gradient."""
import gradus


def check_step_options(options):
    """Refuse options that contradict each other. ``foreach``, ``fused`` and ``capturable`` change nothing: each step is one call of C, and there is no graph of a
    device to capture it in."""
    if options["fused"]:
        if options["differentiable"]:
            raise RuntimeError("`fused` does not support `differentiable`")
        if options["foreach"]:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def scalar_dtype():
    """Returns the dtype of states that are one number, as the count of steps."""
    return gradus.float64 if gradus.get_default_dtype() == gradus.float64 else gradus.float32


def number(value):
    """Returns an option as a Python number; it may be given as a tensor of one element."""
    if type(value) is float:  # the usual case
        return value
    return value.item() if isinstance(value, gradus.Tensor) else value


def with_gradients(params):
    """Returns the parameters that have a gradient, and their gradients."""
    grads = [param.grad for param in params]
    for grad in grads:
        if grad is None:
            return [param for param in params if param.grad is not None], [grad for grad in grads if grad is not None]
    return params, grads


def complete(optimizer, **options):
    """Give the groups of a restored optimizer the options they lack, and make its steps tensors: older versions saved neither."""
    for group in optimizer.param_groups:
        for option, default in options.items():
            group.setdefault(option, default)
    for state in optimizer.state.values():
        if "step" in state and not isinstance(state["step"], gradus.Tensor):
            state["step"] = gradus.tensor(float(state["step"]), dtype=scalar_dtype())


def loss_of(closure):
    """Returns the result of a closure, called with gradients enabled; None without a closure."""
    if closure is None:
        return None
    with gradus.enable_grad():
        return closure()
