"""Gradient clipping by norm or by value. The argument foreach is accepted for compatibility with PyTorch and has no effect.

_get_total_norm and _clip_grads_with_norm_ are public in gradus.nn.utils as get_total_norm and clip_grads_with_norm_.
"""
from __future__ import annotations

import types
import warnings

import gradus
from gradus._C import Tensor, _foreach_clamp_max_, _foreach_clamp_min_, _foreach_mul_, _foreach_norm

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_"]


def _as_list(tensors):
    """Returns a list of the tensors; a single tensor becomes a list of one."""
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients(parameters):
    """Returns the list of gradients that are not None."""
    return [grad for grad in (parameter.grad for parameter in _as_list(parameters)) if grad is not None]


def _get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Returns the norm of order norm_type of all tensors, as if they were concatenated to one vector.

    Raises RuntimeError if the norm is not finite and error_if_nonfinite is true.

    >>> nn.utils.get_total_norm([gradus.tensor([3.]), gradus.tensor([4.])]).item()
    5.0
    """
    tensors = _as_list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return gradus.tensor(0.0)
    with gradus.no_grad():
        norms = _foreach_norm(tensors, norm_type)
        if len({norm.device for norm in norms}) > 1:
            norms = [norm.to(tensors[0].device) for norm in norms]
        total = gradus.stack(norms).norm(norm_type)
        if error_if_nonfinite and not total.isfinite():
            raise RuntimeError(f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. To "
                               "disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`")
    return total


def _clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Multiplies all gradients in place by max_norm / total_norm if this factor is below 1."""
    with gradus.no_grad():
        _foreach_mul_(_gradients(parameters), (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0))


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales all gradients in place so that their total norm of order norm_type is at most max_norm. Returns the norm before scaling.

    Raises RuntimeError if the norm is not finite and error_if_nonfinite is true.

    >>> weight = nn.Parameter(gradus.zeros(2))
    >>> weight.grad = gradus.tensor([3., 4.])
    >>> nn.utils.clip_grad_norm_(weight, 1.0).item(), round(weight.grad.norm().item(), 4)
    (5.0, 1.0)
    """
    generated = isinstance(parameters, types.GeneratorType)
    parameters = _as_list(parameters)
    if generated and not parameters:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    total_norm = _get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite)
    _clip_grads_with_norm_(parameters, max_norm, total_norm)
    return total_norm


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Deprecated: issues a warning and returns the result of clip_grad_norm_."""
    warnings.warn("`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Clamps every element of every gradient to [-clip_value, clip_value], in place."""
    clip_value = float(clip_value)
    with gradus.no_grad():
        grads = _gradients(parameters)
        _foreach_clamp_min_(grads, -clip_value)
        _foreach_clamp_max_(grads, clip_value)
