"""The functions of torch.testing: comparisons with tolerances that depend on the dtype, and tensors of random numbers."""
from gradus import _stand_ins
from ._comparison import assert_allclose as assert_allclose
from ._comparison import assert_close as assert_close
from ._creation import make_tensor as make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

__getattr__ = _stand_ins.of_module(__name__)
