"""Operations on trees: nested containers such as tuples, lists and dicts. All other objects are leaves.

    >>> from gradus.utils import _pytree
    >>> leaves, spec = _pytree.tree_flatten({"a": [1, 2], "b": (3,)})
    >>> leaves
    [1, 2, 3]
    >>> _pytree.tree_unflatten([x * 10 for x in leaves], spec)
    {'a': [10, 20], 'b': (30,)}
"""
import dataclasses
import functools
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import NamedTuple

import gradus
from gradus import _stand_ins

__all__ = ["Context", "FlattenFn", "GetAttrKey", "KeyPath", "LeafSpec", "MappingKey", "PyTree", "PyTreeSpec", "SequenceKey", "TreeSpec", "UnflattenFn", "arg_tree_leaves", "is_namedtuple", "is_namedtuple_class",
           "is_namedtuple_instance", "is_structseq", "is_structseq_class", "is_structseq_instance", "key_get", "keystr", "map_only", "register_dataclass", "register_pytree_node",
           "tree_all", "tree_all_only", "tree_any", "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves",
           "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_", "tree_map_with_path", "tree_structure", "tree_unflatten",
           "treespec_dict", "treespec_leaf", "treespec_pprint", "treespec_tuple"]

# Types that are used only in annotations.
PyTree = Context = object
KeyPath = tuple
FlattenFn = UnflattenFn = Callable


class NodeDef(NamedTuple):
    """The two functions that take apart and rebuild containers of one class. flatten_fn(tree) returns (children, context), where context is the data
    besides the children, e.g. the keys of a dict. unflatten_fn(children, context) rebuilds the tree."""

    flatten_fn: object
    unflatten_fn: object


def _of_names(make):
    """Returns the NodeDef for a class of mappings: flatten_fn returns the values as children and the list of keys as context, and unflatten_fn is
    `make`."""
    return NodeDef(lambda tree: (list(tree.values()), list(tree)), make)


# Rebuilds a named tuple. This function is also the key in SUPPORTED_NODES for all classes of named tuples.
def namedtuple(children, kind):
    return kind(*children) if hasattr(kind, "_make") else kind(children)


SUPPORTED_NODES = {
    tuple: NodeDef(lambda tree: (list(tree), None), lambda children, context: tuple(children)),
    list: NodeDef(lambda tree: (list(tree), None), lambda children, context: list(children)),
    dict: _of_names(lambda children, names: dict(zip(names, children))),
    namedtuple: NodeDef(lambda tree: (list(tree), type(tree)), namedtuple),
    OrderedDict: _of_names(lambda children, names: OrderedDict(zip(names, children))),
    defaultdict: NodeDef(lambda tree: (list(tree.values()), [tree.default_factory, list(tree)]), lambda children, context: defaultdict(context[0], zip(context[1], children))),
    deque: NodeDef(lambda tree: (list(tree), tree.maxlen), deque),
    gradus.Size: NodeDef(lambda tree: (list(tree), None), lambda children, context: tuple(children)),
}


