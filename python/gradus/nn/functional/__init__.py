"""The functions behind the modules of gradus.nn: PyTorch's signatures over the operators of gradus._C, without state.

A file per topic; _linear.py also has embedding and one_hot.
"""
from . import (_activation, _attention, _distance, _dropout, _fold, _grid, _likelihood_loss, _linear, _loss, _margin_loss, _normalization, _padding,
               _pixel, _pooling, _resample)
from ._activation import *
from ._attention import *
from ._distance import *
from ._dropout import *
from ._fold import *
from ._grid import *
from ._likelihood_loss import *
from ._linear import *
from ._loss import *
from ._margin_loss import *
from ._normalization import *
from ._padding import *
from ._pixel import *
from ._pooling import *
from ._resample import *

__all__ = [*_activation.__all__, *_attention.__all__, *_distance.__all__, *_dropout.__all__, *_fold.__all__, *_grid.__all__, *_likelihood_loss.__all__,
           *_linear.__all__, *_loss.__all__, *_margin_loss.__all__, *_normalization.__all__, *_padding.__all__, *_pixel.__all__, *_pooling.__all__, *_resample.__all__]
