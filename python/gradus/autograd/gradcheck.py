"""Checks of gradients against finite differences.

A complex element counts as two real numbers. Let y be an element of an output and u a real number of an input. The numerical derivative of Re(y) with
respect to u is the central difference. The analytical derivative is the gradient of u after a backward pass that starts with the gradient 1
for y. For Im(y) the pass starts with 1j. Both derivatives are compared: |analytical - numerical| <= atol + rtol * |numerical|.
"""

import itertools
import warnings

import gradus
from gradus import _C, _stand_ins

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """Raised if a gradient is wrong."""


def gradcheck(
    func,
    inputs,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_batched_forward_grad=False,
    check_forward_ad=False,
    check_backward_ad=True,
    fast_mode=False,
    masked=None,
):
    """Checks the gradients of `func(*inputs)` with respect to all inputs that require one. These inputs should have dtype float64 or complex128.

    Returns True if all gradients are right. Otherwise raises GradcheckError, or returns False if `raise_exception` is False. `nondet_tol` is the
    allowed difference between two backward passes. `check_forward_ad` also compares the tangents of forward mode. `fast_mode`,
    `check_undefined_grad`, `check_grad_dtypes` and `masked` are accepted but have no effect.
    """
    _refuse(check_batched_grad or check_batched_forward_grad, "batched gradients")
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    _check_inputs(inputs)
    try:
        if check_backward_ad:
            _check_backward(func, inputs, eps, atol, rtol, nondet_tol)
        if check_forward_ad:
            _check_forward(func, inputs, eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    gen_non_contig_grad_outputs=False,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_fwd_over_rev=False,
    check_rev_over_rev=True,
    fast_mode=False,
    masked=False,
):
    """Checks the second derivatives of `func(*inputs)`: runs gradcheck on the backward of `func`. `grad_outputs` are the gradients of the outputs and
    default to random tensors. Returns True if all second derivatives are right. Otherwise raises GradcheckError, or returns False if
    `raise_exception` is False."""
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    _check_inputs(inputs)
    n = len(inputs)
    if grad_outputs is None:
        grad_outputs = tuple(_random_like(y, gen_non_contig_grad_outputs) for y in _outputs(func, inputs))
    elif isinstance(grad_outputs, _C.Tensor):
        grad_outputs = (grad_outputs,)

    def gradients(*args):
        args, grads = args[:n], args[n:]
        wanted = tuple(x for x in args if _is_checked(x))
        with gradus.enable_grad():
            return gradus.autograd.grad(_outputs(func, args), wanted, grads, create_graph=True, materialize_grads=True)

    return gradcheck(
        gradients,
        inputs + tuple(grad_outputs),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _refuse(asked, what):
    if asked:
        raise NotImplementedError(f"gradcheck: {what} cannot be checked: it does not exist yet")


def _is_checked(x):
    return isinstance(x, _C.Tensor) and x.requires_grad


def _check_inputs(inputs):
    checked = [(i, x) for i, x in enumerate(inputs) if _is_checked(x)]
    if not checked:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True.")
    for i, x in checked:
        if x.dtype not in (gradus.float64, gradus.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. "
                "This check will likely fail if all the inputs are not of double precision floating point or complex.",
                stacklevel=3,
            )
        if any(stride == 0 and size > 1 for size, stride in zip(x.shape, x.stride())):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able to "
                "compute the numerical gradients correctly. You should call .contiguous on the input before passing it to gradcheck."
            )
        x.retain_grad()


def _results(func, inputs):
    result = func(*inputs)
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def _outputs(func, inputs):
    """Returns the results of func(*inputs) that require a gradient."""
    return tuple(y for y in _results(func, inputs) if _is_checked(y))


def _real(t):
    """Returns `t` as real numbers. A complex tensor gets an additional last dimension of size 2 for the real and the imaginary part."""
    return gradus.view_as_real(t.resolve_conj()) if t.is_complex() else t


def _places(t):
    """Yields the indices of all elements of _real(t), which is `t` viewed as real numbers."""
    return itertools.product(*(range(size) for size in _real(t).shape))


def _check_backward(func, inputs, eps, atol, rtol, nondet_tol):
    results = _results(func, inputs)
    checked = [x for x in inputs if _is_checked(x)]
    outputs = [(at, y) for at, y in enumerate(results) if _is_checked(y)]
    if not outputs:
        _check_constant(func, inputs, results, checked, eps)
    # Compute all analytical Jacobians first. Computing the numerical ones changes elements of the inputs in place, and after such a change backward
    # would raise an error.
    analytical = [_analytical(y, checked) for _, y in outputs]
    for (_, y), jacobians in zip(outputs, analytical):
        for again, first in zip(_analytical(y, checked), jacobians):
            _check_same(again, first, nondet_tol)
    for i, (at, _) in enumerate(outputs):
        for j, x in enumerate(checked):
            _compare(i, j, _numerical(func, inputs, at, x, eps), analytical[i][j], atol, rtol)


