"""Makes Tensor importable from gradus._tensor, because PyTorch defines it in torch._tensor."""
from gradus._C import Tensor
from gradus._utils import _rebuild_from_type_v2

__all__ = ["Tensor"]
