"""Instance normalization: each channel of each sample is normalized separately."""
from __future__ import annotations

import warnings

from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d"]


class _InstanceNorm(_NormBase):
    """Base of instance normalizations: mean and variance of a channel are computed for each sample separately."""

    def __init__(self, num_features: int, eps=1e-5, momentum=0.1, affine: bool = False, track_running_stats: bool = False, device=None, dtype=None, *,
                 bias: bool = True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _normalized(self, input):
        """Returns the normalized batch (N, C, ...)."""
        return F.instance_norm(input, self.running_mean, self.running_var, self.weight, self.bias, self.training or not self.track_running_stats,
                               self.momentum or 0.0, self.eps)

    def forward(self, input):
        self._check_input_dim(input)
        single = input.dim() == self._dims[0]
        dim = 0 if single else 1
        if input.size(dim) != self.num_features and self.affine:
            raise ValueError(f"expected input's size at dim={dim} to match num_features ({self.num_features}), but got: {input.size(dim)}.")
        if input.size(dim) != self.num_features:
            warnings.warn(f"input's size at dim={dim} does not match num_features, which is not used because affine=False", stacklevel=2)
        return self._normalized(input.unsqueeze(0)).squeeze(0) if single else self._normalized(input)


class InstanceNorm1d(_InstanceNorm):
    """Computes (input - mean) / sqrt(var + eps) * weight + bias for each channel of each sample of (N, C, L) or (C, L) (Ulyanov et al., 2016).

    mean and var are computed from the channel of the sample. In evaluation mode, if track_running_stats is true, they are the running statistics.
    Raises ValueError if the input has neither 2 nor 3 dimensions or, with affine, if the number of channels is not num_features.

    >>> nn.InstanceNorm1d(1)(gradus.tensor([[[1., 3.]]])).round(decimals=3).tolist()
    [[[-1.0, 1.0]]]
    """

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Computes (input - mean) / sqrt(var + eps) * weight + bias for each channel of each sample of (N, C, H, W) or (C, H, W).

    mean and var are computed from the channel of the sample. In evaluation mode, if track_running_stats is true, they are the running statistics.
    """

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Computes (input - mean) / sqrt(var + eps) * weight + bias for each channel of each sample of (N, C, D, H, W) or (C, D, H, W).

    mean and var are computed from the channel of the sample. In evaluation mode, if track_running_stats is true, they are the running statistics.
    """

    _dims = (4, 5)


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm1d whose num_features is taken from its first input."""

    cls_to_become = InstanceNorm1d
    _dims = (2, 3)


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm2d whose num_features is taken from its first input."""

    cls_to_become = InstanceNorm2d
    _dims = (3, 4)


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm3d whose num_features is taken from its first input."""

    cls_to_become = InstanceNorm3d
    _dims = (4, 5)