def register_pytree_node(cls, flatten_fn, unflatten_fn, *, serialized_type_name=None, to_dumpable_context=None, from_dumpable_context=None, flatten_with_keys_fn=None):
    """Registers the class `cls` as a kind of container. flatten_fn(obj) returns (children, context); unflatten_fn(children, context) rebuilds obj.

    The other arguments have no effect. Raises ValueError if the class is registered already.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(flatten_fn, unflatten_fn)


def register_dataclass(cls, *, field_names=None, drop_field_names=None, serialized_type_name=None):
    """Registers the dataclass `cls` as a kind of container, whose children are its fields.

    Fields in drop_field_names are not children and get their default values in rebuilt objects. field_names: the names of __init__'s arguments,
    required if `cls` is not a dataclass. Raises ValueError if field_names is missing, or does not contain all fields of a dataclass.

    >>> import dataclasses
    >>> @dataclasses.dataclass
    ... class Pair:
    ...     x: int
    ...     y: int
    >>> register_dataclass(Pair)
    >>> tree_map(lambda leaf: leaf + 1, Pair(1, 2))
    Pair(x=2, y=3)
    """
    dropped = drop_field_names or []
    if not dataclasses.is_dataclass(cls):
        if field_names is None:
            raise ValueError(f"field_names must be specified with a list of all fields used to initialize {cls}, as it is not a dataclass.")
    else:
        fields = [field.name for field in dataclasses.fields(cls) if field.init and field.name not in dropped]
        if field_names is not None and set(field_names) != set(fields):
            raise ValueError(f"field_names does not include all dataclass fields: {sorted(set(fields) ^ set(field_names))}")
        field_names = fields

    def flatten(obj):
        return [getattr(obj, name) for name in field_names], field_names

    register_pytree_node(cls, flatten, lambda children, names: cls(**dict(zip(names, children))))


def _kind(tree, is_leaf):
    """Returns the key of SUPPORTED_NODES for a container, or None for a leaf."""
    kind = type(tree)
    if is_leaf is not None and is_leaf(tree):
        return None
    if kind in SUPPORTED_NODES:
        return kind
    return namedtuple if isinstance(tree, tuple) and (hasattr(kind, "_make") or hasattr(kind, "n_fields")) else None


class TreeSpec:
    """The structure of a tree without its leaves. The TreeSpec of a leaf has the type None."""

    def __init__(self, type, context, children_specs):
        self.type, self.context, self.children_specs = type, context, children_specs
        self.num_leaves, self.num_nodes, self.num_children = int(type is None), 1, len(children_specs)
        for child in children_specs:
            self.num_leaves += child.num_leaves
            self.num_nodes += child.num_nodes

    def is_leaf(self):
        """Returns True if the tree is a single leaf."""
        return self.type is None

    def unflatten(self, leaves):
        """Returns the tree of this structure with the given leaves."""
        return tree_unflatten(leaves, self)

    def __eq__(self, other):
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (self.type, self.context, self.children_specs) == (other.type, other.context, other.children_specs)

    def __hash__(self):
        return hash((self.type, str(self.context), tuple(self.children_specs)))

    def __repr__(self, indent=0):
        if self.type is None:
            return "*"
        inner = ",\n".join(" " * (indent + 2) * (i > 0) + child.__repr__(indent + 2) for i, child in enumerate(self.children_specs))
        return f"TreeSpec({self.type.__name__}, {self.context}, [{inner}])"


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The TreeSpec of a single leaf."""

    def __init__(self):
        super().__init__(None, None, [])


_LEAF = LeafSpec()


def treespec_leaf():
    """Returns the TreeSpec of a single leaf."""
    return _LEAF


def treespec_tuple(iterable=(), /):
    """Returns the TreeSpec of a tuple whose items have the given TreeSpecs. Raises ValueError if an element of `iterable` is not a TreeSpec."""
    children = list(iterable)
    if not all(isinstance(child, TreeSpec) for child in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(mapping=(), /, **kwargs):
    """Returns the TreeSpec of a dictionary whose values have the given TreeSpecs. Raises ValueError if a given value is not a TreeSpec."""
    children = dict(mapping, **kwargs)
    if not all(isinstance(child, TreeSpec) for child in children.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {children!r}.")
    return TreeSpec(dict, list(children), list(children.values()))


def _flatten(tree, is_leaf, leaves):
    """Returns the TreeSpec of `tree` and appends the leaves to `leaves`."""
    kind = _kind(tree, is_leaf)
    if kind is None:
        leaves.append(tree)
        return _LEAF
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, is_leaf, leaves) for child in children])


def tree_flatten(tree, is_leaf=None):
    """Returns (leaves, treespec): the list of leaves, and the TreeSpec with which tree_unflatten rebuilds the tree.

    is_leaf: a function; containers for which it returns True count as leaves.
    """
    leaves = []
    spec = _flatten(tree, is_leaf, leaves)
    return leaves, spec


