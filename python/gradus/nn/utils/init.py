"""Construction of modules without initialization of their parameters."""
from __future__ import annotations

import inspect

from ..modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls, *args, **kwargs):
    """Returns module_cls(*args, **kwargs) with uninitialized parameters and buffers. No random numbers are drawn.

    Raises RuntimeError if module_cls is not a Module or does not take the argument `device`.

    >>> nn.utils.skip_init(nn.Linear, 3, 4).weight.shape
    torch.Size([4, 3])
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)
