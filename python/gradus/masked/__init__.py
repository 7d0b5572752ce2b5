"""The functions of torch.masked: masked tensors, and reductions and normalizations with a mask.

    >>> import gradus as torch
    >>> mt = torch.masked.masked_tensor(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, False, True]))
    >>> mt * 2
    MaskedTensor(
      [  2.0000,       --,   6.0000]
    )
    >>> mt.sum()
    MaskedTensor(  4.0000, True)
    >>> torch.masked.sum(torch.tensor([1.0, 2.0, 3.0]), mask=mt.get_mask())
    tensor(4.)

Sparse masks are not supported.
"""
from ._reductions import (amax, amin, argmax, argmin, cumprod, cumsum, log_softmax, logaddexp, logsumexp, mean, median, norm, normalize, prod, softmax, softmin, std, sum,  # noqa: A004
                          var)
from ._tensor import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

__all__ = ["MaskedTensor", "amax", "amin", "argmax", "argmin", "as_masked_tensor", "cumprod", "cumsum", "is_masked_tensor", "log_softmax", "logaddexp", "logsumexp",
           "masked_tensor", "mean", "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var"]
