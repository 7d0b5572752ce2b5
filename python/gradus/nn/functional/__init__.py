"""The functions behind the modules of gradus.nn, without state.

One that only forwards to an operator is generated: its entry in schema/ says `python.in = "nn"`, and codegen/python.py explains the rest. The files here have those
that do more before: deprecated arguments, warnings, checks that are Python's. A file per topic; _embedding.py also has embedding_bag.
"""
from gradus._C.nn import *  # noqa: F403
from gradus.overrides import handle_torch_function, has_torch_function, has_torch_function_unary, has_torch_function_variadic

from .. import grad as grad
from ._activation import *
from ._attention import *
from ._dropout import *
from ._embedding import *
from ._grid import *
from ._likelihood_loss import *
from ._loss import *
from ._margin_loss import *
from ._normalization import *
from ._pooling import *
from ._resample import *
from ._scaled import *

__all__ = [name for name in globals() if not name.startswith("_")]
