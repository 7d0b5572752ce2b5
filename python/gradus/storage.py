"""The bytes that tensors share."""
from gradus._C import UntypedStorage

__all__ = ["UntypedStorage"]
