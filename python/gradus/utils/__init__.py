"""Utilities: hook handles, data loading, checkpointing, DLPack, benchmarks and TensorBoard logs."""
import importlib

from gradus import _stand_ins

__all__ = ["benchmark", "checkpoint", "data", "deterministic", "dlpack", "hooks", "model_zoo", "set_module", "swap_tensors", "tensorboard"]


def set_module(obj, mod):
    """Sets obj.__module__ to the module name `mod`. Raises TypeError if `mod` is not a string."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def swap_tensors(t1, t2):
    """Exchanges the values, classes and attributes of two tensors. All references to `t1` then see what `t2` contained, and vice versa.

    Raises RuntimeError if a tensor is not a leaf.

    >>> import gradus
    >>> a, b = gradus.zeros(1), gradus.nn.Parameter(gradus.ones(2))
    >>> swap_tensors(a, b)
    >>> type(a).__name__, b
    ('Parameter', tensor([0.]))
    """
    if t1.grad_fn is not None or t2.grad_fn is not None:
        raise RuntimeError("swap_tensors: tensors with a history cannot be swapped")
    first, second = _parts(t1), _parts(t2)
    _become(t1, *second)
    _become(t2, *first)


def _parts(t):
    """Returns what swap_tensors exchanges: the data, requires_grad, grad, class and attributes of the tensor `t`."""
    return t.data, t.requires_grad, t.grad, type(t), dict(getattr(t, "__dict__", {}))


def _become(t, data, requires_grad, grad, kind, attributes):
    """Gives the tensor `t` the data, class and attributes of another tensor."""
    t.grad = None
    t.requires_grad_(False)
    t.data = data
    t.requires_grad_(requires_grad)
    t.grad = grad
    if type(t) is not kind:
        t.__class__ = kind
    if attributes or getattr(t, "__dict__", {}):
        t.__dict__.clear()
        t.__dict__.update(attributes)


_stand_in = _stand_ins.of_module(__name__)


def __getattr__(name):
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    return _stand_in(name)


def __dir__():
    return sorted({*globals(), *__all__})
