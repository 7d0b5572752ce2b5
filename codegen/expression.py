"""Expressions: the mathematics of an elementwise operator in one line of Python's syntax, over the names of its tensors and numbers.

    expr = "self * sigmoid(self)"

From it come the body of its kernel in C, for every category of dtypes (Body), and its gradient (gradient), as a formula like one that is written. A formula, derived or
written, is such an expression, too, where all it calls has an expression or a body in C: then the gradient is computed in one loop (fused) over grad, what was saved
and numbers, by a kernel of its own. Names that an entry gives are all that is known of operators here: "expr", "body", "symbol", "grad".
"""
import ast
import re

from codegen import ctype

# The functions of Python that are no operators. NaN stays where it is the first argument.
BUILTINS = {"min": "b if b < a else a", "max": "b if b > a else a"}
SYMBOLS = {ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=", ast.And: "and", ast.Or: "or"}
# C for floating numbers, and the functions that bool, integer and complex kernels have in its place (src/kernel/cpu/map.h, complex.h).
ARITHMETIC = {ast.Add: ("{} + {}", "sum({}, {})"), ast.Sub: ("{} - {}", "difference({}, {})"), ast.Mult: ("{} * {}", "product({}, {})"), ast.Div: ("{} / {}", "quotient({}, {})")}
BITS = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}


DERIVED = "derived"  # the gradients of an entry that does not say them


class NotAnExpression(Exception):
    """Something in a formula is not computed an element at a time."""


def parse(text):
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise NotAnExpression from None


def names(node):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - {n.func.id for n in ast.walk(node) if isinstance(n, ast.Call)}


def same(a, b):
    return ast.dump(a) == ast.dump(b)


class Substitution(ast.NodeTransformer):
    def __init__(self, values):
        self.values = values

    def visit_Name(self, node):
        return self.values.get(node.id, node)

    def visit_Call(self, node):
        return ast.Call(node.func, [self.visit(a) for a in node.args], [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords])


def put(node, values):
    """The expression with others in the place of names."""
    return Substitution(values).visit(parse(ast.unparse(node)))


# ---- Arithmetic that simplifies --------------------------------------------------------------------------------------------


def constant(value):
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def parts(node):
    """A number and what it multiplies, None for nothing: -2 * x is (-2, x)."""
    match node:
        case ast.Constant(value=value):
            return value, None
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number, rest = parts(operand)
            return -number, rest
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            number, rest = parts(left)
            return (number, right) if rest is None else (1, node) if number == 1 else (number, times(rest, right))
    return 1, node


def scaled(number, node):
    if node is None or number == 0:
        return constant(number)
    return node if number == 1 else ast.UnaryOp(ast.USub(), node) if number == -1 else ast.BinOp(constant(number), ast.Mult(), node)


def negated(a):
    number, rest = parts(a)
    return scaled(-number, rest)


def plus(a, b):
    (m, x), (n, y) = parts(a), parts(b)
    if x is None and y is None:
        return constant(m + n)
    if m == 0 or n == 0:
        return b if m == 0 else a
    if x is not None and y is not None and same(x, y):
        return scaled(m + n, x)
    return ast.BinOp(a, ast.Sub(), scaled(-n, y)) if n < 0 else ast.BinOp(a, ast.Add(), b)


def times(a, b):
    (m, x), (n, y) = parts(a), parts(b)
    return scaled(m * n, y if x is None else x if y is None else ast.BinOp(x, ast.Mult(), y))


def over(a, b):
    (m, x), (n, y) = parts(a), parts(b)
    match x:
        case ast.BinOp(left=left, op=ast.Mult(), right=right) if y is not None and (same(left, y) or same(right, y)):
            return over(scaled(m, right if same(left, y) else left), constant(n))
    if m == 0 or (y is None and n in (1, -1)):
        return scaled(m * n, x)
    if x is not None and y is None:
        return scaled(m / n, x) if m != 1 else ast.BinOp(x, ast.Div(), b)
    return ast.BinOp(a, ast.Div(), b)


def either(test, a, b):
    return a if same(a, b) else ast.IfExp(test, a, b)


OPERATIONS = {ast.Add: plus, ast.Sub: lambda a, b: plus(a, negated(b)), ast.Mult: times, ast.Div: over}


# ---- Formulas as expressions ------------------------------------------------------------------------------------------------------


def kernel_of(name, operators):
    """The operator that computes what one of this name does to an element: itself, or its kernel, which has the name with an underscore."""
    found = [o for o in (operators.get(name), operators.get("_" + name)) if o and (o.kernel or o.expr)]
    return found[0] if found else None


def bound(operator, call):
    """{argument: expression} of a call."""
    values = dict(zip((a.name for a in operator.args), call.args)) | {k.arg: k.value for k in call.keywords}
    return {a.name: values.get(a.name) or constant(a.default) for a in operator.args if a.name in values or isinstance(a.default, (int, float))}


