"""Pruning: parameters are multiplied by masks of zeros and ones before every forward.

A pruned parameter `name` is the parameter `name`_orig and the buffer `name`_mask; the attribute `name` is their product, made by a forward pre-hook, which is the
pruning method itself. A method applied to a pruned parameter prunes what is left of it: the hook is a PruningContainer then.
"""
from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable

import gradus

from .convert_parameters import parameters_to_vector

__all__ = ["BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer", "RandomStructured", "RandomUnstructured",
           "custom_from_mask", "global_unstructured", "identity", "is_pruned", "l1_unstructured", "ln_structured", "random_structured", "random_unstructured",
           "remove"]


class BasePruningMethod(ABC):
    """A method of pruning. A subclass says PRUNING_TYPE, "unstructured", "structured" or "global", and defines compute_mask."""

    _tensor_name: str

    def __call__(self, module, inputs):
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t, default_mask):
        """The mask for importance scores t: default_mask with more zeros."""

    def apply_mask(self, module):
        """Returns the product of mask and original."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, f"{self._tensor_name}_orig")
        return getattr(module, f"{self._tensor_name}_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prunes a parameter of a module by cls(*args, **kwargs), and registers the hook. Returns the hook. importance_scores: the numbers that are compared in place of the values."""
        method = cls._joined(module, name, cls(*args, **kwargs))
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(f"importance_scores should have the same shape as parameter {name} of {module}, got {importance_scores.shape} vs {original.shape}")
        is_first = not isinstance(method, PruningContainer)
        if is_first:
            module.register_parameter(f"{name}_orig", original)
            del module._parameters[name]
            default_mask = gradus.ones_like(original)
        else:
            default_mask = getattr(module, f"{name}_mask").detach().clone(memory_format=gradus.contiguous_format)
        try:
            module.register_buffer(f"{name}_mask", method.compute_mask(importance_scores, default_mask=default_mask))
            method(module, None)
            module.register_forward_pre_hook(method)
        except Exception:
            if is_first:
                module.register_parameter(name, getattr(module, f"{name}_orig"))
                del module._parameters[f"{name}_orig"]
            raise
        return method

    @staticmethod
    def _joined(module, name, method):
        """Returns the method, or the container of it and of the one that prunes the parameter already, whose hook is removed."""
        found = _hooks(module, name)
        if len(found) > 1:
            raise AssertionError(f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer.")
        method._tensor_name = name
        for key in found:
            before = module._forward_pre_hooks.pop(key)
            container = before if isinstance(before, PruningContainer) else PruningContainer(before)
            container.add_pruning_method(method)
            return container
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """Returns the product of a tensor and the mask for it; no module is changed."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}")
        return t * self.compute_mask(importance_scores, default_mask=gradus.ones_like(t) if default_mask is None else default_mask)

    def remove(self, module):
        """Makes the pruned values the parameter again; what was pruned stays 0."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, self._tensor_name):
            delattr(module, self._tensor_name)
        original = module._parameters.pop(f"{self._tensor_name}_orig")
        original.data = weight.data
        del module._buffers[f"{self._tensor_name}_mask"]
        setattr(module, self._tensor_name, original)


def _hooks(module, name):
    """Returns the keys of the pruning hooks of a parameter."""
    return [key for key, hook in module._forward_pre_hooks.items() if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]


class PruningContainer(BasePruningMethod):
    """Several methods, each of which prunes what the ones before have left."""

    def __init__(self, *args):
        self._pruning_methods = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method):
        """TypeError: no BasePruningMethod. ValueError: it prunes another parameter."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer {self}. Found "
                             f"'{method._tensor_name}'")
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t, default_mask):
        """Returns default_mask with the zeros of the last method, which gets the part of t that is left."""
        method = self._pruning_methods[-1]
        left = _part_left(method, t, default_mask)
        mask = default_mask.to(dtype=t.dtype)
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(dtype=mask.dtype)
        return mask


def _part_left(method, t, mask):
    """Returns the index of the part of a tensor that a further pruning method works on: elements or channels that are not pruned yet, or all of it."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE == "global":
        return (slice(None),) * t.dim()
    if method.PRUNING_TYPE != "structured":
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    if not hasattr(method, "dim"):
        raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.')
    dim = method.dim + t.dim() if method.dim < 0 else method.dim
    if dim < 0:
        raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
    return _channels(t, dim, mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0)


def _channels(t, dim, which):
    """Returns the index of some channels along a dimension."""
    index = [slice(None)] * t.dim()
    index[dim] = which
    return tuple(index)


