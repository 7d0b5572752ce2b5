"""Derives gradient formulas from `expr`, for schema entries without `grad`, and adds kernels that compute a gradient in one loop.

The gradient of a holomorphic expression is grad times the conjugate of its derivative. If the expression calls an operator, the derivative of that
operator is its gradient formula with grad = 1.

fuse() adds a kernel that computes a gradient in one loop, for derived formulas as well as for formulas in the schema. The operator must have one
tensor argument, and the formula must be elementwise in grad, the saved tensors and numbers. The backward pass uses this kernel unless the pass itself
is recorded (create_graph=True).
"""
import ast

from codegen import ctype
from codegen.expression import PARTS, SYMBOLS, NotAnExpression, bound, elements, names, parse, printed, replaced

DERIVED = "derived"  # placeholder for the gradients of a schema entry without `grad`; gradients() replaces it


# ---- Simplifying constructors of expressions -----------------------------------------------------------------------------------------


def constant(value):
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def same(a, b):
    return ast.unparse(a) == ast.unparse(b)


def split(node):
    """Returns (numeric factor, remaining expression) of a product, e.g. (-2, x) for -2 * x. The remaining expression is None if `node` is just a
    number."""
    match node:
        case ast.Constant(value=value):
            return value, None
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number, rest = split(operand)
            return -number, rest
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            number, rest = split(left)
            return (number, right) if rest is None else (1, node) if number == 1 else (number, times(rest, right))
    return 1, node


def scaled(number, node):
    """Returns number * node as an expression, simplified. `node` is None for the number alone."""
    if node is None or number == 0:
        return constant(number)
    return node if number == 1 else ast.UnaryOp(ast.USub(), node) if number == -1 else ast.BinOp(constant(number), ast.Mult(), node)


def negated(a):
    number, rest = split(a)
    return scaled(-number, rest)


def plus(a, b):
    (m, x), (n, y) = split(a), split(b)
    if m == 0 or n == 0:
        return b if m == 0 else a
    if x is None and y is None or x is not None and y is not None and same(x, y):
        return scaled(m + n, x)
    return ast.BinOp(a, ast.Sub(), scaled(-n, y)) if n < 0 else ast.BinOp(a, ast.Add(), b)


def times(a, b):
    (m, x), (n, y) = split(a), split(b)
    return scaled(m * n, y if x is None else x if y is None else ast.BinOp(x, ast.Mult(), y))


def over(a, b):
    """Returns a / b as an expression, simplified."""
    return a if split(a)[0] == 0 or split(b) == (1, None) else ast.BinOp(a, ast.Div(), b)


def either(test, a, b):
    """Returns the conditional expression `a if test else b`, or `a` if both sides are equal."""
    return a if same(a, b) else ast.IfExp(test, a, b)


OPERATIONS = {ast.Add: plus, ast.Sub: lambda a, b: plus(a, negated(b)), ast.Mult: times, ast.Div: over}


class Simplified(ast.NodeTransformer):
    def visit_BinOp(self, node):
        return OPERATIONS[type(node.op)](self.visit(node.left), self.visit(node.right))

    def visit_UnaryOp(self, node):
        return negated(self.visit(node.operand)) if isinstance(node.op, ast.USub) else self.generic_visit(node)

    def visit_IfExp(self, node):
        return either(self.visit(node.test), self.visit(node.body), self.visit(node.orelse))


def read(node, operators):
    """Returns a formula as a simplified expression that can be differentiated. A call of an operator remains a call if the operator has gradient
    formulas and no symbol such as +. Other calls are replaced by the expression of the called operator."""
    return Simplified().visit(elements(node, operators, lambda callee, named: named.grads and not named.symbol))


# ---- The derivative ------------------------------------------------------------------------------------------------------------------


