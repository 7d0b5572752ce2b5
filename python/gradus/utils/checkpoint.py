"""Activation checkpointing: the intermediate results of a part of a network are not stored; they are recomputed in the backward pass."""
import contextlib
import warnings
from enum import Enum

import gradus
from gradus import _C, _stand_ins
from gradus.amp.autocast_mode import autocast, get_autocast_dtype, is_autocast_enabled
from gradus.autograd.graph import leaves_of
from gradus.random import fork_rng, get_rng_state, set_rng_state

__all__ = ["CheckpointError", "CheckpointPolicy", "DefaultDeviceType", "check_backward_validity", "checkpoint", "checkpoint_sequential", "detach_variable",
           "get_device_states", "noop_context_fn", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "set_device_states"]


class CheckpointError(RuntimeError):
    """PyTorch's exception for a recomputation that differs from the first call. It is never raised here."""


class CheckpointPolicy(Enum):
    """PyTorch's policies of selective checkpointing, which is not implemented here."""

    MUST_SAVE, PREFER_SAVE, MUST_RECOMPUTE, PREFER_RECOMPUTE, MUST_CPU_OFFLOAD = range(5)


class DefaultDeviceType:
    """Stores a device type, which has no effect here. In PyTorch, ``checkpoint`` saves the random state of the devices of this type if none of its
    arguments is a tensor."""

    _default_device_type = "cuda"

    @staticmethod
    def set_device_type(device="cuda"):
        """Sets the device type, which has no effect."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type():
        """Returns the device type that was set, or "cuda"."""
        return DefaultDeviceType._default_device_type


def noop_context_fn():
    """Returns two context managers that do nothing, for the first call and for the recomputation."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(function, *args, use_reentrant=None, context_fn=noop_context_fn, preserve_rng_state=True, determinism_check="default", debug=False,
               early_stop=True, **kwargs):
    """Returns ``function(*args, **kwargs)``. Stores only the inputs for ``backward``, which calls the function again.

    Gradients flow to the tensors in ``args`` and to other leaves that the function uses, such as parameters. These gradients cannot be differentiated
    again.

    Args:
        function: returns a tensor, or a tuple, list or dictionary of tensors and other values. It must compute the same results in each call.
        *args, **kwargs: the arguments of the function.
        use_reentrant, determinism_check, debug, early_stop: exist for compatibility with PyTorch and have no effect.
        context_fn: returns two context managers, one for the first call and one for the recomputation.
        preserve_rng_state (bool): the recomputation draws the same random numbers as the first call.

    >>> import gradus
    >>> x = gradus.tensor([3.0], requires_grad=True)
    >>> checkpoint(lambda t: t * t, x).backward()
    >>> x.grad.item()
    6.0
    """
    if not gradus.is_grad_enabled():
        return function(*args, **kwargs)
    state = get_rng_state() if preserve_rng_state else None
    casting = autocast("cpu", get_autocast_dtype("cpu"), is_autocast_enabled("cpu"), _C.is_autocast_cache_enabled())
    inputs = [_detached(arg) for arg in args]
    around_first, around_second = context_fn()
    with around_first:
        outputs = function(*inputs, **kwargs)
    tensors = _tensors(outputs)
    # The autograd graph of this first call is only needed to find the call's leaves. It is released afterwards.
    leaves = [leaf for leaf in leaves_of(tensors) if not any(leaf is tensor for tensor in inputs)]

    def call_again(*inputs):
        with fork_rng(enabled=preserve_rng_state), casting, around_second:
            if preserve_rng_state:
                set_rng_state(state)
            return _tensors(function(*inputs, **kwargs))

    results = _Checkpoint.apply(call_again, [tensor.detach() for tensor in tensors], len(args), *args, *leaves) if tensors else ()
    return _with_tensors(outputs, iter(results))


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """Returns the result of calling the functions, or the modules of a ``Sequential``, one after another on ``input``. They are divided into
    ``segments`` segments, and all but the last segment are checkpointed, i.e. recomputed in the backward pass.

    >>> import gradus
    >>> x = gradus.tensor([2.0], requires_grad=True)
    >>> checkpoint_sequential([gradus.square, gradus.square, gradus.square], 2, x).backward()
    >>> x.grad.item()
    1024.0
    """
    functions = list(functions.children() if isinstance(functions, gradus.nn.Sequential) else functions)
    length = len(functions) // segments
    for begin in range(0, length * (segments - 1), length):
        input = checkpoint(_Chain(functions[begin:begin + length]), input, use_reentrant=use_reentrant, **kwargs)
    return _Chain(functions[length * (segments - 1):])(input)


