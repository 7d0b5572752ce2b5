"""The stateless functions behind the modules of gradus.nn.

A function that only forwards to an operator is generated from schema/ (an entry with `python.in = "nn"`, see codegen/python.py). The files here
define the functions that first do work in Python, such as handling deprecated arguments, warnings and checks.
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
