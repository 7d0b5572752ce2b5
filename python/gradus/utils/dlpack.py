"""DLPack under PyTorch's old names: tensors that share memory with those of other libraries."""
from gradus._C import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
