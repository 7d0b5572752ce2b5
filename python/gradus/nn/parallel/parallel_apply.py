"""The function parallel_apply, which calls several modules, each with its own inputs."""
from __future__ import annotations

__all__ = ["parallel_apply"]


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """Calls each module with its element of `inputs`, one module after another, and returns the list of results.

    modules and inputs: lists of the same length. kwargs_tup: a dictionary of keyword arguments for each module, or None. Raises AssertionError if the
    lengths differ.

    >>> nn.parallel.parallel_apply([nn.ReLU(), nn.Tanh()], [gradus.tensor(-1.0), gradus.tensor(0.0)])
    [tensor(0.), tensor(0.)]
    """
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    kwargs_tup = [{}] * len(modules) if kwargs_tup is None else kwargs_tup
    for name, given in (("kwargs_tup", kwargs_tup), ("devices", modules if devices is None else devices)):
        if len(given) != len(modules):
            raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of {name} {len(given)}")
    return [module(*(given if isinstance(given, (list, tuple)) else (given,)), **kwargs) for module, given, kwargs in zip(modules, inputs, kwargs_tup)]