def elements(node, operators, derives=False):
    """The expression that a formula is: calls of operators that have one are replaced by it. To be derived, arithmetic is simplified, and what says its gradient is left."""
    def read(n):
        return elements(n, operators, derives)

    match node:
        case ast.Name() | ast.Constant(value=int() | float()):
            return node
        case ast.UnaryOp(op=ast.USub(), operand=a):
            return negated(read(a)) if derives else ast.UnaryOp(node.op, read(a))
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=a):
            return ast.UnaryOp(node.op, read(a))
        case ast.BinOp(left=a, op=op, right=b) if type(op) in OPERATIONS:
            return OPERATIONS[type(op)](read(a), read(b)) if derives else ast.BinOp(read(a), op, read(b))
        case ast.BinOp(left=a, op=op, right=b) if type(op) in BITS:
            return ast.BinOp(read(a), op, read(b))
        case ast.IfExp(test=test, body=a, orelse=b):
            return either(read(test), read(a), read(b))
        case ast.Compare(left=a, ops=[op], comparators=[b]) if type(op) in SYMBOLS:
            return ast.Compare(read(a), [op], [read(b)])
        case ast.BoolOp(op=op, values=values):
            return ast.BoolOp(op, [read(v) for v in values])
        case ast.Call(func=ast.Name(id=name), args=args) if name in BUILTINS:
            return read(put(parse(BUILTINS[name]), dict(zip("ab", args))))
        case ast.Call(func=ast.Name(id=name)):
            callee = kernel_of(name, operators)
            if callee is None:
                raise NotAnExpression
            values = bound(callee, node)
            if callee.expr and not (operators[name].grads and not operators[name].symbol if derives else callee.body.get("float")):
                return read(put(parse(callee.expr), values))
            return ast.Call(ast.Name(name), [read(v) for v in values.values()], [])
    raise NotAnExpression


# ---- The derivative ------------------------------------------------------------------------------------------------------------


def slope(node, by, operators):
    """The derivative by a name. That of an operator is its gradient where grad is 1; conjugates do not count, since the function is holomorphic."""
    def of(n):
        return slope(n, by, operators)

    match node:
        case ast.Name(id=name):
            return constant(int(name == by))
        case ast.UnaryOp(op=ast.USub(), operand=a):
            return negated(of(a))
        case ast.BinOp(left=a, op=ast.Add(), right=b):
            return plus(of(a), of(b))
        case ast.BinOp(left=a, op=ast.Sub(), right=b):
            return plus(of(a), negated(of(b)))
        case ast.BinOp(left=a, op=ast.Mult(), right=b):
            return plus(times(of(a), b), times(a, of(b)))
        case ast.BinOp(left=ast.Constant(value=1), op=ast.Div(), right=b):
            return negated(times(times(node, node), of(b)))
        case ast.BinOp(left=a, op=ast.Div(), right=b):
            return plus(over(of(a), b), negated(times(over(node, b), of(b))))
        case ast.IfExp(test=test, body=a, orelse=b):
            return either(test, of(a), of(b))
        case ast.Call(func=ast.Name(id=name)):
            callee, total = operators[name], constant(0)
            values = bound(callee, node)
            if not callee.grads:
                return of(elements(put(parse(callee.expr), values), operators, derives=True))
            for argument, inner in ((a, of(v)) for a, v in values.items()):
                if parts(inner)[0] != 0:
                    outer = put(put(parse(formulas(callee, operators)[argument]), {n: parse(part) for n, part in callee.where.items()}), values | {"grad": constant(1), "result": node})
                    total = plus(total, times(elements(outer, operators, derives=True), inner))
            return total
    return constant(0)


class Formula(ast.NodeTransformer):
    """An expression as a formula: choices and comparisons are calls of operators."""

    def __init__(self, operator, operators):
        self.symbols = {o.symbol: o.name for o in operators.values() if o.symbol}
        self.tensors = {a.name for a in operator.args if a.is_tensor} | {"result"}

    def call(self, symbol, *operands):
        return ast.Call(ast.Name(self.symbols[symbol]), list(operands), [])

    def visit_IfExp(self, node):
        node = self.generic_visit(node)
        return self.call("if", node.test, node.body, node.orelse) if names(node.test) & self.tensors else node

    def visit_Compare(self, node):
        node = self.generic_visit(node)
        return self.call(SYMBOLS[type(node.ops[0])], node.left, node.comparators[0]) if names(node) & self.tensors else node

    def visit_BoolOp(self, node):
        first, *rest = (self.visit(v) for v in node.values)
        for value in rest:
            first = self.call(SYMBOLS[type(node.op)], first, value)
        return first


