"""Splitting of tensors in nested tuples, lists and dicts over devices, and concatenation of the results. The only device is the cpu."""
from __future__ import annotations

import gradus
from gradus._C import Tensor

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _on_cpu(device):
    """Returns "cpu". Raises NotImplementedError if the device is another one."""
    if gradus.device(device).type != "cpu":
        raise NotImplementedError(f"scatter and gather: there is no device {device}")
    return "cpu"


def scatter(inputs, target_gpus, dim=0):
    """Returns a list with a copy of the nested value `inputs` for each device. Each tensor in a copy is replaced by the device's chunk along `dim`.

    Raises NotImplementedError for a device other than the cpu.
    """
    devices = [_on_cpu(device) for device in target_gpus]

    def cut(value):
        if isinstance(value, Tensor):
            return value.chunk(len(devices), dim)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return [type(value)(*part) for part in zip(*map(cut, value))]
        if isinstance(value, (tuple, list)) and value:
            return [type(value)(part) for part in zip(*map(cut, value))]
        if isinstance(value, dict) and value:
            return [type(value)(part) for part in zip(*map(cut, value.items()))]
        return [value for _ in devices]

    return cut(inputs)


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    """Returns (scatter(inputs), scatter(kwargs)) as tuples. The shorter tuple is padded with empty tuples or dicts to equal length."""
    positional = list(scatter(inputs, target_gpus, dim)) if inputs else []
    keywords = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    positional += [()] * (len(keywords) - len(positional))
    keywords += [{}] * (len(positional) - len(keywords))
    return tuple(positional), tuple(keywords)


def gather(outputs, target_device, dim=0):
    """Returns one nested value for the list `outputs` of nested values: tensors at the same position are concatenated along `dim`."""
    _on_cpu(target_device)

    def join(values):
        first = values[0]
        if isinstance(first, Tensor):
            return gradus.cat([value.view(1) if value.dim() == 0 else value for value in values], dim)
        if first is None:
            return None
        if isinstance(first, dict):
            if any(len(value) != len(first) for value in values):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)((key, join([value[key] for value in values])) for key in first)
        made = map(join, zip(*values))
        return type(first)(*made) if hasattr(first, "_fields") else type(first)(made)

    return join(outputs)
