"""Implements custom functions, whose backward is written by the user."""

import functools
import inspect
import warnings

from gradus import _C, _stand_ins
from gradus._C import _FunctionCtx as FunctionCtx

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]


class BackwardCFunction(FunctionCtx):
    """The base class of the ctx objects of all custom functions. Each custom function has its own subclass."""


class FunctionMeta(type):
    """The metaclass of Function. For each subclass it creates the class of the ctx objects. It also records whether the subclass defines
    setup_context, i.e. whether its forward takes no ctx. For such a subclass it records whether forward has default values."""

    def __init__(cls, name, bases, namespace):
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls, "__module__": cls.__module__})
        cls._has_setup_context = bool(bases) and cls.setup_context is not Function.setup_context
        cls._binds_defaults = cls._has_setup_context and bool(getattr(cls.forward, "__defaults__", None))
        super().__init__(name, bases, namespace)


class Function(metaclass=FunctionMeta):
    """A custom function. Derive a class from this one, and call it by `apply`.

    `forward(ctx, *args)` computes the outputs, one or several, from arguments of any type. Operators inside `forward` are not recorded. `forward`
    may save tensors by `ctx.save_for_backward`. `backward(ctx, *grad_outputs)` returns a gradient for each argument, or None for an argument without
    gradient. Instead of `forward(ctx, *args)` a class may define `forward(*args)` and `setup_context(ctx, inputs, output)`.

    >>> class Square(gradus.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * grad
    >>> x = gradus.tensor(3.0, requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    tensor(6.)
    """

    generate_vmap_rule = False

    apply = classmethod(_C._apply)

    def __init__(self, *args, **kwargs):
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on the class itself.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError("Autograd functions are called by apply, which is a class method, and their forward is static.")

    @staticmethod
    def forward(*args, **kwargs):
        """Computes and returns the outputs. The user's class must define this method."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Called after a forward that takes no ctx. Saves on ctx the values that backward needs."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """Returns the gradients of the arguments, computed from the gradients of the outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """Returns the tangents of the outputs, computed from the tangents of the arguments (forward mode)."""
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    @staticmethod
    def vmap(info, in_dims, *args):
        """Called once for the whole batch when the function is applied inside vmap. Returns (outputs, out_dims). in_dims[i] is 0 if dimension 0 of
        argument i is the batch dimension, and None if the argument has none. out_dims gives the batch dimension of each output, or None."""
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap staticmethod or set generate_vmap_rule=True.")

    @classmethod
    def _apply_batched(cls, *args):
        from gradus.func.functions import apply_batched

        return apply_batched(cls, args)

    @classmethod
    def _bind_arguments(cls, args, kwargs):
        """Returns the arguments of a call in the order of forward's parameters. If forward takes no ctx, default values are added for arguments
        that are not given. TypeError: forward has keyword-only parameters, or the arguments do not fit its parameters."""
        context = () if cls._has_setup_context else (None,)
        bound = inspect.signature(cls.forward).bind(*context, *args, **kwargs)
        if cls._has_setup_context:
            bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(f"{cls.__name__}.forward() has parameters by keyword only, which have no place among the arguments of backward")
        return bound.args[len(context):]


_C._set_function_class(Function)


class InplaceFunction(Function):
    """A custom function with a flag `inplace`, which is only stored."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace


class _Once(Function):
    @staticmethod
    def forward(ctx, *grads):
        return tuple(grad if grad is None else grad.detach() for grad in grads)

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def once_differentiable(backward):
    """Decorator for a backward whose results cannot be differentiated. Differentiating them raises an error instead of giving wrong gradients."""

    @functools.wraps(backward)
    def wrapper(ctx, *grad_outputs):
        with _C.no_grad():
            grads = backward(ctx, *grad_outputs)
        if not _C.is_grad_enabled() or not any(isinstance(g, _C.Tensor) and g.requires_grad for g in grad_outputs):
            return grads
        grads = grads if isinstance(grads, tuple) else (grads,)
        return _Once.apply(*(g if g is None else g.detach().requires_grad_() for g in grads))

    return wrapper


__getattr__ = _stand_ins.of_module(__name__)
