"""Optimizers and learning rate schedules.

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
from gradus.optim.optimizer import Optimizer, swap_in_optimizer_params_and_state
from gradus.optim.sgd import SGD

if TYPE_CHECKING:
    from gradus.optim import lr_scheduler, swa_utils
    from gradus.optim._adafactor import Adafactor
    from gradus.optim._muon import Muon
    from gradus.optim.adadelta import Adadelta
    from gradus.optim.adagrad import Adagrad
    from gradus.optim.adamax import Adamax
    from gradus.optim.asgd import ASGD
    from gradus.optim.lbfgs import LBFGS
    from gradus.optim.nadam import NAdam
    from gradus.optim.radam import RAdam
    from gradus.optim.rmsprop import RMSprop
    from gradus.optim.rprop import Rprop
    from gradus.optim.sparse_adam import SparseAdam

# Names that are imported only when they are first used, because a program needs few of them. Maps the name of a class to the module that defines it,
# and the name of a module to None.
_LAZY = {"ASGD": "asgd", "Adadelta": "adadelta", "Adafactor": "_adafactor", "Adagrad": "adagrad", "Adamax": "adamax", "LBFGS": "lbfgs", "Muon": "_muon",
         "NAdam": "nadam", "RAdam": "radam", "RMSprop": "rmsprop", "Rprop": "rprop", "SparseAdam": "sparse_adam", "lr_scheduler": None, "swa_utils": None,
         **dict.fromkeys(["_functional", "adadelta", "adagrad", "adamax", "asgd", "lbfgs", "nadam", "radam", "rmsprop", "rprop", "sparse_adam"])}

__all__ = ["ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "SGD",
           "SparseAdam", "lr_scheduler", "swa_utils", "swap_in_optimizer_params_and_state"]


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    module = importlib.import_module(f"{__name__}.{_LAZY[name] or name}")
    value = module if _LAZY[name] is None else getattr(module, name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_LAZY})