class Named(ast.NodeTransformer):
    """Gives an expression that stands in another a name."""

    def __init__(self, whole, name):
        self.whole, self.name = whole, name

    def visit(self, node):
        return ast.Name(self.name) if same(node, self.whole) else self.generic_visit(node)


def gradient(node, operator, argument, operators):
    """The formula of the gradient of an expression: grad times the conjugate of its slope."""
    def product(slope):
        if isinstance(slope, ast.IfExp):
            return either(slope.test, product(slope.body), product(slope.orelse))
        number, rest = parts(slope)
        if rest is not None and operator.kernel and "complex" in operator.dtypes:
            rest = formula.call("conjugate", rest)
        return times(ast.Name("grad"), scaled(number, rest))

    formula, whole = Formula(operator, operators), elements(node, operators, derives=True)
    derived = slope(whole, argument, operators)
    return formula.visit(product(Named(whole, "result").visit(derived) if operator.save == "result" else derived))


def by_case(node, operators, function):
    """The function of an expression; where a formula chooses between several, by a word or a number that may be absent, of each of them."""
    if isinstance(node, ast.IfExp):
        try:
            elements(node.test, operators)
        except NotAnExpression:
            return ast.IfExp(node.test, by_case(node.body, operators, function), by_case(node.orelse, operators, function))
    return function(node)


def name_calls(trees, taken):
    """Gives calls that stand more than once in formulas names, the longest first: {name: formula}, for `where`."""
    where = {}
    for name in (n for n in "tuvw" if n not in taken):
        calls = [n for tree in trees.values() for n in ast.walk(tree) if isinstance(n, ast.Call)]
        found = max((c for c in calls if sum(same(c, other) for other in calls) > 1), key=lambda c: len(ast.unparse(c)), default=None)
        if found is None:
            break
        where[name] = ast.unparse(found)
        for key, tree in trees.items():
            trees[key] = Named(found, name).visit(tree)
    return where


def formulas(operator, operators):
    """{argument: formula} of the gradients: those of the entry, or from its expression or the value of what it runs."""
    if operator.grads == DERIVED:
        node = parse(operator.expr or operator.through.strip().splitlines()[-1])
        trees = {a.name: by_case(node, operators, lambda n, name=a.name: gradient(n, operator, name, operators)) for a in operator.args if a.is_tensor}
        operator.where = name_calls(trees, {a.name for a in operator.args})
        operator.grads = {name: ast.unparse(tree) for name, tree in trees.items()}
        for argument, text in operator.grads.items():
            if "grad" not in names(parse(text)):
                raise operator.error(f"its expression is constant in {argument}: say grad.{argument} = \"…\" or grad = \"none\"", "expr")
    return operator.grads


# ---- C --------------------------------------------------------------------------------------------------------------------------


class Body:
    """Prints an expression in C. For kernels of floating numbers alone as C has it; for others, with the functions of their category."""

    def __init__(self, operator, operators, category):
        self.operators, self.category, self.words = operators, category, words(operator)
        self.times, self.names, self.statements = {}, {}, ""
        self.mask = operator.args[0].name if operator.mask else None
        self.infix = operator.dtypes == {"float"}

    def number(self, value):
        text = ctype.literal(value)
        return (text if isinstance(value, int) else f"(C){text}") if self.infix else f"constant({text})"

    def inner(self, node):
        """An operand: in brackets where it is more than a word or a call."""
        text = self.value(node)
        return text if re.fullmatch(r"\w+|\(C\)[\w.]+", text) or isinstance(node, (ast.Call, ast.IfExp)) and not text.startswith("-") else f"({text})"

    def count(self, node):
        """How often each part is wanted."""
        key = ast.dump(node)
        self.times[key] = self.times.get(key, 0) + 1
        if self.times[key] == 1:
            for child in ast.iter_child_nodes(node):
                self.count(child)

    def value(self, node):
        """The text of an expression; the name of one that is wanted more than once."""
        key = ast.dump(node)
        if self.times.get(key, 0) < 2 or isinstance(node, (ast.Name, ast.Constant)):
            return self.text(node)
        if key not in self.names:
            text = self.text(node)
            self.names[key] = f"t{len(self.names)}"
            self.statements += f"const C {self.names[key]} = {text};\n"
        return self.names[key]

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
                return f"-{self.inner(a)}" if self.infix else f"negative({self.value(a)})"
            case ast.UnaryOp(op=ast.Invert(), operand=a):
                return f"(C)~{self.inner(a)}"
            case ast.BinOp(left=a, op=op, right=b) if type(op) in BITS:
                return f"{self.inner(a)} {BITS[type(op)]} {self.inner(b)}"
            case ast.BinOp(left=a, op=op, right=b):
                infix, function = ARITHMETIC[type(op)]
                return infix.format(self.inner(a), self.inner(b)) if self.infix else function.format(self.value(a), self.value(b))
            case ast.IfExp(test=test, body=a, orelse=b):
                return f"choose({self.test(test)}, {self.value(a)}, {self.value(b)})"
            case ast.Call(func=ast.Name(id=name), args=args):
                return self.call(kernel_of(name, self.operators), args)
        return self.test(node)

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
            case ast.Compare(left=a, ops=[op], comparators=[b]):
                return f"{self.inner(a)} {SYMBOLS[type(op)]} {self.inner(b)}"
        raise NotAnExpression

    def call(self, callee, args):
        text = callee.body.get(self.category)
        if text is None:
            raise NotAnExpression
        values = {word: node for word, node in zip(words(callee).values(), args)}
        return re.sub(rf"(?<=\()({'|'.join(values)})(?=\))|\b({'|'.join(values)})\b", lambda m: self.value(values[m[1]]) if m[1] else self.inner(values[m[2]]), text)


