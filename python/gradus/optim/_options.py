"""Functions that optimizers share: they check options, read options that are tensors, call closures, and update states of older versions."""
import gradus


def check_step_options(options):
    """Raises RuntimeError for options that contradict each other.

    ``foreach``, ``fused`` and ``capturable`` have no effect, because each step is one fused call and there are no device graphs that could capture
    the step.
    """
    if options["fused"]:
        if options["differentiable"]:
            raise RuntimeError("`fused` does not support `differentiable`")
        if options["foreach"]:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def scalar_dtype():
    """Returns the dtype of states that are one number, such as the step count: float64 if that is the default dtype, otherwise float32."""
    return gradus.float64 if gradus.get_default_dtype() == gradus.float64 else gradus.float32


def number(value):
    """Returns an option as a Python number. The option may be a tensor of one element."""
    if type(value) is float:  # a shortcut for the most frequent case
        return value
    return value.item() if isinstance(value, gradus.Tensor) else value


def with_gradients(params):
    """Returns (params, grads): the parameters that have a gradient, and their gradients."""
    grads = [param.grad for param in params]
    for grad in grads:
        if grad is None:
            return [param for param in params if param.grad is not None], [grad for grad in grads if grad is not None]
    return params, grads


def complete(optimizer, **options):
    """Updates an optimizer that was restored from the state of an older version: adds the options that its groups lack, and converts step counts from
    numbers to tensors. options: names and default values of the options."""
    for group in optimizer.param_groups:
        for option, default in options.items():
            group.setdefault(option, default)
    for state in optimizer.state.values():
        if "step" in state and not isinstance(state["step"], gradus.Tensor):
            state["step"] = gradus.tensor(float(state["step"]), dtype=scalar_dtype())


def loss_of(closure):
    """Returns the result of `closure`, called with gradients enabled, or None if closure is None."""
    if closure is None:
        return None
    with gradus.enable_grad():
        return closure()
