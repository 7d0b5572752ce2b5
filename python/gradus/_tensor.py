"""Makes Tensor importable from the module in which PyTorch defines it."""
from gradus._C import Tensor
from gradus._utils import _rebuild_from_type_v2

__all__ = ["Tensor"]
