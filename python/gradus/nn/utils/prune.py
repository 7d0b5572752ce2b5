"""Pruning: before every forward call, parameters are multiplied by masks of zeros and ones.

Pruning replaces a parameter `name` by the parameter `name`_orig and the buffer `name`_mask. A forward pre-hook, the pruning method itself, sets the
attribute `name` to the product of the two. If a pruned parameter is pruned again, a PruningContainer of both pruning methods replaces the hook.
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
    """Base class of pruning methods. A subclass defines compute_mask and sets PRUNING_TYPE.

    PRUNING_TYPE: "unstructured" if single elements are pruned, "structured" if whole channels are pruned, "global" if compute_mask receives all
    elements. With the other two types compute_mask receives only elements or channels that are not pruned yet.
    """

    _tensor_name: str

    def __call__(self, module, inputs):
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t, default_mask):
        """Returns `default_mask` with more zeros, chosen by the importance scores `t`. Both tensors have the parameter's shape."""

    def apply_mask(self, module):
        """Returns the pruned value of the parameter `name`: the product of the buffer `name`_mask and the parameter `name`_orig."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, f"{self._tensor_name}_orig")
        return getattr(module, f"{self._tensor_name}_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prunes parameter `name` of `module` by the method cls(*args, **kwargs). Registers the method, combined with
        earlier ones, as a forward pre-hook and returns it.

        importance_scores: a tensor of the parameter's shape. Elements are chosen by these scores instead of the parameter's values. Raises
        AssertionError if importance_scores has another shape.
        """
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
        """Returns `method`. If the parameter is pruned already, removes the old hook and returns a container of that hook and `method`."""
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
        """Returns the product of the tensor `t` and the mask computed from importance_scores (from `t` when None). Changes no module."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}")
        return t * self.compute_mask(importance_scores, default_mask=gradus.ones_like(t) if default_mask is None else default_mask)

    def remove(self, module):
        """Makes the pruned parameter an ordinary parameter with its current values; pruned elements stay 0."""
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
    """Returns the keys of the hooks in module._forward_pre_hooks that prune parameter `name`."""
    return [key for key, hook in module._forward_pre_hooks.items() if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]


class PruningContainer(BasePruningMethod):
    """A sequence of pruning methods. Each prunes elements that the methods before it did not prune."""

    def __init__(self, *args):
        self._pruning_methods = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method):
        """Appends a pruning method. Raises TypeError if `method` is not a BasePruningMethod, ValueError if `method` prunes a
        parameter of another name than this container."""
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
        """Returns `default_mask` with the additional zeros of the last pruning method. That method chooses among the elements not pruned yet."""
        method = self._pruning_methods[-1]
        left = _part_left(method, t, default_mask)
        mask = default_mask.to(dtype=t.dtype)
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(dtype=mask.dtype)
        return mask


def _part_left(method, t, mask):
    """Returns an index that selects the elements of `t` among which `method` may choose.

    PRUNING_TYPE "unstructured": the elements not pruned yet. "structured": the channels not completely pruned yet. "global": all elements.
    """
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
    """Returns an index for `t` that selects the channels `which`, a mask or indices, along dimension `dim`."""
    index = [slice(None)] * t.dim()
    index[dim] = which
    return tuple(index)


class Identity(BasePruningMethod):
    """Prunes nothing, but replaces the parameter `name` by the parameter `name`_orig and the buffer `name`_mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        """Returns `default_mask` unchanged."""
        return default_mask

    @classmethod
    def apply(cls, module, name):
        """Registers this pruning method as a forward pre-hook for parameter `name` of `module` and returns the hook."""
        return super().apply(module, name)