class Identity(BasePruningMethod):
    """Prunes nothing, and makes mask and original."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        """Returns default_mask."""
        return default_mask

    @classmethod
    def apply(cls, module, name):
        """Prunes a parameter of a module, and returns the hook."""
        return super().apply(module, name)


class _Unstructured(BasePruningMethod):
    """Prunes the elements with the least of some scores. amount: how many, or which share of them."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount):
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t, default_mask):
        """Returns default_mask with zeros for the least of t."""
        number = _number_to_prune(self.amount, t.nelement())
        mask = default_mask.clone(memory_format=gradus.contiguous_format)
        if number != 0:
            mask.view(-1)[self._pruned(t, number)] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes elements at random."""

    def _pruned(self, t, number):
        return gradus.topk(gradus.rand_like(t).view(-1), k=number).indices

    @classmethod
    def apply(cls, module, name, amount):
        """Prunes a parameter of a module, and returns the hook."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the elements nearest to 0."""

    def _pruned(self, t, number):
        return gradus.topk(gradus.abs(t).view(-1), k=number, largest=False).indices

    @classmethod
    def apply(cls, module, name, amount, importance_scores=None):
        """Prunes a parameter of a module, and returns the hook."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(BasePruningMethod):
    """Prunes channels along a dimension. amount: how many, or which share of them."""

    PRUNING_TYPE = "structured"

    def compute_mask(self, t, default_mask):
        """Returns default_mask with zeros for the least channels of t."""
        if t.dim() <= 1:
            raise ValueError(f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {t.shape} with {t.dim()} dims")
        if self.dim >= t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        number = _number_to_prune(self.amount, t.shape[self.dim])
        kept = self._kept(t, number)
        if number == 0:
            return default_mask
        mask = gradus.zeros_like(t)
        mask[_channels(t, self.dim, kept)] = 1
        mask *= default_mask.to(dtype=mask.dtype)
        return mask


class RandomStructured(_Structured):
    """Prunes channels at random."""

    def __init__(self, amount, dim=-1):
        _validate_pruning_amount_init(amount)
        self.amount, self.dim = amount, dim

    def _kept(self, t, number):
        if number == 0:
            return None
        scores = gradus.rand(t.shape[self.dim])
        return scores > gradus.kthvalue(scores, k=number).values

    @classmethod
    def apply(cls, module, name, amount, dim=-1):
        """Prunes a parameter of a module, and returns the hook."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the channels of least n-norm."""

    def __init__(self, amount, n, dim=-1):
        _validate_pruning_amount_init(amount)
        self.amount, self.n, self.dim = amount, n, dim

    def _kept(self, t, number):
        norm = gradus.norm(t, p=self.n, dim=[d for d in range(t.dim()) if d != self.dim % t.dim()])
        return gradus.topk(norm, k=t.shape[self.dim] - number, largest=True).indices

    @classmethod
    def apply(cls, module, name, amount, n, dim, importance_scores=None):
        """Prunes a parameter of a module, and returns the hook."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes by a mask that is given."""

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        """Returns the product of default_mask and the given one."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}")
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module, name, mask):
        """Prunes a parameter of a module, and returns the hook."""
        return super().apply(module, name, mask=mask)


# ---- As functions, which return the module ------------------------------------------------------------------------------------


def identity(module, name):
    """Gives a parameter a mask of ones."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Prunes elements of a parameter at random: so many, or that share of them.

    >>> layer = random_unstructured(nn.Linear(3, 4), "weight", amount=5)
    >>> int((layer.weight == 0).sum()), list(layer.state_dict())
    (5, ['bias', 'weight_orig', 'weight_mask'])
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Prunes the elements of a parameter that are nearest to 0, or those of least importance_scores."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Prunes channels of a parameter along a dimension at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Prunes the channels of a parameter along a dimension whose n-norm is least."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prunes several parameters, pairs of module and name, as if they were one, by an unstructured method with the arguments kwargs. importance_scores: {pair: scores}."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    all_scores = parameters_to_vector([scores.get((module, name), getattr(module, name)) for module, name in parameters])
    masks = [getattr(module, f"{name}_mask", gradus.ones_like(getattr(module, name))) for module, name in parameters]
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of type {method.PRUNING_TYPE}')
    container.add_pruning_method(method)
    mask, start = container.compute_mask(all_scores, parameters_to_vector(masks)), 0
    for module, name in parameters:
        parameter = getattr(module, name)
        custom_from_mask(module, name, mask=mask[start:start + parameter.numel()].view_as(parameter))
        start += parameter.numel()


def custom_from_mask(module, name, mask):
    """Prunes a parameter where a mask is 0."""
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module, name):
    """Makes a pruned parameter an ordinary one of its present values. ValueError: it is not pruned."""
    for key in _hooks(module, name)[:1]:
        module._forward_pre_hooks.pop(key).remove(module)
        return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module):
    """True if any parameter of the module or below it is pruned."""
    return any(isinstance(hook, BasePruningMethod) for below in module.modules() for hook in below._forward_pre_hooks.values())


# ---- Amounts ------------------------------------------------------------------------------------------------------------------


def _validate_pruning_amount_init(amount):
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (not isinstance(amount, numbers.Integral) and float(amount) > 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _number_to_prune(amount, size):
    """Returns the number of elements to prune; a float is a share of `size`. ValueError: there are fewer elements."""
    if not isinstance(amount, numbers.Integral):
        return round(amount * size)
    if amount > size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
    return amount
