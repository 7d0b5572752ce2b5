"""Several modules, each called with its inputs."""
from __future__ import annotations

__all__ = ["parallel_apply"]


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """Returns the results of all modules, each called with its inputs, one after another; every operator uses all threads.

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