class _Unstructured(BasePruningMethod):
    """Prunes single elements. amount: a number of elements (int), or the fraction of elements (float in [0, 1])."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount):
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t, default_mask):
        """Returns `default_mask` with zeros for the elements that `_pruned` selects."""
        number = _number_to_prune(self.amount, t.nelement())
        mask = default_mask.clone(memory_format=gradus.contiguous_format)
        if number != 0:
            mask.view(-1)[self._pruned(t, number)] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes randomly chosen elements."""

    def _pruned(self, t, number):
        """Returns the indices of the `number` elements to prune in the flattened tensor `t`."""
        return gradus.topk(gradus.rand_like(t).view(-1), k=number).indices

    @classmethod
    def apply(cls, module, name, amount):
        """Prunes parameter `name` of `module` and returns the pruning method, which is registered as a forward pre-hook."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the elements with the smallest absolute values."""

    def _pruned(self, t, number):
        """Returns the indices of the `number` elements to prune in the flattened tensor `t`."""
        return gradus.topk(gradus.abs(t).view(-1), k=number, largest=False).indices

    @classmethod
    def apply(cls, module, name, amount, importance_scores=None):
        """Prunes parameter `name` of `module` and returns the pruning method, which is registered as a forward pre-hook."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(BasePruningMethod):
    """Prunes whole channels along dimension `dim`. amount: a number of channels (int), or the fraction of channels (float in [0, 1])."""

    PRUNING_TYPE = "structured"

    def compute_mask(self, t, default_mask):
        """Returns `default_mask` with zeros for the channels that `_kept` does not select.

        Raises ValueError if `t` has less than two dimensions, IndexError if `dim` is out of range.
        """
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
    """Prunes randomly chosen channels."""

    def __init__(self, amount, dim=-1):
        _validate_pruning_amount_init(amount)
        self.amount, self.dim = amount, dim

    def _kept(self, t, number):
        """Returns a mask of the channels that stay when `number` channels are pruned; None if `number` is 0."""
        if number == 0:
            return None
        scores = gradus.rand(t.shape[self.dim])
        return scores > gradus.kthvalue(scores, k=number).values

    @classmethod
    def apply(cls, module, name, amount, dim=-1):
        """Prunes parameter `name` of `module` and returns the pruning method, which is registered as a forward pre-hook."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the channels with the smallest n-norms."""

    def __init__(self, amount, n, dim=-1):
        _validate_pruning_amount_init(amount)
        self.amount, self.n, self.dim = amount, n, dim

    def _kept(self, t, number):
        """Returns the indices of the channels that stay when `number` channels are pruned: those with the largest n-norms."""
        norm = gradus.norm(t, p=self.n, dim=[d for d in range(t.dim()) if d != self.dim % t.dim()])
        return gradus.topk(norm, k=t.shape[self.dim] - number, largest=True).indices

    @classmethod
    def apply(cls, module, name, amount, n, dim, importance_scores=None):
        """Prunes parameter `name` of `module` and returns the pruning method, which is registered as a forward pre-hook."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes the elements at which a given mask is 0."""

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        """Returns the product of `default_mask` and the given mask."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}")
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module, name, mask):
        """Prunes parameter `name` of `module` and returns the pruning method, which is registered as a forward pre-hook."""
        return super().apply(module, name, mask=mask)


# ---- Pruning functions --------------------------------------------------------------------------------------------------------


def identity(module, name):
    """Replaces parameter `name` by the parameter `name`_orig and the buffer `name`_mask, which is all ones. Returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Prunes randomly chosen elements of parameter `name`. Returns the module.

    amount: the number (int) or the fraction (float in [0, 1]) of the elements to prune.

    >>> layer = random_unstructured(nn.Linear(3, 4), "weight", amount=5)
    >>> int((layer.weight == 0).sum()), list(layer.state_dict())
    (5, ['bias', 'weight_orig', 'weight_mask'])
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Prunes the elements of parameter `name` with the smallest absolute values, or the smallest importance_scores. Returns the module."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Prunes randomly chosen channels along `dim` of parameter `name`. Returns the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Prunes the channels along `dim` of parameter `name` with the smallest n-norms. Returns the module."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prunes several parameters, given as pairs (module, name), as if they were concatenated to one vector.

    pruning_method: a class with PRUNING_TYPE "unstructured", which is constructed with kwargs. importance_scores: a dictionary that maps pairs
    (module, name) to scores. Raises TypeError if an argument has the wrong type.
    """
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
    """Prunes parameter `name` where `mask` is 0. Returns the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module, name):
    """Makes the pruned parameter `name` an ordinary parameter with its current values. Raises ValueError if it is not pruned."""
    for key in _hooks(module, name)[:1]:
        module._forward_pre_hooks.pop(key).remove(module)
        return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module):
    """Returns True if a parameter of the module or of a submodule is pruned."""
    return any(isinstance(hook, BasePruningMethod) for below in module.modules() for hook in below._forward_pre_hooks.values())


# ---- Amounts of pruning -------------------------------------------------------------------------------------------------------


def _validate_pruning_amount_init(amount):
    """Raises TypeError if `amount` is not a number, ValueError if it is negative, or if it is a float above 1."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (not isinstance(amount, numbers.Integral) and float(amount) > 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _number_to_prune(amount, size):
    """Returns how many of `size` elements to prune. A float `amount` is a fraction of `size`. Raises ValueError if an int `amount` exceeds `size`."""
    if not isinstance(amount, numbers.Integral):
        return round(amount * size)
    if amount > size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
    return amount
