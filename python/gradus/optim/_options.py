"""What the optimizers share: options that mean nothing here, states of older versions, closures, numbers that may be tensors, parameters that have a gradient."""
import gradus


def check_step_options(options):
    """Refuse options that would change what a step is; ``foreach`` and ``fused`` change nothing."""
    if options["fused"]:
        if options["differentiable"]:
            raise RuntimeError("`fused` does not support `differentiable`")
        if options["foreach"]:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    check_group(options)


def check_group(group):
    """Refuse a group whose step would have to record a gradient, or run inside a graph of a device."""
    if group["differentiable"]:
        raise NotImplementedError("differentiable=True is not supported: a step records no gradient")
    if group.get("capturable"):
        raise NotImplementedError("capturable=True is not supported: there is no CUDA or XPU graph to capture a step in")


def number(value):
    """An option as a Python number; it may be given as a tensor of one element."""
    if type(value) is float:  # Nearly always.
        return value
    return value.item() if isinstance(value, gradus.Tensor) else value


def with_gradients(params):
    """The parameters that have a gradient, and their gradients."""
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
            state["step"] = gradus.tensor(float(state["step"]), dtype=gradus.float32)


def loss_of(closure):
    """What a closure returns, computed with gradients; None without one."""
    if closure is None:
        return None
    with gradus.enable_grad():
        return closure()
