"""The functions of the Python array API standard. ``x.__array_namespace__()`` returns this module.

The arrays are Gradus tensors. Where PyTorch differs from the standard (https://data-apis.org/array-api/2025.12), names, arguments and type rules are
those of the standard; for example, 0-d tensors take part in type promotion like any other tensor.

>>> from gradus import array_api as xp
>>> x = xp.asarray([3, 1, 2])
>>> xp.sort(x, descending=True)
tensor([3, 2, 1])
>>> x.__array_namespace__() is xp
True
"""
from gradus import (  # noqa: F401
    bool, complex64, complex128, e, float32, float64, inf, int8, int16, int32, int64, nan, newaxis, pi, uint8, uint16, uint32, uint64,
)
from gradus.array_api import fft, linalg  # noqa: F401
from gradus.array_api._creation import *  # noqa: F403
from gradus.array_api._elementwise import *  # noqa: F403
from gradus.array_api._manipulation import *  # noqa: F403
from gradus.array_api._reduction import *  # noqa: F403
from gradus.array_api._searching import *  # noqa: F403
from gradus.array_api._types import *  # noqa: F403
from gradus.array_api._info import __array_namespace_info__  # noqa: F401
from gradus.array_api.linalg import matmul, matrix_transpose, tensordot, vecdot  # noqa: F401

__array_api_version__ = "2025.12"
