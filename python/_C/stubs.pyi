from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Sequence
from typing import Any, NamedTuple, overload

Number = _int | _float | _bool | _complex

class dtype: ...
class device: ...
class layout: ...
class memory_format: ...
class Generator: ...

_dtype = dtype
_device = device
_layout = layout
_memory_format = memory_format

# schema: functions

class Tensor:
    # schema: methods
