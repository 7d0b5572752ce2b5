"""Gives access to the autograd graph: nodes, gradient edges and hooks."""

from typing import NamedTuple

from gradus import _C, _stand_ins
from gradus._C import _Node as Node
from gradus.utils.hooks import RemovableHandle

__all__ = ["Node", "GradientEdge", "disable_saved_tensors_hooks", "get_gradient_edge", "register_multi_grad_hook", "saved_tensors_hooks"]


class GradientEdge(NamedTuple):
    """Says where a tensor is in the autograd graph: it is output number `output_nr` of the operator that `node` differentiates."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor):
    """Returns the gradient edge of a tensor. For a leaf the node is the leaf's AccumulateGrad. RuntimeError: the tensor requires no gradient."""
    return GradientEdge(*_C._gradient_edge(tensor))


def leaves_of(tensors):
    """Returns the list of the leaf tensors that require a gradient and on which the given tensors depend."""
    leaves = []
    seen = set()
    nodes = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
    while nodes:
        node = nodes.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        nodes += [following for following, _ in node.next_functions if following is not None]
    return leaves


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Raises NotImplementedError, because a hook can only receive the gradient of one tensor."""
    raise NotImplementedError("hooks on several gradients are not available: use register_hook of each tensor")


class saved_tensors_hooks:
    """Raises NotImplementedError, because tensors saved for backward cannot be packed and unpacked by functions."""

    def __init__(self, pack_hook, unpack_hook):
        raise NotImplementedError("hooks on saved tensors are not available yet: use utils.checkpoint to save memory")


class disable_saved_tensors_hooks:
    """Context manager and decorator without effect. In PyTorch, using saved_tensors_hooks inside of it raises an error with `error_message`, but
    Gradus does not have these hooks."""

    def __init__(self, error_message, fail_if_non_empty=True):
        self.error_message = error_message

    def __enter__(self):
        return None

    def __exit__(self, *_):
        return None

    def __call__(self, function):
        return function


class GraphHandle(RemovableHandle):
    """A handle that removes a hook of a tensor or of a node."""

    def __init__(self, number):
        self.id = number

    def remove(self):
        """Removes the hook. Does nothing if it has already been removed."""
        _C._remove_hook(self.id)

    def __getstate__(self):
        raise TypeError("the handle of a hook on a tensor or a node cannot be pickled")


__getattr__ = _stand_ins.of_module(__name__)
