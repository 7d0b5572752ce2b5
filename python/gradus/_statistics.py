"""Histograms in several dimensions: the forms in which PyTorch takes their bins. Operators do the computation."""
from typing import NamedTuple

from gradus import _C
from gradus._C import Tensor
from gradus._overridable import overridable

__all__ = ["histogramdd"]


class _Histogramdd(NamedTuple):
    hist: Tensor
    bin_edges: tuple[Tensor, ...]

    def __repr__(self):
        return f"torch.return_types.histogramdd(\nhist={self.hist!r},\nbin_edges={self.bin_edges!r})"


_Histogramdd.__name__ = _Histogramdd.__qualname__ = "histogramdd"
_Histogramdd.__module__ = "torch.return_types"


@overridable
def histogramdd(input, bins, range=None, weight=None, density=False):
    """Returns how many points, the rows of input, or how much of their weight, each cell of a grid holds, and the edges of its bins along each
    dimension.

    `bins`: how many there are along each dimension, or their edges. range: the first and the last edge of each dimension, one pair after the other; the least and the largest number
    where it is absent. density: divided by their sum and by the volume of the cell.

    >>> import gradus as torch
    >>> torch.histogramdd(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), bins=[2, 2]).hist
    tensor([[0., 1.],
            [1., 0.]])
    """
    if isinstance(bins, (list, tuple)) and any(isinstance(edges, Tensor) for edges in bins):
        return _Histogramdd(_C._histogramdd_from_bin_tensors(input, bins, weight=weight, density=density), tuple(edges.clone() for edges in bins))
    bins = [bins] * input.size(-1) if isinstance(bins, int) else bins
    edges = _C._histogramdd_bin_edges(input, bins, range=range, weight=weight, density=density)
    return _Histogramdd(_C._histogramdd_from_bin_cts(input, bins, range=range, weight=weight, density=density), edges)