def _check_forward(func, inputs, eps, atol, rtol):
    checked = [x for x in inputs if _is_checked(x)]
    for i, (at, _) in enumerate([(at, y) for at, y in enumerate(_results(func, inputs)) if _is_checked(y)]):
        for j, x in enumerate(checked):
            _compare(i, j, _numerical(func, inputs, at, x, eps), _of_tangents(func, inputs, at, x), atol, rtol)


def _of_tangents(func, inputs, at, x):
    """Returns the Jacobian of y = func(*inputs)[at] with respect to `x`, computed in forward mode. It has a row for each real number of `x` and a
    column for each real number of y. A complex element counts as two real numbers."""
    rows = []
    for place in _places(x):
        tangent = gradus.zeros_like(x, requires_grad=False)
        _real(tangent)[place] = 1
        with gradus.autograd.forward_ad.dual_level():
            y = _results(func, tuple(_C._make_dual(x, tangent) if one is x else one for one in inputs))[at]
            primal, found = _C._unpack_dual(y)
            rows.append(_real(gradus.zeros_like(primal) if found is None else found).detach().reshape(-1))
    return gradus.stack(rows) if rows else _real(x.detach()).new_zeros(0, 0)


def _check_constant(func, inputs, results, checked, eps):
    for at, y in enumerate(results):
        if not isinstance(y, _C.Tensor) or not (y.is_floating_point() or y.is_complex()):
            continue
        for x in checked:
            if _numerical(func, inputs, at, x, eps).ne(0).any():
                raise GradcheckError("Numerical gradient for function expected to be zero")


def _numerical(func, inputs, at, x, eps):
    """Returns the Jacobian of y = func(*inputs)[at] with respect to `x`, computed by central differences with step `eps`. It has a row for each real
    number of `x` and a column for each real number of y. A complex element counts as two real numbers."""
    rows = []
    numbers = _real(x.detach())
    for place in _places(x):
        number = numbers[place]
        value = number.item()
        number.fill_(value + eps)
        above = _real(_results(func, inputs)[at].detach()).clone()
        number.fill_(value - eps)
        below = _real(_results(func, inputs)[at].detach()).clone()
        number.fill_(value)
        rows.append(((above - below) / (2 * eps)).reshape(-1))
    return gradus.stack(rows) if rows else numbers.new_zeros(0, 0)


def _analytical(y, inputs):
    """Returns the list of the Jacobians of `y` with respect to each of `inputs`, computed by backward passes. A Jacobian has a row for each real
    number of the input and a column for each real number of `y`. A complex element counts as two real numbers."""
    columns = [[] for _ in inputs]
    for place in _places(y):
        seed = gradus.zeros_like(y, requires_grad=False)
        _real(seed)[place] = 1
        grads = gradus.autograd.grad(y, inputs, seed, retain_graph=True, allow_unused=True)
        for x, grad, column in zip(inputs, grads, columns):
            if grad is not None and grad.shape != x.shape:
                raise GradcheckError(f"grad is incorrect size: {tuple(grad.shape)} instead of {tuple(x.shape)}")
            column.append(_real(gradus.zeros_like(x) if grad is None else grad).detach().reshape(-1))
    return [gradus.stack(column, 1) if column else _real(x.detach()).new_zeros(_real(x).numel(), 0) for x, column in zip(inputs, columns)]


def _check_same(again, first, tolerance):
    if (again - first).abs().gt(tolerance).any():
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values. "
            f"The tolerance for nondeterminism was {tolerance}."
        )


def _compare(i, j, numerical, analytical, atol, rtol):
    if not gradus.allclose(analytical, numerical.to(analytical.dtype), rtol=rtol, atol=atol):
        raise GradcheckError(
            f"Jacobian mismatch for output {i} with respect to input {j},\nnumerical:{numerical}\nanalytical:{analytical}\n"
        )


def _random_like(y, non_contiguous):
    grad = gradus.randn(tuple(y.shape), dtype=y.dtype)
    if non_contiguous and grad.ndim > 0:
        grad = gradus.stack([grad, grad], -1).select(-1, 0)
    return grad.requires_grad_()


__getattr__ = _stand_ins.of_module(__name__)
