"""Finds the functions of python/gradus that compose operators. A composition belongs in schema/, where one implementation serves C, C++ and Python.

Elements are computed by a call of an operator of the schema, or by arithmetic with a tensor. A function may compute elements and return them. It is
refused if elements that it has computed become an operand of a further operator or of arithmetic, directly or through a local variable, an attribute,
an index or a view. Numbers read from tensors with .item() and .tolist() do not count as elements, and neither do sizes and dtypes. Calls of other
functions of the package are not followed.

Subclasses of autograd.Function are also refused, because their gradients are written in Python. HANDING_ON lists the subclasses that compute nothing.
"""
import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from codegen import schema  # noqa: E402

# Folder or file of python/gradus whose functions may compose public operators, i.e. pass the result of one to another -> reason why they may.
COMPOSING = {
    "distributions": "a distribution is a set of formulas of public operators",
    "func": "transformations of functions by public operators",
    "nn/utils": "parametrizations and clipping are clients of public operators",
    "optim/lbfgs.py": "its iteration calls a closure of the user",
    "autograd/gradcheck.py": "a tool of tests, which calls the user's function for each element",
    "testing": "a tool of tests",
}
# Subclasses of autograd.Function whose backward only passes gradients on, calls the user's functions, or calls one operator.
HANDING_ON = {"autograd/function.py": {"InplaceFunction", "_Once"}, "func/functions.py": {"_Elements"}, "masked/_gradient.py": {"_Enter"},
              "nn/modules/backward_hook.py": {"BackwardHookFunction"}, "utils/checkpoint.py": {"_Checkpoint"}}
# PLACING_FAMILIES (files of the schema) and PLACING (single operators) name operators that create, copy or choose elements but do no arithmetic
# with them.
PLACING_FAMILIES = {"arrange", "combine", "copy", "creation", "index", "pad", "random", "view"}
PLACING = {"conj", "masked_fill", "real", "imag", "resolve_conj", "resolve_neg", "where"}
# An argument with one of these names is a tensor in every function of the package.
TENSORS = {"bias", "grad", "input", "key", "mask", "query", "score", "target", "tensor", "weight", "x1", "x2", "y"}
# Attributes and functions whose values are not tensors.
FACTS = {"device", "dim", "dtype", "element_size", "getattr", "hasattr", "id", "is_complex", "is_floating_point", "isinstance", "item", "itemsize", "layout", "len", "ndim",
         "numel", "requires_grad", "shape", "size", "str", "stride", "tolist", "type"}


def operators(root):
    """Returns the Python names of all operators that compute new values, with and without "_" for the in-place form. Operators that only view, copy
    or choose elements are left out."""
    computing = (o for o in schema.read_schema(root / "schema").values() if o.is_operator and not o.view and any(a.is_tensor for a in o.args)
                 and Path(o.file).stem not in PLACING_FAMILIES)
    names = {o.python.get("name", o.name) for o in computing} - PLACING
    return names | {name + "_" for name in names}


class Function:
    """Finds the compositions in one function. A composition is a call of an operator, or arithmetic, whose operands include elements that the same
    function has computed. `found` maps a line number to the source text of the composition there."""

    def __init__(self, node, names, modules, imported):
        self.names, self.modules, self.imported = names, modules, imported
        self.computed_names, self.found = set(), {}
        nodes = list(self.own_nodes(node))
        before = None
        while before != len(self.computed_names):
            before = len(self.computed_names)
            for n in nodes:
                if isinstance(n, (ast.Assign, ast.AugAssign, ast.NamedExpr)) and self.is_computed(n.value):
                    for target in n.targets if isinstance(n, ast.Assign) else [n.target]:
                        self.computed_names |= {t.id for t in ast.walk(target) if isinstance(t, ast.Name) and isinstance(t.ctx, ast.Store)}
        for n in nodes:
            if any(map(self.is_computed, self.operands(n))):
                self.found.setdefault(n.lineno, ast.unparse(n))

    @staticmethod
    def own_nodes(node):
        """Yields the AST nodes of a function, without the nodes of nested functions and classes."""
        for child in ast.iter_child_nodes(node):
            yield child
            if not isinstance(child, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
                yield from Function.own_nodes(child)

    def is_operator(self, function):
        """True if the called `function` is an operator that computes elements. An operator whose name begins with "_" counts only if it is
        accessed as an attribute of the extension module."""
        if isinstance(function, ast.Name):
            return function.id in self.names & self.imported
        if not isinstance(function, ast.Attribute) or function.attr not in self.names or ast.unparse(function.value) in self.modules:
            return False
        return not function.attr.startswith("_") or ast.unparse(function.value).startswith(("_C", "_nn", "gradus."))

    def operands(self, node):
        """Returns the operands if `node` is a call of an operator or arithmetic; [] for any other node."""
        if isinstance(node, ast.Call) and self.is_operator(node.func):
            return [node.func, *node.args, *(keyword.value for keyword in node.keywords)]
        if isinstance(node, ast.BinOp):
            return [node.left, node.right]
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            return [node.operand]
        if isinstance(node, ast.AugAssign):
            return [node.target, node.value]
        if isinstance(node, ast.Compare) and not any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops):
            return [node.left, *node.comparators]
        return []

    def is_computed(self, node):
        """True if the value of the expression `node` contains elements that the analysed function computes."""
        if isinstance(node, ast.Name):
            return node.id in self.computed_names
        if isinstance(node, ast.Call) and self.is_operator(node.func):
            return True
        if isinstance(node, ast.Call):
            return getattr(node.func, "id", None) not in FACTS and isinstance(node.func, ast.Attribute) and self.is_computed(node.func)
        if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare)):
            return any(isinstance(o, ast.Name) and o.id in TENSORS or self.is_computed(o) for o in self.operands(node))
        if isinstance(node, ast.Attribute):
            return node.attr not in FACTS and self.is_computed(node.value)
        if isinstance(node, ast.IfExp):
            return self.is_computed(node.body) or self.is_computed(node.orelse)
        return isinstance(node, (ast.Subscript, ast.Starred, ast.NamedExpr)) and self.is_computed(node.value)


def check(root=ROOT):
    names, package = operators(root), root / "python" / "gradus"
    for path in sorted(package.rglob("*.py")):
        name, nodes = path.relative_to(package).as_posix(), list(ast.walk(ast.parse(path.read_text())))
        place = path.relative_to(root)
        for n in nodes:
            if isinstance(n, ast.ClassDef) and any(ast.unparse(b).split(".")[-1] == "Function" for b in n.bases) and n.name not in HANDING_ON.get(name, ()):
                yield f"{place}:{n.lineno}: {n.name} has a gradient of its own: say it in the schema"
        if any(name == allowed or name.startswith(allowed + "/") for allowed in COMPOSING):
            continue
        modules = {a.asname or a.name for n in nodes if isinstance(n, ast.Import) for a in n.names if a.name != "gradus"}
        imported = {a.asname or a.name for n in nodes if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("gradus") for a in n.names}
        for n in nodes:
            if isinstance(n, (ast.FunctionDef, ast.Lambda)):
                for line, text in sorted(Function(n, names, modules, imported).found.items()):
                    yield f"{place}:{line}: '{text[:80]}' composes operators: say it in the schema"


if __name__ == "__main__":
    problems = list(check())
    print("\n".join(problems) or "nothing computes in Python")
    sys.exit(1 if problems else 0)
