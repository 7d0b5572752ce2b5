"""Tests the pytree functions of torch.utils that return paths of leaves or test all leaves (tree_all, tree_any), and swap_tensors."""
from collections import OrderedDict, namedtuple

import pytest
from both import submodule
from nn_programs import attempt, same

Pair = namedtuple("Pair", "x y")
TREES = [3, [], [1, (2, 3)], {"a": [1, 2], "b": Pair(4, {"c": 5})}, OrderedDict(z=1, a=(2,)), Pair([1], None), (("x",),)]


@pytest.mark.filterwarnings("ignore:.*LeafSpec")
@same
def test_pytree_paths_and_predicates(t):
    pytree = submodule(t, "utils._pytree")
    for tree in TREES:
        pairs, spec = pytree.tree_flatten_with_path(tree)
        yield [(pytree.keystr(path), leaf, pytree.key_get(tree, path) is leaf) for path, leaf in pairs], repr(spec), spec.is_leaf(), spec == pytree.LeafSpec()
        yield pytree.tree_map_with_path(lambda path, x, y: (pytree.keystr(path), x, y), tree, tree), pytree.tree_is_leaf(tree), pytree.is_namedtuple(tree)
        yield [question(lambda leaf: leaf == 2, tree) for question in (pytree.tree_all, pytree.tree_any)]
        yield [question(int, lambda leaf: leaf > 1, tree) for question in (pytree.tree_all_only, pytree.tree_any_only)]
        yield pytree.tree_map_only_(int, lambda leaf: leaf, tree) is tree


@same
def test_swap_tensors(t):
    layer, other = t.nn.Linear(2, 2), t.nn.Parameter(t.ones(3), requires_grad=False)
    weight = layer.weight
    weight.grad, weight.mark = t.ones(2, 2), "mark"
    yield t.utils.swap_tensors(weight, other), weight, other, other.grad, weight.grad, other.mark, hasattr(weight, "mark"), layer.weight is weight
    plain = t.zeros(1)
    yield t.utils.swap_tensors(plain, other), type(plain).__name__, type(other).__name__, plain.requires_grad, other


@same
def test_set_module(t):
    def function():
        pass

    t.utils.set_module(function, "mine")
    yield function.__module__, attempt(t.utils.set_module, function, 3)[0]
