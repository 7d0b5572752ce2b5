"""Containers of modules: Sequential, ModuleList and ModuleDict. Containers of parameters are in parameter_container.py."""
from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import chain

from .module import Module, _addindent

__all__ = ["Container", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]


def position(index, size):
    """Returns a list index, which may be negative, as a number in [0, size). Raises TypeError if `index` is not an integer, IndexError if it is out
    of range."""
    index = operator.index(index)
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of range")
    return index % size


class Container(Module):
    """A Module whose submodules are given as keyword arguments. Deprecated, because Module.add_module registers submodules too."""

    def __init__(self, **kwargs):
        warnings.warn("`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. Subclass that instead.",
                      FutureWarning, stacklevel=2)
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Numbered(Module):
    """Base of Sequential and ModuleList, whose submodules are ordered and have the names "0", "1", ..."""

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def _key(self, index):
        """Returns the name of the submodule at an index."""
        return list(self._modules)[position(index, len(self))]

    def __setitem__(self, idx, module):
        setattr(self, self._key(idx), module)

    def __delitem__(self, idx):
        for name in list(self._modules)[idx] if isinstance(idx, slice) else [self._key(idx)]:
            delattr(self, name)
        self._modules = OrderedDict((str(i), module) for i, module in enumerate(self._modules.values()))

    def append(self, module):
        """Appends a module and returns self."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key):
        """Removes the module at index `key`, or the modules of the slice `key`, and returns what was removed."""
        module = self[key]
        del self[key]
        return module

    def _insert(self, index, module):
        """Inserts a module before index `index` and renames the modules after it."""
        for i in range(len(self), index, -1):
            self._modules[str(i)] = self._modules[str(i - 1)]
        self._modules[str(index)] = module


class Sequential(_Numbered):
    """Calls its modules in order, each with the previous module's result. The modules are the arguments, or the values of one OrderedDict from names
    to modules.

    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> tuple(net(gradus.randn(3, 4)).shape)
    (3, 2)
    >>> net[1], len(net[:2])
    (ReLU(), 2)
    """

    def __init__(self, *args):
        super().__init__()
        named = len(args) == 1 and isinstance(args[0], OrderedDict)
        for name, module in args[0].items() if named else enumerate(args):
            self.add_module(name if named else str(name), module)

    def forward(self, input):
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, idx: int | slice) -> Module:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._key(idx)]

    def insert(self, index, module):
        """Inserts a module before index `index` and returns self. Raises AssertionError if `module` is not a Module, IndexError if `index` is out of
        range."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        size = len(self)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        self._insert(index + size if index < 0 else index, module)
        return self

    def extend(self, sequential):
        """Appends all modules of an iterable and returns self."""
        for module in sequential:
            self.append(module)
        return self

    def __add__(self, other):
        return Sequential(*self).__iadd__(other)

    def __iadd__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return self.extend(list(other))

    def _check_factor(self, other):
        """Raises TypeError or ValueError unless `other`, the number of repetitions, is a positive integer."""
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")

    def __mul__(self, other):
        self._check_factor(other)
        return Sequential(*(list(self) * other))

    __rmul__ = __mul__

    def __imul__(self, other):
        self._check_factor(other)
        return self.extend(list(self) * (other - 1))


class ModuleList(_Numbered):
    """A list of submodules. It has no forward.

    >>> layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
    >>> layers
    ModuleList(
      (0-2): 3 x Linear(in_features=4, out_features=4, bias=True)
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[self._key(idx)]

    def insert(self, index, module):
        """Inserts a module before index `index`."""
        self._insert(index, module)

    def extend(self, modules):
        """Appends all modules of an iterable and returns self. Raises TypeError if `modules` is not iterable."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        return ModuleList(chain(self, other))

    def __repr__(self):
        runs = []  # [first index, last index, repr] of adjacent modules with equal repr
        for index, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][2] == text:
                runs[-1][1] = index
            else:
                runs.append([index, index, text])
        lines = [f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}" for first, last, text in runs]
        return f"{self._get_name()}(" + "".join("\n  " + _addindent(line, 2) for line in lines) + ("\n)" if lines else ")")


def pairs(kind, items):
    """Yields the items of an iterable of pairs. Raises TypeError or ValueError if an item is not a pair; `kind` is a class name for the error
    text."""
    for i, item in enumerate(items):
        if not isinstance(item, Iterable):
            raise TypeError(f"{kind} update sequence element #{i} should be Iterable; is {type(item).__name__}")
        if len(item) != 2:
            raise ValueError(f"{kind} update sequence element #{i} has length {len(item)}; 2 is required")
        yield item


class ModuleDict(Module):
    """A dictionary of submodules in insertion order. It has no forward.

    >>> heads = nn.ModuleDict({"class": nn.Linear(4, 3), "box": nn.Linear(4, 4)})
    >>> list(heads), "box" in heads
    (['class', 'box'], True)
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        """Removes all modules."""
        self._modules.clear()

    def pop(self, key):
        """Removes the module named `key` and returns it."""
        return self._modules.pop(key)

    def keys(self):
        """Returns the names of the modules."""
        return self._modules.keys()

    def items(self):
        """Returns the (name, module) pairs."""
        return self._modules.items()

    def values(self):
        """Returns the modules."""
        return self._modules.values()

    def update(self, modules):
        """Adds the modules of a mapping, a ModuleDict or an iterable of (name, module) pairs. Modules of the same names are replaced.

        Raises TypeError if `modules` is not iterable.
        """
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleDict.update should be called with an iterable of key/value pairs, but got {type(modules).__name__}")
        for name, module in modules.items() if isinstance(modules, (Mapping, ModuleDict)) else pairs("ModuleDict", modules):
            self[name] = module


from .parameter_container import ParameterDict, ParameterList  # noqa: E402  imported last: parameter_container imports from this module