def tree_unflatten(leaves, treespec):
    """Returns the tree of the structure `treespec` with the given leaves.

    Raises ValueError if the number of leaves is wrong, TypeError if treespec is not a TreeSpec.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but got item of type {type(treespec)}.")
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(leaves)} but the spec refers to a pytree that holds {treespec.num_leaves} items ({treespec})."
        )
    return _unflatten(iter(leaves), treespec)


def _unflatten(leaves, spec):
    """Returns a tree with the structure `spec`. Its leaves are the next elements of the iterator `leaves`."""
    if spec.type is None:
        return next(leaves)
    return SUPPORTED_NODES[spec.type].unflatten_fn([_unflatten(leaves, child) for child in spec.children_specs], spec.context)


def tree_leaves(tree, is_leaf=None):
    """Returns the list of leaves."""
    return tree_flatten(tree, is_leaf)[0]


def arg_tree_leaves(*args, **kwargs):
    """Returns the list of leaves of all arguments."""
    return tree_leaves([*args, *kwargs.values()])


def tree_iter(tree, is_leaf=None):
    """Returns an iterator over the leaves."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree, is_leaf=None):
    """Returns the TreeSpec of the tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """Returns a tree of the results of `func`, called with each leaf of `tree` and the leaves at the same position in `rests`.

    Raises ValueError if the structure of one of `rests` differs from that of `tree`.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [_flatten_up_to(spec, rest) for rest in rests]
    return tree_unflatten([func(*args) for args in zip(leaves, *others)], spec)


def tree_map_(func, tree, *rests, is_leaf=None):
    """Calls func as tree_map does, ignores its results and returns `tree`."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def map_only(type_or_types_or_pred, /):
    """Returns a decorator for functions of one argument. The decorated function is called for selected arguments; all others are returned unchanged.

    type_or_types_or_pred: a type or a tuple of types, whose instances are selected, or a predicate that selects. Raises TypeError for anything else.

    >>> map_only(int)(lambda x: x + 1)("a")
    'a'
    """
    chosen = type_or_types_or_pred
    if not isinstance(chosen, (type, tuple, types.UnionType)) and not callable(chosen):
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")
    is_class = isinstance(chosen, (type, tuple, types.UnionType))

    def decorate(func):
        @functools.wraps(func)
        def mapped(x):
            return func(x) if (isinstance(x, chosen) if is_class else chosen(x)) else x

        return mapped

    return decorate


def tree_map_only(kind, func, tree, is_leaf=None):
    """Returns the tree with func(leaf) in place of each leaf of type `kind`."""
    return tree_map(lambda leaf: func(leaf) if isinstance(leaf, kind) else leaf, tree, is_leaf=is_leaf)


def _flatten_up_to(spec, tree):
    """Returns the list of the subtrees of `tree` at the positions where `spec` has leaves. Raises ValueError if the containers above these
    positions differ from those of `spec`."""
    if spec.type is None:
        return [tree]
    kind = _kind(tree, None)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree) if kind is not None else ([], None)
    if kind is not spec.type or len(children) != spec.num_children or context != spec.context:
        raise ValueError(f"Node type mismatch; expected {spec.type}, but got {type(tree)}.")
    return [leaf for child, below in zip(spec.children_specs, children) for leaf in _flatten_up_to(child, below)]


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """Returns a list with one value for each leaf of `treespec`. A leaf of `tree` is repeated for all leaves of `treespec` below its position.

    Returns None if the structures do not match.
    """
    kind = _kind(tree, is_leaf)
    if kind is None:
        return [tree] * treespec.num_leaves
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if kind is not treespec.type or len(children) != treespec.num_children or context != treespec.context:
        return None
    parts = [_broadcast_to_and_flatten(child, spec, is_leaf) for child, spec in zip(children, treespec.children_specs)]
    return None if None in parts else [leaf for part in parts for leaf in part]


def treespec_pprint(treespec):
    """Returns the text of a tree with the structure `treespec`, in which * stands for each leaf."""
    return repr(tree_unflatten([_Star()] * treespec.num_leaves, treespec))


class _Star:
    """A leaf that repr() shows as *."""

    def __repr__(self):
        return "*"


# ---- Predicates -----------------------------------------------------------------------------------------------------------------


def is_namedtuple_class(cls):
    """Returns True if `cls` is a class of named tuples."""
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple) and hasattr(cls, "_make")


def is_namedtuple_instance(obj):
    """Returns True if `obj` is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj):
    """Returns True if `obj` is a named tuple or a class of named tuples."""
    return is_namedtuple_class(obj) or is_namedtuple_instance(obj)


