"""Optimizers, and schedules of their learning rates.

>>> import gradus
>>> weight = gradus.ones(2, requires_grad=True)
>>> optimizer = gradus.optim.SGD([weight], lr=0.1)
>>> (weight * weight).sum().backward()
>>> optimizer.step()
>>> weight.tolist() == gradus.tensor([0.8, 0.8]).tolist()
True
"""
import importlib
from typing import TYPE_CHECKING

from gradus.optim.adam import Adam
from gradus.optim.adamw import AdamW
from gradus.optim.optimizer import Optimizer
from gradus.optim.sgd import SGD

if TYPE_CHECKING:
    from gradus.optim import lr_scheduler
    from gradus.optim.adadelta import Adadelta
    from gradus.optim.adagrad import Adagrad
    from gradus.optim.adamax import Adamax
    from gradus.optim.nadam import NAdam
    from gradus.optim.radam import RAdam
    from gradus.optim.rmsprop import RMSprop
    from gradus.optim.rprop import Rprop

# Loaded when asked for: a program uses one or two of them.
_LAZY = {"lr_scheduler": None, "Adadelta": "adadelta", "Adagrad": "adagrad", "Adamax": "adamax", "NAdam": "nadam", "RAdam": "radam",
         "RMSprop": "rmsprop", "Rprop": "rprop"}

__all__ = ["Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "SGD", "lr_scheduler"]


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    module = importlib.import_module(f"{__name__}.{_LAZY[name] or name}")
    value = module if _LAZY[name] is None else getattr(module, name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_LAZY})
