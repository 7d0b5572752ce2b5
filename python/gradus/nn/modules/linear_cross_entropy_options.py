"""Options of linear_cross_entropy. PyTorch uses them to divide the work into chunks. Gradus checks them, but they have no effect."""
from __future__ import annotations

import dataclasses

import gradus

__all__ = ["LinearCrossEntropyOptions"]


@dataclasses.dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """Options of nn.functional.linear_cross_entropy, which have no effect. Raises ValueError for values that PyTorch does not accept."""

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: gradus.dtype | None = None

    def __post_init__(self):
        if self.acc_policy not in ("auto", "accurate", "balanced", "compact"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        name, colon, factor = (self.chunking_method or "auto").partition(":")
        if not (name == "auto" and not colon or name == "aspect_ratio" and (not colon or factor.isdigit() and int(factor) > 0)):
            raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        if self.batch_chunk_size is not None and not (isinstance(self.batch_chunk_size, int) and self.batch_chunk_size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {self.batch_chunk_size!r}")
        if self.acc_dtype not in (None, gradus.float16, gradus.bfloat16, gradus.float32, gradus.float64):
            raise ValueError("acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, torch.float64}, "
                             f"got {self.acc_dtype!r}. Pass acc_dtype=None to let the op pick automatically.")
