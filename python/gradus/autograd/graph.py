"""The graph that gradients flow through."""

from typing import NamedTuple

from gradus import _C
from gradus._C import Node

__all__ = ["Node", "GradientEdge", "get_gradient_edge"]


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor goes: output `output_nr` of `node`."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor):
    """The edge of a tensor that requires a gradient; that of a leaf leads to its AccumulateGrad."""
    return GradientEdge(*_C._gradient_edge(tensor))