def slope(node, by, operators):
    """Returns the derivative of the expression `node` with respect to the name `by`."""
    def of(n):
        return slope(n, by, operators)

    match node:
        case ast.Name(id=name):
            return constant(int(name == by))
        case ast.UnaryOp(op=ast.USub(), operand=a):
            return negated(of(a))
        case ast.BinOp(left=a, op=ast.Add() | ast.Sub() as op, right=b):
            return OPERATIONS[type(op)](of(a), of(b))
        case ast.BinOp(left=a, op=ast.Mult(), right=b):
            return plus(times(of(a), b), times(a, of(b)))
        case ast.BinOp(left=ast.Constant(value=1), op=ast.Div(), right=b):
            return negated(times(times(node, node), of(b)))
        case ast.BinOp(left=a, op=ast.Div(), right=b):
            return plus(over(of(a), b), negated(times(over(node, b), of(b))))
        case ast.IfExp(test=test, body=a, orelse=b):
            return either(test, of(a), of(b))
        case ast.Call(func=ast.Name(id=name)) if not operators[name].grads:
            return of(read(replaced(parse(operators[name].expr), bound(operators[name], node)), operators))
        case ast.Call(func=ast.Name(id=name)):
            callee, total = operators[name], constant(0)
            values = bound(callee, node)
            for argument, inner in [(a, of(v)) for a, v in values.items()]:
                if split(inner)[0] != 0:
                    outer = replaced(whole_formula(callee, argument, operators), values | {"grad": constant(1), "result": node})
                    total = plus(total, times(read(outer, operators), inner))
            return total
    return constant(0)


class Formula(ast.NodeTransformer):
    """Converts an expression into a formula. Comparisons of tensors, and conditional expressions whose condition is a tensor, become calls of the
    operators that have the corresponding symbols (gt, where, ...)."""

    def __init__(self, operator, operators):
        self.symbols = {o.symbol: o.name for o in operators.values() if o.symbol}
        self.tensors = {a.name for a in operator.args if a.is_tensor} | {"result"}

    def call(self, symbol, *operands):
        return ast.Call(ast.Name(self.symbols[symbol]), list(operands), [])

    def visit_IfExp(self, node):
        is_tensor = names(node.test) & self.tensors
        node = self.generic_visit(node)
        return self.call("if", node.test, node.body, node.orelse) if is_tensor else node

    def visit_Compare(self, node):
        node = self.generic_visit(node)
        return self.call(SYMBOLS[type(node.ops[0])], node.left, *node.comparators) if names(node) & self.tensors else node

    def visit_BoolOp(self, node):
        first, *rest = (self.visit(v) for v in node.values)
        for value in rest:
            first = self.call(SYMBOLS[type(node.op)], first, value)
        return first


def formula_of(node, operator, argument, operators):
    """Returns the formula of the gradient of the expression `node` with respect to `argument`."""
    def product(slope):
        if isinstance(slope, ast.IfExp):
            return either(slope.test, product(slope.body), product(slope.orelse))
        number, rest = split(slope)
        if rest is not None and operator.kernel and "complex" in operator.dtypes:
            rest = formula.call("conjugate", rest)
        grad, factor = ast.Name("grad"), scaled(abs(number), rest)
        value = times(grad, factor) if rest is None and abs(number) in (0, 1) else ast.BinOp(grad, ast.Mult(), factor)
        return negated(value) if number < 0 else value

    formula, whole = Formula(operator, operators), read(node, operators)
    known = {ast.unparse(whole): ast.Name("result")} if operator.save == "result" else {}
    return formula.visit(product(replaced(slope(whole, argument, operators), known)))


def by_case(node, operators, function):
    """Returns function(node). If `node` is a conditional expression whose condition is not elementwise (e.g. approximate == 'tanh'), applies the
    function to each side instead."""
    if isinstance(node, ast.IfExp):
        try:
            elements(node.test, operators)
        except NotAnExpression:
            return ast.IfExp(node.test, by_case(node.body, operators, function), by_case(node.orelse, operators, function))
    return function(node)


def name_calls(node, taken):
    """Gives names to calls that occur more than once in a formula, the longest call first. Returns the shorter formula, and {name: formula} for the
    key `where` of the schema entry."""
    where = {}
    for name in (n for n in "tuvw" if n not in taken):
        calls = [ast.unparse(n) for n in ast.walk(node) if isinstance(n, ast.Call)]
        found = max((c for c in calls if calls.count(c) > 1), key=len, default=None)
        if found is None:
            break
        where[name], node = found, replaced(node, {found: ast.Name(name)})
    return node, where


