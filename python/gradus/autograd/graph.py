"""The graph that gradients flow through."""

from typing import NamedTuple

from gradus import _C
from gradus._C import _Node as Node
from gradus.utils.hooks import RemovableHandle

__all__ = ["Node", "GradientEdge", "get_gradient_edge"]


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor goes: output `output_nr` of `node`."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor):
    """The edge of a tensor that requires a gradient; that of a leaf leads to its AccumulateGrad."""
    return GradientEdge(*_C._gradient_edge(tensor))


class GraphHandle(RemovableHandle):
    """Removes a hook of a tensor or of a node."""

    def __init__(self, number):
        self.id = number

    def remove(self):
        """Removes the hook; nothing happens if it is gone already."""
        _C._remove_hook(self.id)

    def __getstate__(self):
        raise TypeError("the handle of a hook on a tensor or a node cannot be pickled")
