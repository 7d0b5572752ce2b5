"""Defines type names for annotations of numbers, devices, sizes and files."""
import os
from builtins import bool as _bool
from builtins import bytes as _bytes
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from collections.abc import Sequence
from typing import IO, List, Tuple, Union

from gradus._C import Size, Tensor
from gradus._C import device as _device
from gradus._C import dtype as _dtype
from gradus._C import layout as _layout

__all__ = ["Device", "FileLike", "Number"]

Number = Union[int, float, bool]
_Number = (int, float, bool)
Device = Union[_device, str, int, None]
FileLike = Union[str, "os.PathLike[str]", IO[bytes]]
_TensorOrTensors = Union[Tensor, Sequence[Tensor]]
_size = Union[Size, List[int], Tuple[int, ...]]
