"""Parses and prints expressions. An expression is one line in Python's syntax that computes an element of the result from the elements of the tensors
and the numbers of an operator.

    expr = "self * sigmoid(self)"

This file parses expressions and prints them as the bodies of C kernels. gradient.py differentiates them. This file contains no operator names: a call
of an operator is replaced by the `expr` of that operator's entry or, without `expr`, by its `body`, the C expression for a category of dtypes.
"""
import ast
import re

from codegen import ctype

# As in Python, min(a, b) and max(a, b) return their first argument if either argument is NaN.
BUILTINS = {"min": "b if b < a else a", "max": "b if b > a else a"}
SYMBOLS = {ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=", ast.And: "and", ast.Or: "or"}
BITS = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
# Python operator -> (C operator, used if all dtypes of a kernel are floating; C function, used in all other kernels). The functions are in
# src/kernel/cpu/real.h and complex.h.
ARITHMETIC = {ast.Add: ("+", "sum"), ast.Sub: ("-", "difference"), ast.Mult: ("*", "product"), ast.Div: ("/", "quotient")}
PARTS = (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.BoolOp, ast.Call)


class NotAnExpression(Exception):
    """Raised if a formula contains something that is not computed element by element."""


def parse(text):
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise NotAnExpression from None


def names(node):
    """Returns the names of the tensors and numbers that an expression reads, without the names of called functions."""
    called = {id(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) not in called}


class Replacement(ast.NodeTransformer):
    def __init__(self, values):
        self.values = values

    def visit(self, node):
        found = self.values.get(ast.unparse(node)) if isinstance(node, ast.expr) else None
        return found or self.generic_visit(node)

    def visit_Call(self, node):
        return ast.Call(node.func, [self.visit(a) for a in node.args], [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords])

    def generic_visit(self, node):
        return self.visit_Call(node) if isinstance(node, ast.Call) else super().generic_visit(node)


def replaced(node, values):
    """Returns a copy of the expression with subexpressions replaced. `values` maps the text of a subexpression to its replacement."""
    return Replacement(values).visit(parse(ast.unparse(node)))


# ---- Calls ----------------------------------------------------------------------------------------------------------------------


def kernel_of(name, operators):
    """Returns the first of the operators `name` and _<name> that has a kernel or an expression, or None if neither has one. _<name> is not
    public."""
    return next((o for o in (operators.get(name), operators.get("_" + name)) if o and (o.kernel or o.expr)), None)


def bound(operator, call):
    """Returns {argument name: expression} of a call. An argument that is not given is included if its default is a number."""
    given = dict(zip((a.name for a in operator.args), call.args)) | {k.arg: k.value for k in call.keywords}
    return {a.name: given.get(a.name) or ast.Constant(a.default) for a in operator.args if a.name in given or isinstance(a.default, (int, float))}


class Elements(ast.NodeTransformer):
    """Replaces calls of operators by the expressions of these operators."""

    def __init__(self, operators, is_left):
        self.operators, self.is_left = operators, is_left

    def visit_Call(self, node):
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name in BUILTINS:
            return self.visit(replaced(parse(BUILTINS[name]), dict(zip("ab", node.args))))
        callee = kernel_of(name, self.operators)
        if callee is None:
            raise NotAnExpression
        values = bound(callee, node)
        if callee.expr and not self.is_left(callee, self.operators[name]):
            return self.visit(replaced(parse(callee.expr), values))
        return ast.Call(ast.Name(name), [self.visit(v) for v in values.values()], [])


def elements(node, operators, is_left=lambda callee, named: "float" in callee.body):
    """Returns the formula `node` as an expression. Each call of an operator is replaced by the operator's own expression, unless is_left(callee,
    named) is true. `named` is the operator that the formula calls. `callee` is the operator that has the kernel or the expression: `named` itself or,
    if it has neither, the hidden operator _<name> (kernel_of). By default, a callee with a `body` in C for floating dtypes is left as a call. Raises
    NotAnExpression if the formula contains anything that is not computed element by element."""
    tree = Elements(operators, is_left).visit(replaced(node, {}))
    for n in ast.walk(tree):
        if not isinstance(n, (*PARTS, ast.Name, ast.Constant, ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context)) or isinstance(getattr(n, "value", 0), (str, bool, type(None))):
            raise NotAnExpression
    return tree


# ---- Translation to C -----------------------------------------------------------------------------------------------------------


def words(operator):
    """Returns {argument name: name in the C code that computes one element}. In that code the tensors' elements are called x, y and z; numbers keep
    their names."""
    tensors = dict(zip((a.name for a in operator.args if a.is_tensor), "xyz"))
    return {a.name: tensors.get(a.name, a.name) for a in operator.args}


class Body:
    """Prints an expression in C. If all dtypes of the kernel are floating, the expression uses C operators, otherwise the functions in ARITHMETIC. A
    subexpression that occurs twice becomes a C variable."""

    def __init__(self, operator, operators, category):
        self.operators, self.category, self.words = operators, category, words(operator)
        self.mask = operator.args[0].name if operator.mask else None
        self.infix = operator.dtypes == {"float"}
        self.times, self.variables, self.statements = {}, {}, ""

    def count(self, node):
        key = ast.unparse(node)
        self.times[key] = self.times.get(key, 0) + 1
        for child in ast.iter_child_nodes(node) if self.times[key] == 1 else ():
            if isinstance(child, ast.expr):
                self.count(child)

    def value(self, node):
        key = ast.unparse(node)
        if self.times.get(key, 0) < 2 or not isinstance(node, PARTS):
            return self.text(node)
        if key not in self.variables:
            text, self.variables[key] = self.text(node), f"t{len(self.variables)}"
            self.statements += f"const C {self.variables[key]} = {text};\n"
        return self.variables[key]

    def operand(self, node):
        text = self.value(node)
        return text if re.fullmatch(r"\w+|\(C\)[\w.]+", text) or (isinstance(node, (ast.Call, ast.IfExp)) and text[0] != "-") else f"({text})"

    def number(self, value):
        text = ctype.literal(value)
        return f"constant({text})" if not self.infix else text if isinstance(value, int) else f"(C){text}"

    def text(self, node):
        match node:
            case ast.Name(id="inf" | "nan" as name):
                return self.number(float(name))
            case ast.Name(id=name):
                return self.words[name]
            case ast.Constant(value=value):
                return self.number(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
                return self.number(-value)
            case ast.UnaryOp(op=ast.USub(), operand=a):
                return f"-{self.operand(a)}" if self.infix else f"negative({self.value(a)})"
            case ast.UnaryOp(op=ast.Invert(), operand=a):
                return f"(C)~{self.operand(a)}"
            case ast.BinOp(left=a, op=op, right=b) if type(op) in BITS:
                return f"{self.operand(a)} {BITS[type(op)]} {self.operand(b)}"
            case ast.BinOp(left=a, op=op, right=b) if type(op) in ARITHMETIC:
                symbol, function = ARITHMETIC[type(op)]
                return f"{self.operand(a)} {symbol} {self.operand(b)}" if self.infix else f"{function}({self.value(a)}, {self.value(b)})"
            case ast.IfExp(test=test, body=a, orelse=b):
                return f"choose({self.test(test)}, {self.value(a)}, {self.value(b)})"
            case ast.Call(func=ast.Name(id=name), args=args):
                return self.call(kernel_of(name, self.operators), args)
        raise NotAnExpression

    def test(self, node):
        match node:
            case ast.Name(id=name):
                return self.words[name] if name == self.mask else f"is_true({self.words[name]})"
            case ast.UnaryOp(op=ast.Not(), operand=a):
                return f"!{self.test(a)}"
            case ast.BoolOp(op=op, values=values):
                return (" & " if isinstance(op, ast.And) else " | ").join(t if re.fullmatch(r"!?\w+\(\w+\)", t) else f"({t})" for t in map(self.test, values))
            case ast.Compare(left=a, ops=[ast.Eq() | ast.NotEq() as op], comparators=[b]) if not self.infix:
                return f"{'' if isinstance(op, ast.Eq) else '!'}equal({self.value(a)}, {self.value(b)})"
            case ast.Compare(left=a, ops=[op], comparators=[b]) if type(op) in SYMBOLS:
                return f"{self.operand(a)} {SYMBOLS[type(op)]} {self.operand(b)}"
        raise NotAnExpression

    def call(self, callee, args):
        """Returns the callee's body with x, y and z replaced by the arguments. A name that stands alone in parentheses, as in f(x), is replaced
        without additional parentheses."""
        if self.category not in callee.body:
            raise NotAnExpression
        given = dict(zip(words(callee).values(), args))
        return re.sub(r"(?<=\()(\w+)(?=\))|\b[a-z]\w*\b", lambda w: w[0] if w[0] not in given else self.value(given[w[0]]) if w[1] else self.operand(given[w[0]]), callee.body[self.category])


def printed(operator, category, operators):
    printer, node = Body(operator, operators, category), elements(parse(operator.expr), operators)
    printer.count(node)
    value = printer.test(node) if operator.gives_bool else printer.value(node)
    return f"{printer.statements}return {value};"


def body(operator, category, operators):
    """Returns the C statements that compute one element in a kernel, for the dtypes of `category`. They are the schema entry's `body` for that
    category, or its `expr` translated to C. Returns None if the entry has neither, because the function is then written by hand."""
    if category in operator.body:
        return f"return {operator.body[category]};"
    try:
        return printed(operator, category, operators) if operator.expr else None
    except NotAnExpression:
        raise operator.error(f"cannot read the expression '{operator.expr}'", "expr") from None