class _Chain:
    """The composition of several functions."""

    def __init__(self, functions):
        self._functions = functions

    def __call__(self, input):
        for function in self._functions:
            input = function(input)
        return input


class _Checkpoint(gradus.autograd.Function):
    """The autograd node of a checkpoint.

    forward returns the values of the first call. backward calls the function again and computes the gradients.
    """

    @staticmethod
    def forward(ctx, call_again, values, count, *args_and_leaves):
        ctx.call_again = call_again
        ctx.count = count
        ctx.others = [None if isinstance(arg, gradus.Tensor) else (arg,) for arg in args_and_leaves]
        ctx.save_for_backward(*(arg for arg in args_and_leaves if isinstance(arg, gradus.Tensor)))
        ctx.mark_non_differentiable(*(value for value in values if not (value.is_floating_point() or value.is_complex())))
        return tuple(values)

    @staticmethod
    @gradus.autograd.function.once_differentiable
    def backward(ctx, *grads):
        saved = iter(ctx.saved_tensors)
        sources = [next(saved) if other is None else other[0] for other in ctx.others]
        sources[:ctx.count] = [_detached(arg) for arg in sources[:ctx.count]]
        with gradus.enable_grad():
            tensors = ctx.call_again(*sources[:ctx.count])
        outputs = [(tensor, grad) for tensor, grad in zip(tensors, grads) if tensor.requires_grad and grad is not None]
        wanted = [source for source in sources if isinstance(source, gradus.Tensor) and source.requires_grad]
        # Hooks of leaves are not called in this inner backward pass. They are called later, when the outer backward pass delivers the gradients to
        # the leaves.
        found = iter(_C._grad_unhooked([tensor for tensor, _ in outputs], wanted, [grad for _, grad in outputs])
                     if outputs and wanted else [None] * len(wanted))
        found_for = [next(found) if isinstance(source, gradus.Tensor) and source.requires_grad else None for source in sources]
        return (None, None, None, *found_for)


def _detached(arg):
    """Returns a detached alias of a tensor, with the same requires_grad. Returns any other value unchanged."""
    return arg.detach().requires_grad_(arg.requires_grad) if isinstance(arg, gradus.Tensor) else arg


def _tensors(outputs):
    """Returns the list of the tensors in `outputs`, the result of the checkpointed function."""
    items = outputs.values() if isinstance(outputs, dict) else outputs if isinstance(outputs, (tuple, list)) else [outputs]
    return [item for item in items if isinstance(item, gradus.Tensor)]


def _with_tensors(outputs, tensors):
    """Returns `outputs` with each tensor replaced by the next tensor of the iterator `tensors`."""
    if isinstance(outputs, dict):
        return {key: _with_tensors(item, tensors) if isinstance(item, gradus.Tensor) else item for key, item in outputs.items()}
    if isinstance(outputs, (tuple, list)):
        items = [next(tensors) if isinstance(item, gradus.Tensor) else item for item in outputs]
        return type(outputs)(*items) if hasattr(outputs, "_fields") else type(outputs)(items)
    return next(tensors) if isinstance(outputs, gradus.Tensor) else outputs


# ---- Helpers of PyTorch's checkpoint, which other packages import -----------------------------------------------------------------


def detach_variable(inputs):
    """Returns the tuple `inputs` with each tensor replaced by a detached leaf. Raises RuntimeError if `inputs` is not a tuple."""
    if not isinstance(inputs, tuple):
        raise RuntimeError("Only tuple of tensors is supported. Got Unsupported input type: ", type(inputs).__name__)
    return tuple(map(_detached, inputs))


def check_backward_validity(inputs):
    """Warns if no tensor in `inputs` requires a gradient."""
    if not any(tensor.requires_grad for tensor in inputs if isinstance(tensor, gradus.Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def get_device_states(*args):
    """Returns ([], []), because tensors are on the cpu and there are no random states of other devices."""
    return [], []


def set_device_states(devices, states, *, device_type=None):
    """Does nothing, because there are no devices other than the cpu."""


@contextlib.contextmanager
def set_checkpoint_early_stop(enable):
    """Returns a context manager that does nothing. (PyTorch can stop the recomputation early; here it always runs to its end.)"""
    yield


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled):
    """Returns a context manager that does nothing, because differences between the first call and the recomputation are not reported."""
    yield


__getattr__ = _stand_ins.of_module(__name__)
