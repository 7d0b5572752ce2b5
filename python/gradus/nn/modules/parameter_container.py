"""Containers of parameters: ParameterList and ParameterDict. Tensors become parameters; other values are stored unchanged."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from gradus._C import Tensor

from ..parameter import Parameter
from .container import pairs, position
from .module import Module

__all__ = ["ParameterList", "ParameterDict"]


def _as_parameter(value):
    """Returns a tensor as a Parameter, and any other value unchanged."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _described(items, name_of_type):
    """Returns the extra_repr of ParameterList and ParameterDict, with one line per value. name_of_type: a function that names a tensor's type."""
    lines = []
    for key, value in items:
        if isinstance(value, Tensor):
            kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
            device = "" if value.device.type in ("cpu", "meta") else f" ({value.device})"
            text = f"{kind} containing: [{name_of_type(value)} of size {'x'.join(map(str, value.size()))}{device}]"
        else:
            text = f"Object of type: {type(value).__name__}"
        lines.append(f"  ({key}): {text}")
    return "\n".join(lines)


class ParameterList(Module):
    """A list of parameters that are registered with the module. Tensors are converted to Parameter.

    >>> weights = nn.ParameterList([gradus.zeros(2), gradus.zeros(3)])
    >>> [name for name, _ in weights.named_parameters()]
    ['0', '1']
    """

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return type(self)([self[i] for i in range(len(self))[idx]])
        return getattr(self, str(position(idx, len(self))))

    def __setitem__(self, idx, param):
        setattr(self, str(position(idx, len(self))), _as_parameter(param))

    def __len__(self):
        return self._size

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __iadd__(self, parameters):
        return self.extend(parameters)

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value):
        """Appends a value and returns self."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values):
        """Appends all values of an iterable and returns self. Raises TypeError if `values` is not an iterable, or is a tensor."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self):
        return _described(enumerate(self), lambda tensor: tensor.dtype)

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters in insertion order, registered with the module. Tensors are converted to Parameter.

    >>> weights = nn.ParameterDict({"left": gradus.zeros(2), "right": gradus.zeros(3)})
    >>> list(weights.keys()), "left" in weights
    (['left', 'right'], True)
    """

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key):
        return getattr(self, _checked(key))

    def __setitem__(self, key, value):
        setattr(self, _checked(key), _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, _checked(key))

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(self._keys)

    def __contains__(self, key):
        return key in self._keys

    def copy(self):
        """Returns a new ParameterDict with the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key, default=None):
        """Returns the value of `key`. If `key` has no value, first sets it to `default`."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self):
        """Removes all values."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key):
        """Removes the value of `key` and returns it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Removes the last value and returns (key, value). Raises KeyError if there is none."""
        if not self._keys:
            raise KeyError("popitem(): dictionary is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key, default=None):
        """Returns the value of `key`, or `default` if there is none."""
        return self[key] if key in self else default

    def fromkeys(self, keys, default=None):
        """Returns a new ParameterDict in which every key of `keys` has the value `default`."""
        return ParameterDict((key, default) for key in keys)

    def keys(self):
        """Returns the keys, in insertion order."""
        return self._keys.keys()

    def items(self):
        """Returns an iterator over (key, value) pairs."""
        return ((key, self[key]) for key in self._keys)

    def values(self):
        """Returns an iterator over the values."""
        return (self[key] for key in self._keys)

    def update(self, parameters):
        """Adds the values of a mapping, a ParameterDict or an iterable of (key, value) pairs.

        A mapping other than an OrderedDict is first sorted by key. Raises TypeError if `parameters` is not iterable.
        """
        if not isinstance(parameters, Iterable):
            raise TypeError(f"ParametersDict.update should be called with an iterable of key/value pairs, but got {type(parameters).__name__}")
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            items = list(parameters.items())
        elif isinstance(parameters, Mapping):
            items = sorted(parameters.items(), key=lambda item: item[0])
        else:
            items = pairs("ParameterDict", parameters)
        for key, value in items:
            self[key] = value

    def __or__(self, other):
        combined = self.copy()
        combined.update(other)
        return combined

    def __ror__(self, other):
        combined = other.copy()
        combined.update(self)
        return combined

    def __ior__(self, other):
        self.update(other)
        return self

    def extra_repr(self):
        return _described(self.items(), lambda tensor: tensor.type())

    def __call__(self, input):
        raise RuntimeError("ParameterDict should not be called.")


def _checked(key):
    """Returns `key`. Raises TypeError if it is not a string."""
    if not isinstance(key, str):
        raise TypeError(f"Index given to ParameterDict cannot be used as a key as it is not a string (type is '{type(key).__name__}'). "
                        "Open an issue on github if you need non-string keys.")
    return key
