"""Weight normalization by hooks: before every forward call a weight is computed as norm times direction (Salimans and Kingma, 2016).

parametrizations.weight_norm is the newer implementation.
"""
from __future__ import annotations

import warnings

import gradus
from gradus._C import Tensor
from gradus._C import norm_except_dim as norm_except_dim

from ..parameter import Parameter, UninitializedParameter

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


class WeightNorm:
    """A forward pre-hook that computes the attribute `name` of a module from the parameters `name`_g (norms) and `name`_v (directions)."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module) -> Tensor:
        """Returns the weight computed from the current norms and directions."""
        return gradus._weight_norm(getattr(module, f"{self.name}_v"), getattr(module, f"{self.name}_g"), self.dim)

    @staticmethod
    def apply(module, name, dim) -> WeightNorm:
        """Replaces parameter `name` by the parameters `name`_g (norms) and `name`_v (directions). Returns the hook that computes the weight.

        Raises RuntimeError if the parameter has a WeightNorm hook already, ValueError if it is uninitialized.
        """
        warnings.warn("`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.", FutureWarning, stacklevel=3)
        if _find(module, name) is not None:
            raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook, weight = WeightNorm(name, dim), getattr(module, name)
        if isinstance(weight, UninitializedParameter):
            raise ValueError("The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy forward before applying weight "
                             "normalization")
        del module._parameters[name]
        module.register_parameter(f"{name}_g", Parameter(gradus.norm_except_dim(weight, 2, hook.dim).data))
        module.register_parameter(f"{name}_v", Parameter(weight.data))
        hook(module, None)
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module) -> None:
        """Makes the current weight a parameter again. Removes the parameters `name`_g (norms) and `name`_v (directions)."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[f"{self.name}_g"], module._parameters[f"{self.name}_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module, inputs) -> None:
        setattr(module, self.name, self.compute_weight(module))


def _find(module, name):
    """Returns the key of the WeightNorm hook for parameter `name` among the module's forward pre-hooks, or None."""
    return next((key for key, hook in module._forward_pre_hooks.items() if isinstance(hook, WeightNorm) and hook.name == name), None)


def weight_norm(module, name: str = "weight", dim: int | None = 0):
    """Replaces parameter `name` by norms `name`_g and directions `name`_v, both trained (Salimans and Kingma, 2016). Returns the module.

    dim: each index of this dimension has its own norm; None: the whole weight has one norm. This function is deprecated and warns.

    >>> layer = nn.Linear(3, 4)
    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = nn.utils.weight_norm(layer)
    >>> tuple(layer.weight_g.shape), tuple(layer.weight_v.shape)
    ((4, 1), (4, 3))
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module, name: str = "weight"):
    """Makes the current weight `name` a parameter again and returns the module. Raises ValueError if the module has no weight_norm hook for the
    parameter."""
    key = _find(module, name)
    if key is None:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    module._forward_pre_hooks.pop(key).remove(module)
    return module
