"""Dropout modules. In evaluation mode each returns its input unchanged."""
from __future__ import annotations

from .. import functional as F
from .module import Module

__all__ = ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    """Base of dropout modules. p: the probability with which an element or channel is zeroed. Raises ValueError unless p is in [0, 1]."""

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """In training mode zeroes each element with probability `p` and divides the other elements by 1 - p (Srivastava et al., 2014).

    Raises ValueError if `p` is not in [0, 1].

    >>> layer = nn.Dropout(0.5)
    >>> layer.eval()(gradus.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    """

    def forward(self, input):
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """In training mode zeroes each channel of (C, L) or (N, C, L) with probability `p` and divides the other channels by 1 - p."""

    def forward(self, input):
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """In training mode zeroes each channel of (N, C, H, W) or (N, C, L) with probability `p` and divides the other channels by 1 - p."""

    def forward(self, input):
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """In training mode zeroes each channel of (C, D, H, W) or (N, C, D, H, W) with probability `p` and divides the other channels by 1 - p."""

    def forward(self, input):
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that preserves mean 0 and variance 1 of its input, for use with SELU (Klambauer et al., 2017)."""

    def forward(self, input):
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout that drops channels as a whole instead of single elements."""

    def forward(self, input):
        return F.feature_alpha_dropout(input, self.p, self.training)
