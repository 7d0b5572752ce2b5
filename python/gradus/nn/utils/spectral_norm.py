"""Spectral normalization by hooks: a weight is divided by its largest singular value, which power iterations estimate (Miyato et al., 2018).

parametrizations.spectral_norm is the newer implementation. The estimates u and v of the singular vectors are buffers, updated in place so that
replicas of a module share them. The weight is computed from copies of u and v. Otherwise the next forward call would change the vectors that
autograd saved.
"""
from __future__ import annotations

import gradus
from gradus._C import Tensor

from .. import functional as F
from ..parameter import Parameter, UninitializedParameter

__all__ = ["SpectralNorm", "SpectralNormLoadStateDictPreHook", "SpectralNormStateDictHook", "remove_spectral_norm", "spectral_norm"]

_TRANSPOSED = ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")


def output_dim(module):
    """Returns the dimension of a layer's weight that corresponds to its outputs: 1 for transposed convolutions, 0 for other layers."""
    return int(any(isinstance(module, getattr(gradus.nn, name)) for name in _TRANSPOSED if hasattr(gradus.nn, name)))


def normalized_noise(like, size, eps):
    """Returns a random vector of `size` normal numbers, scaled to length 1, with the dtype and device of the tensor `like`."""
    return F.normalize(like.new_empty(size).normal_(0, 1), dim=0, eps=eps)


class SpectralNorm:
    """A forward pre-hook that computes the attribute `name` of a module from the parameter `name`_orig and the buffers `name`_u and `name`_v."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """Returns the weight as a matrix with one row for each output."""
        return weight.movedim(self.dim, 0).reshape(weight.size(self.dim), -1)

    def compute_weight(self, module, do_power_iteration: bool) -> Tensor:
        """Returns the weight divided by its largest singular value. do_power_iteration: first updates u and v, the estimates of the singular
        vectors."""
        weight, u, v = (getattr(module, self.name + end) for end in ("_orig", "_u", "_v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with gradus.no_grad():
                for _ in range(self.n_power_iterations):
                    F.normalize(gradus.mv(matrix.t(), u), dim=0, eps=self.eps, out=v)
                    F.normalize(gradus.mv(matrix, v), dim=0, eps=self.eps, out=u)
                u, v = u.clone(), v.clone()
        return weight / gradus.dot(u, gradus.mv(matrix, v))

    def remove(self, module) -> None:
        """Makes the current weight a parameter again. Removes the parameter `name`_orig and the buffers `name`_u and `name`_v."""
        with gradus.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for end in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + end)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module, inputs) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    def _solve_v_and_rescale(self, weight_mat, u, target_sigma):
        """Returns the vector v with u^T weight_mat v = target_sigma. Used for state dicts of version 0 (of old PyTorch), which lack v."""
        transposed = weight_mat.t()
        v = (transposed.mm(weight_mat).pinverse() @ (transposed @ u.unsqueeze(1))).squeeze(1)
        return v.mul_(target_sigma / gradus.dot(u, gradus.mv(weight_mat, v)))

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps) -> SpectralNorm:
        """Replaces parameter `name` by the parameter `name`_orig and the buffers `name`_u and `name`_v, estimates of the singular vectors. Returns
        the hook that computes the weight.

        Raises RuntimeError if the parameter has a SpectralNorm hook already, ValueError if it is None or uninitialized.
        """
        if _find(module._forward_pre_hooks, SpectralNorm, name) is not None:
            raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook, weight = SpectralNorm(name, n_power_iterations, dim, eps), module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if isinstance(weight, UninitializedParameter):
            raise ValueError("The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy forward before applying "
                             "spectral normalization")
        with gradus.no_grad():
            rows, columns = hook.reshape_weight_to_matrix(weight).shape
            u, v = normalized_noise(weight, rows, eps), normalized_noise(weight, columns, eps)
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        setattr(module, name, weight.data)  # so that the attribute can be read before the first forward call
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook


class SpectralNormLoadStateDictPreHook:
    """A hook called before loading. It converts a state_dict of version 0 to version 1. Version 0, of old PyTorch, contains the computed weight but
    not v."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    @property
    def name(self):
        return self.fn.name

    def __call__(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs) -> None:
        version = local_metadata.get("spectral_norm", {}).get(f"{self.name}.version", None)
        if version is not None and version >= 1:
            return
        weight, orig, u, v = (prefix + self.name + end for end in ("", "_orig", "_u", "_v"))
        if version is None and all(key in state_dict for key in (orig, u, v)) and weight not in state_dict:
            return
        missing = [key for key in (orig, weight, u) if key not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else [])
            return
        with gradus.no_grad():
            sigma = (state_dict[orig] / state_dict.pop(weight)).mean()
            state_dict[v] = self.fn._solve_v_and_rescale(self.fn.reshape_weight_to_matrix(state_dict[orig]), state_dict[u], sigma)


class SpectralNormStateDictHook:
    """A hook called after saving. It writes the version of the format to the metadata of the state_dict, so that loading can convert old formats."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    @property
    def name(self):
        return self.fn.name

    def __call__(self, module, state_dict, prefix, local_metadata) -> None:
        versions, key = local_metadata.setdefault("spectral_norm", {}), f"{self.name}.version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


def _find(hooks, kind, name):
    """Returns the key of the hook of class `kind` for parameter `name` among `hooks`, or None."""
    return next((key for key, hook in hooks.items() if isinstance(hook, kind) and hook.name == name), None)


def spectral_norm(module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None):
    """Divides parameter `name` by its largest singular value before every forward call (Miyato et al., 2018). Returns the module.

    n_power_iterations: the number of power iterations in each forward call in training mode. dim: the dimension of the layer's outputs; when None it
    is 1 for transposed convolutions and 0 for other layers.

    >>> nn.utils.spectral_norm(nn.Linear(3, 4)).weight_u.shape
    torch.Size([4])
    """
    SpectralNorm.apply(module, name, n_power_iterations, output_dim(module) if dim is None else dim, eps)
    return module


def remove_spectral_norm(module, name: str = "weight"):
    """Makes the current weight `name` a parameter again and returns the module. Raises ValueError if the module has no spectral_norm hook for the
    parameter."""
    key = _find(module._forward_pre_hooks, SpectralNorm, name)
    if key is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    module._forward_pre_hooks.pop(key).remove(module)
    for hooks, kind in ((module._state_dict_hooks, SpectralNormStateDictHook), (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook)):
        key = _find(hooks, kind, name)
        if key is not None:
            del hooks[key]
    return module
