"""Batch normalization of channels (dimension 1), and the common base class of batch normalization and instance normalization."""
from __future__ import annotations

import gradus

from .. import functional as F
from ..parameter import UninitializedBuffer, UninitializedParameter
from .lazy import LazyModuleMixin
from .normalization import Scaled

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "SyncBatchNorm"]


class _NormBase(Scaled):
    """Base of normalizations with running statistics, and a weight and a bias per channel."""

    _version = 2
    _dims: tuple[int, ...]  # allowed numbers of dimensions of the input

    def __init__(self, num_features: int, eps=1e-5, momentum=0.1, affine: bool = True, track_running_stats: bool = True, device=None, dtype=None, *,
                 bias: bool = True):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._add_parameters(num_features, affine, bias, device, dtype)
        tracked = track_running_stats
        self.register_buffer("running_mean", gradus.zeros(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", gradus.ones(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", gradus.tensor(0, dtype=gradus.int64, device=device) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self):
        """Sets running_mean to 0, running_var to 1 and num_batches_tracked to 0."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        """Resets the running statistics, and sets the weight to 1 and the bias to 0."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input):
        """Raises ValueError if the input has a number of dimensions that is not allowed."""
        if input.dim() not in self._dims:
            raise ValueError(f"expected {' or '.join(f'{n}D' for n in self._dims)} input (got {input.dim()}D input)")

    def extra_repr(self):
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, bias={self.bias is not None}, "
                f"track_running_stats={self.track_running_stats}")

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        counted = prefix + "num_batches_tracked"
        if (local_metadata.get("version") or 0) < 2 and self.track_running_stats and counted not in state_dict:
            state_dict[counted] = self.num_batches_tracked  # because state dicts of version 1 lack num_batches_tracked
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    """Base of batch normalizations, which compute the mean and the variance of each channel over the whole batch."""

    def _next_momentum(self):
        """Counts the batch, and returns the weight of the batch in the running statistics.

        The weight is `momentum`. If momentum is None, the weight is 1 / number of batches, so that the running statistics are averages over all
        batches.
        """
        if not (self.training and self.track_running_stats):
            return self.momentum or 0.0
        self.num_batches_tracked.add_(1)
        return 1 / self.num_batches_tracked.item() if self.momentum is None else self.momentum

    def forward(self, input):
        self._check_input_dim(input)
        momentum = self._next_momentum()
        used = not self.training or self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if used else (None, None)
        return F.batch_norm(input, mean, var, self.weight, self.bias, self.training or mean is None, momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """Computes (input - mean) / sqrt(var + eps) * weight + bias per channel of (N, C) or (N, C, L) (Ioffe and Szegedy, 2015).

    In training mode mean and variance are computed from the batch and update the running statistics: running = (1 - momentum) * running + momentum *
    batch. A momentum of None averages over all batches. In evaluation mode mean and variance are the running statistics or, if track_running_stats is
    false, computed from the batch. Raises ValueError for another number of dimensions.

    >>> norm = nn.BatchNorm1d(2)
    >>> norm(gradus.tensor([[1., 0.], [3., 0.]])).round(decimals=3).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Computes (input - mean) / sqrt(var + eps) * weight + bias per channel of (N, C, H, W).

    In training mode, or if track_running_stats is false, mean and variance are computed from the batch. Otherwise they are the running statistics.
    """

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Computes (input - mean) / sqrt(var + eps) * weight + bias per channel of (N, C, D, H, W).

    In training mode, or if track_running_stats is false, mean and variance are computed from the batch. Otherwise they are the running statistics.
    """

    _dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Computes batch normalization like BatchNorm, over the batch of this process only. The argument process_group has no effect.

    Raises ValueError for an input of less than two dimensions or without channels.
    """

    def __init__(self, num_features: int, eps: float = 1e-5, momentum=0.1, affine: bool = True, track_running_stats: bool = True, process_group=None,
                 device=None, dtype=None, *, bias: bool = True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """Returns `module` with each batch norm replaced by a SyncBatchNorm that has the same parameters and buffers.

        >>> nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(2)))
        Sequential(
          (0): SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
        )
        """
        converted = module
        if isinstance(module, _BatchNorm):
            converted = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_group,
                            bias=module.bias is not None)
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(converted, name, getattr(module, name))
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """Base of lazy normalizations. num_features becomes the number of channels of the first input."""

    def __init__(self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *, bias=True):
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = gradus.tensor(0, dtype=gradus.int64, device=device)

    def reset_parameters(self):
        """Resets running statistics, weight and bias. Does nothing before the first forward, when their sizes are unknown."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        """Creates parameters and buffers for the number of channels of `input`."""
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
                if tensor is not None:
                    tensor.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A BatchNorm1d whose num_features is taken from its first input.

    >>> norm = nn.LazyBatchNorm1d()
    >>> tuple(norm(gradus.randn(4, 3)).shape), norm.num_features
    ((4, 3), 3)
    """

    cls_to_become = BatchNorm1d
    _dims = (2, 3)


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A BatchNorm2d whose num_features is taken from its first input."""

    cls_to_become = BatchNorm2d
    _dims = (4,)


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A BatchNorm3d whose num_features is taken from its first input."""

    cls_to_become = BatchNorm3d
    _dims = (5,)