def words(operator):
    """{argument: its word in a body}"""
    tensors = dict(zip((a.name for a in operator.args if a.is_tensor), "xyz"))
    return {a.name: tensors.get(a.name, a.name) for a in operator.args}


def printed(operator, category, operators):
    printer, node = Body(operator, operators, category), elements(parse(operator.expr), operators)
    printer.count(node)
    value = printer.test(node) if operator.gives_bool else printer.value(node)
    return f"{printer.statements}return {value};"


def body(operator, category, operators):
    """The scalar body of a kernel in C, of tensors x, y and z: as the entry says it for this category, or from its expression; None where it is written by hand."""
    if category in operator.body or operator.expr is None:
        return f"return {operator.body[category]};" if category in operator.body else None
    try:
        return printed(operator, category, operators)
    except NotAnExpression:
        raise operator.error(f"cannot read the expression '{operator.expr}'", "expr") from None


# ---- Fused gradients -----------------------------------------------------------------------------------------------------------------


def passes(node):
    """How many loops compute it, where each operator has one."""
    return sum(isinstance(n, (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.BoolOp, ast.Call)) for n in ast.walk(node))


def derive(operators):
    """Gradients that are not written, and the kernels that compute gradients in one loop."""
    for operator in list(operators.values()):
        formulas(operator, operators)
    for operator in list(operators.values()):
        fuse(operator, operators)


def fuse(operator, operators):
    """The kernels that compute a gradient in one loop, as operators without an entry, added to `operators`; their calls are the operator's `fused` formulas."""
    Operator = type(operator)
    made = {}

    def kernel(node, argument):
        whole = elements(node, operators)
        used = names(whole) - {"inf", "nan"}
        tensors = [n for n in ("grad", *(a.name for a in operator.args if a.is_tensor), "result") if n in used]
        numbers = [a.name for a in operator.args if a.name in used and a.kind in ctype.NUMBERS]
        if used - {*tensors, *numbers} or not 1 < len(tensors) < 4 or passes(whole) + (not any(isinstance(n, ast.Call) for n in ast.walk(whole))) < 3:
            raise NotAnExpression
        Argument = type(operator.args[0])
        arguments = [Argument(n, "Tensor") for n in tensors] + [Argument(n, "Scalar") for n in numbers]
        signature = f"({', '.join(f'{a.kind} {a.name}' for a in arguments)}) -> Tensor"
        name = next((o.name for o in operators.values() if o.kernel == "gradient" and (o.signature, o.expr) == (signature, ast.unparse(node))), None)
        if name is None:
            stem = "_".join(["", operator.name.strip("_"), *([argument] if len(operator.grads) > 1 else []), "backward"])
            name = next(n for n in (stem, f"{stem}_2", f"{stem}_3") if n not in operators)
            added = Operator(name, operator.file, operator.line, signature, arguments, ["result"], False, f"The gradient of {operator.name} in one loop.", kernel="gradient",
                             rule="promote", dtypes=frozenset({"float"}), expr=ast.unparse(node), grads={}, is_operator=False)
            printed(added, "float", operators)
            operators[name] = made[name] = added
        return ast.Call(ast.Name(name), [ast.Name(n) for n in tensors + numbers], [])

    def case(node, argument):
        try:
            return kernel(node, argument)
        except NotAnExpression:
            return ast.Constant(None)

    if sum(a.is_tensor for a in operator.args) > 1:
        return
    for argument, text in (operator.grads or {}).items():
        try:
            whole = put(parse(text), {name: parse(part) for name, part in operator.where.items()})
            fast = ast.unparse(by_case(whole, operators, lambda node, a=argument: case(node, a)))
        except NotAnExpression:  # not even a formula
            continue
        if "backward" in fast:
            operator.fused[argument] = fast
