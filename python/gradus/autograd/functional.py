"""Computes Jacobians and Hessians of functions of tensors, and their products with vectors."""

import gradus
from gradus import _C

__all__ = ["vjp", "jvp", "jacobian", "hessian", "vhp", "hvp"]


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """Returns (func(inputs), v^T J), where J is the Jacobian of `func`. `v` has the shape of the output and may be left out if the output is a
    single number. v^T J has the shape of the inputs."""
    with gradus.enable_grad():
        call = _Call(func, inputs, create_graph, strict)
        grads = call.gradients(call.outputs, call.vector(v, call.outputs, "v"), create_graph)
    return call.result(create_graph), call.like_inputs(grads, create_graph)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """Returns (func(inputs), J v), where J is the Jacobian of `func`. `v` has the shape of the inputs, and J v has the shape of the output. J v is
    computed by differentiating twice in reverse mode."""
    with gradus.enable_grad():
        call = _Call(func, inputs, create_graph, strict)
        v = call.vector(v, call.inputs, "v")
        seeds = tuple(gradus.zeros_like(y).requires_grad_() for y in call.outputs)
        grads = call.gradients(call.outputs, seeds, True)
        # Skip gradients without autograd history. They do not depend on the seeds, so they add nothing to J v.
        used = [(grad, one) for grad, one in zip(grads, v) if grad.requires_grad]
        if used:
            products = gradus.autograd.grad([grad for grad, _ in used], seeds, [one for _, one in used], create_graph=create_graph, materialize_grads=True)
        else:
            products = tuple(gradus.zeros_like(y) for y in call.outputs)
    return call.result(create_graph), _pack(_settled(products, create_graph), call.single_output)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """Returns the Jacobian of `func` at `inputs`. For each pair of an output y and an input x it has a tensor of shape y.shape + x.shape.

    If `vectorize` is true, one batched backward pass computes all rows. The strategy "forward-mode" requires `vectorize` and computes all columns
    by one batched forward pass.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than inputs, "forward-mode" tends to be more '
            'performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs, create_graph, strict, vectorize)
    if strict and vectorize:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please either set `strict=False` or `vectorize=False`."
        )
    with gradus.enable_grad():
        call = _Call(func, inputs, create_graph, strict)
        rows = tuple((_vectorized_jacobian_of if vectorize else _jacobian_of)(call, y, create_graph) for y in call.outputs)
    rows = tuple(call.like_inputs(row, create_graph) for row in rows)
    return rows[0] if call.single_output else rows


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """Returns the Hessian of `func`, whose output must be a single number, at `inputs`. For each pair of inputs it has a tensor with the shape of
    the first input followed by the shape of the second."""

    def gradient(*args):
        return _gradient(func, args if isinstance(inputs, tuple) else args[0], strict)

    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    if outer_jacobian_strategy == "forward-mode":
        gradient = gradus.func.grad(func, tuple(range(len(inputs))) if isinstance(inputs, tuple) else 0)
    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """Returns (func(inputs), H v), where H is the Hessian of `func`. The output of `func` must be a single number. `v` and H v have the shape of the
    inputs."""

    def gradient(*args):
        return _gradient(func, args if isinstance(inputs, tuple) else args[0], strict)

    _, product = jvp(gradient, inputs, v, create_graph, strict)
    return _value(func, inputs, create_graph), product


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """Returns (func(inputs), v^T H), where H is the Hessian of `func`. The output of `func` must be a single number. `v` and v^T H have the shape of
    the inputs."""

    def gradient(*args):
        return _gradient(func, args if isinstance(inputs, tuple) else args[0], strict)

    _, product = vjp(gradient, inputs, v, create_graph, strict)
    return _value(func, inputs, create_graph), product


def _value(func, inputs, create_graph):
    value = func(*inputs) if isinstance(inputs, tuple) else func(inputs)
    return value if create_graph else value.detach()


def _gradient(func, inputs, strict):
    call = _Call(func, inputs, True, strict)
    if not call.single_output or call.outputs[0].numel() != 1:
        raise RuntimeError("The Tensor returned by the function given to hessian should contain a single element")
    return _pack(call.gradients(call.outputs, None, True), call.single_input)


def _jacobian_of(call, y, create_graph):
    columns = tuple([] for _ in call.inputs)
    for i in range(y.numel()):
        grads = call.gradients((y.reshape(-1)[i],), None, create_graph)
        for column, grad in zip(columns, grads):
            column.append(grad)
    return tuple(
        gradus.stack(column).reshape((*y.shape, *x.shape)) if column else x.new_zeros((*y.shape, *x.shape)) for column, x in zip(columns, call.inputs)
    )


def _vectorized_jacobian_of(call, y, create_graph):
    n = y.numel()
    if not y.requires_grad or n == 0:
        return _jacobian_of(call, y, create_graph)
    basis = gradus.eye(n, dtype=y.dtype, device=y.device).reshape((n, *y.shape))
    grads = gradus.autograd.grad(y, call.inputs, basis, create_graph=create_graph, allow_unused=True, is_grads_batched=True)
    return tuple((x.new_zeros((n, *x.shape)) if grad is None else grad).reshape((*y.shape, *x.shape)) for grad, x in zip(grads, call.inputs))


def _forward_jacobian(func, inputs, create_graph, strict, vectorize):
    for flag, name, error in ((create_graph, "create_graph", NotImplementedError), (strict, "strict", RuntimeError)):
        if flag:
            raise error(
                f'torch.autograd.functional.jacobian: `{name}=True` and `strategy="forward-mode"` are not supported together (yet). '
                f'Please either set `{name}=False` or `strategy="reverse-mode"`.'
            )
    if not vectorize:
        raise NotImplementedError("Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`.")
    args = tuple(x.detach() for x in _as_tuple(inputs, "inputs given to the function"))
    return gradus.func.jacfwd(func, tuple(range(len(args))) if isinstance(inputs, tuple) else 0)(*args)


def _pack(tensors, single):
    return tensors[0] if single else tuple(tensors)


def _settled(tensors, create_graph):
    return tensors if create_graph else tuple(t.detach() for t in tensors)


def _as_tuple(tensors, what):
    result = tensors if isinstance(tensors, tuple) else (tensors,)
    for i, t in enumerate(result):
        if not isinstance(t, _C.Tensor):
            raise TypeError(f"The {what} must be either a Tensor or a tuple of Tensors but the value at index {i} has type {type(t)}.")
    return result


class _Call:
    """A call of `func` on views of `inputs`. If `create_graph` is true, the views of inputs that require gradients keep their autograd history. All
    other views are leaves that require gradients."""

    def __init__(self, func, inputs, create_graph, strict):
        self.single_input = not isinstance(inputs, tuple)
        self.inputs = tuple(
            x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_() for x in _as_tuple(inputs, "inputs given to the function")
        )
        outputs = func(*self.inputs)
        self.single_output = not isinstance(outputs, tuple)
        self.outputs = _as_tuple(outputs, "outputs of the function")
        self.strict = strict
        for i, y in enumerate(self.outputs):
            if strict and not y.requires_grad:
                raise RuntimeError(f"Output {i} of the user-provided function does not require gradients.")

    def result(self, create_graph):
        return _pack(_settled(self.outputs, create_graph), self.single_output)

    def like_inputs(self, tensors, create_graph):
        return _pack(_settled(tensors, create_graph), self.single_input)

    def vector(self, v, like, name):
        if v is None:
            if len(like) != 1 or like[0].numel() != 1:
                raise RuntimeError("The vector v can only be None if the user-provided function returns (or takes) a single Tensor with a single element.")
            return (gradus.ones_like(like[0]),)
        v = _as_tuple(v, name)
        if len(v) != len(like) or any(a.shape != b.shape for a, b in zip(v, like)):
            raise RuntimeError(f"{name} has invalid size: should be {[tuple(t.shape) for t in like]} but got {[tuple(t.shape) for t in v]}.")
        return v

    def gradients(self, outputs, grad_outputs, create_graph):
        """Returns the gradients of the outputs with respect to each input. The gradient of an input on which no output depends is zero. RuntimeError:
        `strict` is true and there is such an input."""
        needing = [i for i, y in enumerate(outputs) if y.requires_grad]
        if not needing:
            return tuple(gradus.zeros_like(x) for x in self.inputs)
        grads = gradus.autograd.grad(
            [outputs[i] for i in needing],
            self.inputs,
            None if grad_outputs is None else [grad_outputs[i] for i in needing],
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
        )
        for i, grad in enumerate(grads):
            if grad is None and self.strict:
                raise RuntimeError(f"The output of the user-provided function is independent of input {i}. This is not allowed in strict mode.")
        return tuple(gradus.zeros_like(x) if grad is None else grad for x, grad in zip(self.inputs, grads))
