"""Learning rate schedules. A program calls ``step`` of a schedule after each epoch, or after each step of the optimizer.

>>> import gradus
>>> optimizer = gradus.optim.SGD([gradus.zeros(1, requires_grad=True)], lr=1.0)
>>> scheduler = StepLR(optimizer, step_size=2, gamma=0.5)
>>> for epoch in range(3):
...     optimizer.step()
...     scheduler.step()
>>> optimizer.param_groups[0]["lr"], scheduler.get_last_lr()
(0.5, [0.5])
"""
from gradus.optim.lr_scheduler._base import LRScheduler
from gradus.optim.lr_scheduler._combined import ChainedScheduler, SequentialLR
from gradus.optim.lr_scheduler._cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from gradus.optim.lr_scheduler._cycle import CyclicLR, OneCycleLR
from gradus.optim.lr_scheduler._plateau import ReduceLROnPlateau
from gradus.optim.lr_scheduler._stepwise import (
    ConstantLR, ExponentialLR, LambdaLR, LinearLR, MultiplicativeLR, MultiStepLR, PolynomialLR, StepLR,
)

__all__ = ["ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR", "LRScheduler",
           "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR",
           "StepLR"]

_LRScheduler = LRScheduler  # the name of LRScheduler in older versions of PyTorch
