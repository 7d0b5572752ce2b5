"""The module ChannelShuffle, which permutes channels."""
from __future__ import annotations

from .. import functional as F
from .module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Reorders channels (dimension 1): `groups` groups of adjacent channels are interleaved, one channel of each group in turn.

    >>> nn.ChannelShuffle(2)(gradus.arange(4).reshape(1, 4, 1)).flatten().tolist()
    [0, 2, 1, 3]
    """

    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups

    def forward(self, input):
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self):
        return f"groups={self.groups}"
