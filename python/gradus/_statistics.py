"""Implements histogramdd. It calls one operator if `bins` gives vectors of edges, and another if `bins` gives numbers of bins."""
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
    """Returns a histogram of points in D dimensions, as a named tuple (hist, bin_edges). `input` has shape (N, D), or (..., D), and each row is a
    point. hist[i, j, ...] is the number of points in cell (i, j, ...) of a grid, or the sum of their weights. bin_edges is a tuple of D vectors.

    `bins` is an int for all dimensions, a list of D ints, or a list of D increasing vectors of edges. `range` has 2 * D numbers, the first and the
    last edge of each dimension. By default these are the minimum and the maximum of the input. `weight` has one number for each point. If `density`
    is true, hist is divided by its sum and by the volume of the cell.

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