def is_structseq_class(cls):
    """Returns True if `cls` is a class of named tuples that operators return, such as the class of the result of max(dim)."""
    return isinstance(cls, type) and cls.__bases__ == (tuple,) and isinstance(getattr(cls, "n_fields", None), int)


def is_structseq_instance(obj):
    """Returns True if `obj` is a named tuple that an operator returned, such as the result of max(dim)."""
    return is_structseq_class(type(obj))


def is_structseq(obj):
    """Returns True if `obj` is a named tuple that an operator returned, or the class of one."""
    return is_structseq_class(obj) or is_structseq_instance(obj)


def tree_is_leaf(tree, is_leaf=None):
    """Returns True if `tree` is not a container."""
    return _kind(tree, is_leaf) is None


def tree_all(pred, tree, is_leaf=None):
    """Returns True if pred(leaf) is true for all leaves.

    >>> tree_all(lambda leaf: leaf > 0, [1, (2, 3)])
    True
    """
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    """Returns True if pred(leaf) is true for at least one leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(kind, pred, tree, is_leaf=None):
    """Returns True if pred(leaf) is true for all leaves of type `kind`."""
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, kind))


def tree_any_only(kind, pred, tree, is_leaf=None):
    """Returns True if pred(leaf) is true for at least one leaf of type `kind`."""
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, kind))


def tree_map_only_(kind, func, tree, is_leaf=None):
    """Calls func for each leaf of type `kind` and returns the original tree."""
    tree_map_only(kind, func, tree, is_leaf)
    return tree


# ---- Paths of leaves ------------------------------------------------------------------------------------------------------------


class SequenceKey(NamedTuple):
    """An element of a path: an index into a sequence."""

    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        """Returns sequence[idx]."""
        return sequence[self.idx]


class MappingKey(NamedTuple):
    """An element of a path: a key of a mapping."""

    key: object

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        """Returns mapping[key]."""
        return mapping[self.key]


class GetAttrKey(NamedTuple):
    """An element of a path: an attribute of a named tuple."""

    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, obj):
        """Returns the attribute `name` of `obj`."""
        return getattr(obj, self.name)


def keystr(kp):
    """Returns the path `kp` as Python code.

    >>> keystr((MappingKey("a"), SequenceKey(0)))
    "['a'][0]"
    """
    return "".join(map(str, kp))


def key_get(obj, kp):
    """Returns the value to which the path `kp` leads from `obj`."""
    for key in kp:
        obj = key.get(obj)
    return obj


def _with_paths(tree, is_leaf, path):
    """Yields (path of the leaf, leaf) for each leaf of `tree`. `path` is the path of `tree` itself, with which all yielded paths begin."""
    kind = _kind(tree, is_leaf)
    if kind is None:
        yield path, tree
        return
    children, _ = SUPPORTED_NODES[kind].flatten_fn(tree)
    if isinstance(tree, dict):
        keys = map(MappingKey, tree)
    elif kind is namedtuple:
        keys = map(GetAttrKey, tree._fields)
    else:
        keys = map(SequenceKey, range(len(children)))
    for key, child in zip(keys, children):
        yield from _with_paths(child, is_leaf, (*path, key))


def tree_leaves_with_path(tree, is_leaf=None):
    """Returns a list with a pair (path, leaf) for each leaf.

    >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"a": [1, 2]})]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return list(_with_paths(tree, is_leaf, ()))


def tree_flatten_with_path(tree, is_leaf=None):
    """Returns a list with a pair (path, leaf) for each leaf, and the TreeSpec of the tree."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """Returns a tree of the results of `func`, called with the path of each leaf of `tree`, the leaf, and the leaves at the same position in `rests`.

    Raises ValueError if the structure of one of `rests` differs from that of `tree`.
    """
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [_flatten_up_to(spec, rest) for rest in rests]
    return tree_unflatten([func(*pair, *more) for pair, *more in zip(pairs, *others)], spec)


__getattr__ = _stand_ins.of_module(__name__)