def gradients(operator, operators):
    """Returns {argument: gradient formula} of the operator. The formulas are those of the operator's schema entry. If the entry has none, they are
    derived from the entry's formula for the result, which is under the key `expr` or is the last line under the key `through`."""
    if operator.grads == DERIVED:
        node, operator.grads = parse(operator.expr or operator.through.strip().splitlines()[-1]), {}
        for name in [a.name for a in operator.args if a.is_tensor]:
            try:
                tree = by_case(node, operators, lambda n, name=name: formula_of(n, operator, name, operators))
            except NotAnExpression:
                raise operator.error(f"cannot read the expression '{operator.expr}'", "expr") from None
            tree, where = name_calls(tree, {a.name for a in operator.args} | set(operator.where))
            operator.grads[name], operator.where = ast.unparse(tree), operator.where | where
            if "grad" not in names(tree):
                raise operator.error(f"its expression does not change with {name}: say grad.{name} = \"…\" or grad = \"none\"", "expr")
    return operator.grads


def whole_formula(operator, argument, operators):
    """Returns the gradient formula of `argument`, with the names in `where` replaced by their formulas."""
    formula = parse(gradients(operator, operators)[argument])
    return replaced(formula, {name: parse(part) for name, part in operator.where.items()})


# ---- Kernels of gradients ----------------------------------------------------------------------------------------------------------------


def kernel(node, operator, operators):
    """Adds to `operators` a kernel that computes the gradient formula `node`. Returns the call of that kernel, or the constant None if no kernel is
    added. A formula that is not elementwise gets no kernel. A formula with a single operation gets no kernel either, because the kernel would not be
    faster. The same holds for a formula with two operations if one of them is a function call."""
    try:
        whole = elements(node, operators)
    except NotAnExpression:
        return ast.Constant(None)
    used, loops = names(whole) - {"inf", "nan"}, [n for n in ast.walk(whole) if isinstance(n, PARTS)]
    tensors = [n for n in ("grad", *(a.name for a in operator.args if a.is_tensor), "result") if n in used]
    numbers = [a.name for a in operator.args if a.name in used and a.kind in ctype.NUMBERS]
    if used - {*tensors, *numbers} or len(tensors) < 2 or len(loops) < 2 + any(isinstance(n, ast.Call) for n in loops):
        return ast.Constant(None)
    arguments = [type(operator.args[0])(n, "Tensor" if n in tensors else "Scalar") for n in tensors + numbers]
    signature = f"({', '.join(f'{a.kind} {a.name}' for a in arguments)}) -> Tensor"
    name = next((o.name for o in operators.values() if o.kernel == "gradient" and (o.signature, o.expr) == (signature, ast.unparse(node))), None)
    if name is None:
        stem = f"_{operator.name.strip('_')}_backward"
        name = next(n for n in (stem, f"{stem}_2", f"{stem}_3") if n not in operators)
        made = type(operator)(name, operator.file, operator.line, signature, arguments, ["result"], False, f"The gradient of {operator.name} in one loop.", kernel="gradient",
                              rule="promote", dtypes=frozenset({"float"}), expr=ast.unparse(node), grads={}, is_operator=False)
        try:
            printed(made, "float", operators)
        except NotAnExpression:
            return ast.Constant(None)
        operators[name] = made
    return ast.Call(ast.Name(name), [ast.Name(n) for n in tensors + numbers], [])


def fuse(operator, operators):
    """For an operator with one tensor argument, sets operator.fused to the call of a kernel that computes the gradient in one loop. A gradient
    formula that is a conditional expression gives a conditional expression of such calls. Does nothing if no such kernel is faster."""
    tensors = [a.name for a in operator.args if a.is_tensor]
    if not operator.grads or len(tensors) > 1:
        return
    try:
        calls = by_case(whole_formula(operator, tensors[0], operators), operators, lambda n: kernel(n, operator, operators))
    except NotAnExpression:  # the formula has an error, which is reported when the formula is translated to C
        return
    if any(n in operators and operators[n].kernel == "gradient" for n in (n.func.id for n in ast.walk(calls) if isinstance(n, ast.Call))):
        operator.fused = {tensors[0]: ast.unparse(calls)}


def derive(operators):
    """Derives the gradients of the operators whose schema entry has no `grad`, then adds kernels that compute a gradient in one loop."""
    for operator in list(operators.values()):
        gradients(operator, operators)
    for operator in list(operators.values()):
        fuse(operator, operators)
