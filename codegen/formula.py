"""Translates ("lowers") formulas to C calls of operators. The formula language is a subset of Python expressions.

A formula reads arguments, results, gradients, and the names that the entry defines under `where`. It may use + - * / **, unary minus, and calls of
operators of the schema. One of several results is selected by its name, as in max(x, dim).values. Where a formula reads only shape(x), strides(x),
offset(x), dtype(x), device(x) or sizes_along(xs, dim), the autograd node saves this value and not the tensor.

The formulas under the keys `formula` and `through` implement the operator, and may have several lines. In `formula`, the calls of operators are
dispatched. In `through`, a call of an operator becomes a direct call of op_<name>, the C function that implements the called operator. Both formulas
may also call the functions that functions.py finds, and in-place operators such as mul_(x, y). Every line but the last assigns a value to a name or
is a check such as
    assert p >= 0, f"RuntimeError: p is {p}"
The text is left out if the condition is a call of a function that raises the error itself. A list is made by [f(t) for t in tensors]; len(tensors)
and tensors[0] read lists. A line of `through` may also return early:
    if is_one(alpha): return _add(self, other)
"""
import ast
import json
import re
import textwrap
from dataclasses import dataclass

from codegen import ctype
from codegen.functions import FUNCTIONS
from codegen.template import fill

# Python operator in a formula -> the operator's `symbol` in the schema. The formula calls the operator with this symbol.
SYMBOLS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
# Python operator on integers -> C operator. Their results are equal in C and in Python, because the operands are sizes, which are not negative.
INTEGER_SYMBOLS = {ast.FloorDiv: "/", ast.Mod: "%"}
FACTS = {"shape": ("SHAPE", "dims"), "strides": ("STRIDES", "dims"), "offset": ("OFFSET", "int"), "dtype": ("DTYPE", "dtype"),
         "device": ("DEVICE", "device"), "sizes_along": ("SIZES_ALONG", "dims")}
FACT_OF_TENSOR = {"SHAPE": "grd_sizes({0})", "STRIDES": "grd_strides({0})", "OFFSET": "grd_offset({0})", "DTYPE": "(grd_dtype){0}->dtype",
                  "DEVICE": "grd_tensor_device({0})"}
ERRORS = {"RuntimeError": "RUNTIME", "ValueError": "VALUE", "IndexError": "INDEX", "TypeError": "TYPE", "NotImplementedError": "NOT_IMPLEMENTED"}
COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
NUMERIC = ("int", "float", "bool", "Scalar")
# Formula type -> (printf conversion, C argument) for a value in an error text.
PRINTED = {"int": ("%lld", "(long long){0}"), "float": ("%g", "{0}"), "Scalar": ("%g", "grd_scalar_double({0})"), "str": ("%s", "{0}"), "dtype": ("%s", "grd_dtype_type_name({0})"),
           "dims": ("%s", "grd_list_text({0})")}
LOOP = """
    const grd_tensors ${name}_given = $given;
    grd_tensor **$made = grd_pool_array(${name}_given.n, sizeof *$made);
    for (int64_t i = 0; $made != NULL && i < ${name}_given.n; i++) {
        grd_tensor *const $name = ${name}_given.data[i];
        $made[i] = $value;
    }
"""
# Marks the place after an early return in the generated C code. emit.apart moves the statements that follow into a second function, because the early
# return is faster in a short function.
APART = "/* the rest */\n"
C_TYPES = {"Tensor": "grd_tensor *", "Tensor[]": "grd_tensors ", "dims": "grd_dims ", "Scalar": "grd_scalar ", "int": "int64_t ", "float": "double ", "bool": "bool ",
           "dtype": "grd_dtype ", "device": "grd_device ", "str": "const char *"}


def names_read(tree, unconditional=True):
    """Yields the names that a formula reads. If `unconditional` is true, skips both sides of each conditional expression, because only one of them is
    computed."""
    if isinstance(tree, ast.Name):
        yield tree.id
    parts = [tree.test] if isinstance(tree, ast.IfExp) and unconditional else [*tree.args, *tree.keywords] if isinstance(tree, ast.Call) else ast.iter_child_nodes(tree)
    for part in parts:
        yield from names_read(part, unconditional)


@dataclass(frozen=True)
class Value:
    """A C expression and its formula type: Tensor, Tensor[], Scalar, int, float, bool, dims, dtype, device, str, Generator or None."""
    c: str
    type: str
    literal: object = None
    # 1 if `c` is a call that makes a tensor. 2 if some operands of this call are also temporary tensors, which can be released after the call.
    # Otherwise 0.
    makes: int = 0


@dataclass(frozen=True)
class Save:
    """A value that the autograd node saves for the derivative. If `how` is "WHOLE", the value is the argument or result called `name`. Otherwise the
    value is a property of that argument or result, e.g. its shape if `how` is "SHAPE". `extra` is the name of the argument that the formula
    passes to sizes_along(xs, dim) as `dim`. For other properties `extra` is empty."""
    how: str
    name: str
    extra: str = ""

    @property
    def variable(self):
        return self.name if self.how == "WHOLE" else f"{self.name}_{self.how.lower()}"


def bare(condition):
    """Returns the condition without its outer parentheses, because the C statement `if (...)` adds its own."""
    return condition[1:-1] if re.fullmatch(r"\([^()]*\)", condition) else condition


def is_of_tensors(types, result):
    """True if a function takes or returns tensors. Formulas of a derivative may not call such functions, because only operators can be differentiated
    again."""
    return any(kind.startswith("Tensor") for kind in (*types, result))


def argument_type(argument):
    """Returns the type that an argument has in formulas, such as "Tensor" or "dims" (see Value)."""
    if argument.list:
        return "Tensor[]" if argument.kind == "Tensor" else "dims"
    return "Scalar" if ctype.of(argument)[0] == "grd_scalar " else argument.kind


class Lowering:
    """Translates the formulas of one operator to C, and collects the values that the operator's node must save."""

    def __init__(self, operator, operators, key, gradients=(), through=False, tangent=None):
        self.operator, self.operators, self.key = operator, operators, key
        self.names = {a.name: argument_type(a) for a in operator.args}
        self.gradients = dict(gradients)  # name of a result's gradient -> its type; the node does not save it, because backward receives it
        self.results = operator.results if gradients else []
        # If True, each call of an operator in the formula becomes a direct call, without dispatch, of op_<name>. This is the C function that
        # implements the operator, and it writes to `out`.
        self.through = through
        # `out` is the tensor that the call must write, or NULL if the call returns a new tensor. Formulas under the schema key `through` may read
        # `out`. Formulas under the key `formula` may read it if the operator has an in-place or out= form.
        self.names |= {"out": "Tensor"} if through or key == "formula" and operator.has_out else {}
        # A formula of forward mode may also read the results, and the tangent of one argument under the name <argument>_t.
        self.names |= {f"{tangent}_t": "Tensor"} | dict.fromkeys(operator.results, "Tensor") if tangent else {}
        self.saves = []
        self.called = set()  # names of operators that the formulas call
        self.places = {}  # maps the name of an argument without a C variable to its C expression
        # Maps each name that the schema key `where` defines and that already has a C variable to this variable, a Value.
        self.parts_named = {}
        # C loops for the lists [f(t) for t in tensors] in the formula line being translated; written before that line's C code
        self.loops = []
        self.in_place = None  # C calls of in-place operators that compute the formula (value_in_place), or None
        # `statements` are the C statements that must run before the current expression. `lazy` is above 0 while one side of ?: is translated. No
        # statement may be added there, because it would run whichever side is chosen.
        self.statements, self.lazy = [], 0

    def fail(self, message):
        return self.operator.error(message, self.key)

    def parse(self, text):
        try:
            return ast.parse(text.strip(), mode="eval").body
        except SyntaxError as error:
            raise self.fail(f"cannot read formula '{text}': {error.msg}") from None

    def lower(self, text):
        tree = self.parse(text)
        self.name_parts(tree)
        return self.expression(tree)

    def assigned(self, tree, assign):
        """Returns the C statements that compute a formula. assign(value) returns the statement that stores the value. A conditional expression
        becomes an if-else statement when one of its sides needs more than one statement."""
        self.name_parts(tree)
        if not isinstance(tree, ast.IfExp):
            value = self.expression(tree)
            statements, self.statements = self.statements, []
            return [*statements, assign(value)]
        known, test = dict(self.parts_named), self.truth(self.expression(tree.test))
        before, self.statements = self.statements, []
        sides = []
        for side in (tree.body, tree.orelse):
            sides.append(self.assigned(side, assign))
            self.parts_named = dict(known)
        if all(len(side) == 1 and "\n" not in side[0] for side in sides):
            return [*before, assign(self.expression(tree))]
        yes, no = (self.block(side) for side in sides)
        return [*before, f"if ({bare(test)}) {yes} else {no}"]

    @staticmethod
    def block(statements):
        """Returns the C statements in braces, on one line if there is only one short statement. A single `if` gets no braces."""
        if len(statements) == 1 and (statements[0].startswith("if (") or "\n" not in statements[0]):
            return statements[0] if statements[0].startswith("if (") else f"{{ {statements[0]} }}"
        return "{\n" + textwrap.indent("\n".join(statements), "    ") + "\n}"

    def parts_of(self, text, unconditional):
        """Returns the names under the schema key `where` that a formula reads. Includes the names that the definitions of these names read. If
        `unconditional` is true, skips both sides of each conditional expression, because only one of them is computed."""
        found = {name for name in names_read(self.parse(text), unconditional) if name in self.operator.where}
        return found.union(*(self.parts_of(self.operator.where[name], unconditional) for name in found))

    def name_parts(self, tree):
        """Declares a C variable for each name that a formula reads unconditionally and that the schema entry defines under `where`. A name that only
        one side of a conditional expression reads is computed in that side."""
        for name in names_read(tree):
            if name in self.operator.where and name not in self.parts_named:
                part = self.parse(self.operator.where[name])
                self.name_parts(part)
                value = self.operand(part)
                declared = C_TYPES.get(value.type, f"const {value.type} ")
                made = f"{declared}{value.c} = "
                # If operand() has already declared a variable for the value, this variable is renamed.
                if self.statements and self.statements[-1].startswith(made):
                    self.statements[-1] = f"{declared}{name} = {self.statements[-1].removeprefix(made)}"
                else:
                    self.statements.append(f"{declared}{name} = {value.c};")
                self.parts_named[name] = Value(name, value.type)

    def program(self, text):
        """Returns (C statements, list of C expressions) for `text`, an operator's formula. The list has one expression for each result."""
        try:
            *lines, last = ast.parse(textwrap.dedent(text).strip()).body
        except SyntaxError as error:
            raise self.fail(f"cannot read formula '{text}': {error.msg}") from None
        statements = []
        for line in lines:
            statements += [self.line(line)]
            statements[-1:-1], self.loops = self.loops, []
        if not isinstance(last, ast.Expr):
            raise self.fail(f"the last line of a formula is its value, not '{ast.unparse(last)}'")
        several = len(self.operator.results) > 1
        if several and isinstance(last.value, ast.Tuple):
            values = [self.convert(self.expression(item), "Tensor") for item in last.value.elts]
        else:
            value = self.expression(last.value)
            self.in_place = self.value_in_place(last.value)
            values = [self.convert(value, "Tensor[]" if self.operator.returns_list else "Tensor")] if not several else self.parts(value, statements)
        statements += self.loops
        if len(values) != len(self.operator.results):
            raise self.fail(f"{len(self.operator.results)} results are wanted, not {len(values)}")
        return "".join(statements), values

    def value_in_place(self, node):
        """Returns C calls of in-place operators that compute the value `node` of the operator's formula and write it to the operator's first
        argument. Returns None if `node` has no in-place form (see tree_in_place), or if the formula is under the schema key `through`."""
        tree = None if self.through or isinstance(node, ast.Name) else self.tree_in_place(node)
        return self.expression(tree).c if tree else None

    def tree_in_place(self, node):
        """Returns the expression `node` with calls replaced by their in-place forms, e.g. add(mul(self, x), y) by add_(mul_(self, x), y). Only the
        outermost call, the call that is its first argument, and so on are replaced. In a conditional expression both sides are replaced. Returns
        None if one of these calls has no in-place form, or if the innermost of them does not write to the first argument of self.operator."""
        if isinstance(node, ast.Name):
            return node if node.id == self.operator.args[0].name else None
        if isinstance(node, ast.IfExp):
            sides = [self.tree_in_place(side) for side in (node.body, node.orelse)]
            return ast.IfExp(node.test, *sides) if all(sides) else None
        callee = self.operators.get(node.func.id) if isinstance(node, ast.Call) else None
        first = self.tree_in_place(node.args[0]) if callee and "inplace" in callee.forms and node.args else None
        return ast.Call(ast.Name(callee.name + "_"), [first, *node.args[1:]], node.keywords) if first else None

    def line(self, node):
        """Returns the C code of one line of a formula: an assignment, a check or an early return."""
        if isinstance(node, ast.If) and self.through and [type(n) for n in node.body] == [ast.Return] and not node.orelse:
            return f"if ({self.truth(self.expression(node.test))})\n    return {self.convert(self.expression(node.body[0].value), 'Tensor')};\n{APART}"
        if isinstance(node, ast.Assert):
            is_not = isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)
            failed = self.truth(self.expression(node.test.operand)) if is_not else f"!{self.truth(self.expression(node.test))}"
            if self.operator.returns_list:
                return f"if ({failed})\n    return ((void){self.failure(node.msg)}, (grd_tensors){{0}});\n"
            if len(self.operator.results) == 1:
                return f"if ({failed})\n    return {self.failure(node.msg)};\n"
            all_failed = "".join(f"ret[{i}] = " for i in range(len(self.operator.results)))
            return f"if ({failed}) {{\n    {all_failed}{self.failure(node.msg)};\n    return;\n}}\n"
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
            raise self.fail(f"a line is 'name = value' or 'assert condition, text', not '{ast.unparse(node)}'")
        name, value = node.targets[0].id, self.expression(node.value)
        known, self.names[name] = self.names.get(name), value.type
        if known == value.type:
            return f"{name} = {value.c};\n"
        if known or not (value.type in C_TYPES or value.type.startswith("grd_")):
            raise self.fail(f"a value of type {value.type} cannot have the name '{name}'")
        return f"{C_TYPES.get(value.type, f'const {value.type} ')}{name} = {value.c};\n"

    def failure(self, node):
        """Returns the C call that raises the error of a failed check. `node` is the text of the check, which begins with the name of the exception
        and may be an f-string. If `node` is None, returns grd_failed, because the condition of the check has already raised the error."""
        if node is None:
            return "grd_failed"
        words = node.values if isinstance(node, ast.JoinedStr) else [node]
        text, values = "", []
        for word in words:
            if isinstance(word, ast.FormattedValue):
                value = self.expression(word.value)
                form, c = PRINTED[value.type]
                text, values = text + form, [*values, c.format(value.c)]
            else:
                text += word.value.replace("%", "%%")
        error, _, text = text.partition(": ")
        if error not in ERRORS:
            raise self.fail(f"the text of a check begins with {', '.join(ERRORS)}, not '{error}'")
        return f"grd_fail(GRD_ERROR_{ERRORS[error]}, {', '.join([json.dumps(text), *values])})"

    def parts(self, value, statements):
        """Returns the C expressions of the results of a call. If the operator has several results the call becomes a statement of its own."""
        if not value.type.startswith("grd_"):
            return [value.c]
        statements.append(f"const {value.type} made = {value.c};\n")
        callee = next(o for o in self.operators.values() if value.type == f"grd_{o.c_name}_result")
        return [f"made.{name}" for name in callee.results]

    def save(self, how, name, extra=""):
        save = Save(how, name, extra)
        if self.gradients and save not in self.saves:
            self.saves.append(save)
        return save.variable

    def done(self, value, start):
        """Returns a Value for use as an operand of a call. In a derivative, an operand that is computed from temporary tensors becomes a statement
        of its own, so that grd_formula_alone can release these temporaries before the call."""
        if not self.gradients or self.lazy or value.makes < 2:
            return value
        if start == len(self.statements) or not self.statements[start].startswith("const int64_t"):
            self.statements.insert(start, f"const int64_t mark{self.marks()} = grd_pool_mark();")
        mark = self.statements[start].split()[2]
        name = f"t{sum(s.startswith('grd_tensor') for s in self.statements)}"
        self.statements.append(f"grd_tensor *{name} = grd_formula_alone({mark}, {value.c});")
        return Value(name, "Tensor", makes=1)

    def marks(self):
        return sum(s.startswith("const int64_t") for s in self.statements)

    def operand(self, node):
        start = len(self.statements)
        return self.done(self.expression(node), start)

    def function(self, symbol):
        """Returns the name of the C function of the operator whose entry has this symbol."""
        found = next((o for o in self.operators.values() if o.symbol == symbol), None)
        if found is None:
            raise self.fail(f"no operator has the symbol '{symbol}'")
        return f"grd_{found.c_name}"

    @staticmethod
    def made(c, operands):
        """Returns the Value for the C call `c`, which computes a tensor from the operands. If an operand is a list of tensors, temporary tensors
        among the operands are not released right after the call."""
        return Value(c, "Tensor", makes=2 if any(o.makes for o in operands) and all(o.type != "Tensor[]" for o in operands) else 1)

    def expression(self, node):
        method = getattr(self, "on_" + type(node).__name__, None)
        if method is None:
            raise self.fail(f"formulas have no {type(node).__name__}: '{ast.unparse(node)}'")
        return method(node)

    def on_Constant(self, node):
        value = node.value
        kinds = {bool: "bool", int: "int", float: "float", str: "str", type(None): "None"}
        if type(value) not in kinds:
            raise self.fail(f"formulas have no constant like {value!r}")
        return Value("NULL" if value is None else ctype.literal(value), kinds[type(value)], value)

    def on_Name(self, node):
        name = node.id
        if name in self.parts_named:
            return self.parts_named[name]
        if self.gradients and name in self.operator.where:
            return self.expression(self.parse(self.operator.where[name]))
        if name in self.gradients:
            return Value(name, self.gradients[name])
        if name in self.places:
            return Value(self.places[name], self.names[name])
        if name in self.names:
            return Value(self.save("WHOLE", name), self.names[name])
        if name in self.results:
            return Value(self.save("WHOLE", name), "Tensor[]" if self.operator.returns_list else "Tensor")
        if name in ("inf", "nan"):
            return Value(ctype.literal(float(name)), "float")
        known = [*self.gradients, *self.names, *self.results]
        raise self.fail(f"unknown name '{name}'; known are {', '.join(known)}")

    def on_List(self, node):
        items = [self.expression(item) for item in node.elts]
        if any(item.type == "Tensor" for item in items):
            return Value(f"grd_tensors({', '.join(self.convert(i, 'Tensor') for i in items)})", "Tensor[]")
        return Value(ctype.dims([self.convert(i, "int") for i in items]), "dims")

    on_Tuple = on_List

    def on_ListComp(self, node):
        """Adds a C loop for [f(t) for t in tensors] and returns the Value of the resulting list."""
        loop = node.generators[0]
        if self.gradients or self.lazy or len(node.generators) > 1 or loop.ifs or not isinstance(loop.target, ast.Name) or loop.target.id in self.names:
            raise self.fail(f"a list is [f(t) for t in tensors], with a new name, made in any case: '{ast.unparse(node)}'")
        given, name, made = self.convert(self.expression(loop.iter), "Tensor[]"), loop.target.id, f"{loop.target.id}_made"
        self.names[name] = "Tensor"
        self.loops.append(fill(LOOP, given=given, name=name, made=made, value=self.convert(self.expression(node.elt), "Tensor")))
        return Value(f"grd_list_made({made}, {name}_given.n)", "Tensor[]")

    def on_Subscript(self, node):
        """Returns an element of a list of tensors or of sizes."""
        value = self.expression(node.value)
        if value.type not in ("Tensor[]", "dims"):
            raise self.fail(f"'{ast.unparse(node.value)}' is no list")
        index = self.arithmetic(self.expression(node.slice), "int")
        return Value(f"grd_list_at({value.c}, {index})", "Tensor") if value.type == "Tensor[]" else Value(f"grd_size_at({value.c}, {index})", "int")

    def on_UnaryOp(self, node):
        value = self.operand(node.operand)
        if isinstance(node.op, ast.Not):
            return Value(f"!{self.truth(value)}", "bool")
        if not isinstance(node.op, ast.USub):
            raise self.fail(f"formulas have no '{ast.unparse(node)}'")
        if value.type == "Tensor":
            return self.made(f"{self.function('unary -')}({value.c})", [value])
        literal = None if value.literal is None else -value.literal
        return Value(f"-{self.arithmetic(value)}", self.numeric(value), literal)

    def on_BinOp(self, node):
        if type(node.op) in INTEGER_SYMBOLS and not self.gradients:
            left, right = (self.arithmetic(self.expression(n), "int") for n in (node.left, node.right))
            return Value(f"({left} {INTEGER_SYMBOLS[type(node.op)]} {right})", "int")
        if type(node.op) not in SYMBOLS:
            raise self.fail(f"formulas have no operator like in '{ast.unparse(node)}'")
        symbol = SYMBOLS[type(node.op)]
        left, right = self.operand(node.left), self.operand(node.right)
        if symbol == "*" and self.gradients and sorted((left.type == "Tensor", right.type == "Tensor")) == [False, True]:
            return self.times(*((left, right) if left.type == "Tensor" else (right, left)))
        if "Tensor" in (left.type, right.type):
            return self.made(f"{self.function(symbol)}({self.convert(left, 'Tensor')}, {self.convert(right, 'Tensor')})", [left, right])
        if symbol == "**":
            raise self.fail(f"** needs a tensor: '{ast.unparse(node)}'")
        both = "int" if self.numeric(left) == self.numeric(right) == "int" and symbol != "/" else "float"
        return Value(f"({self.arithmetic(left, both)} {symbol} {self.arithmetic(right, both)})", both)

    def times(self, tensor, factor):
        """Returns the Value of tensor * factor. If the factor is an argument, the C function grd_formula_times skips the multiplication when the
        factor is 1, the usual default."""
        if factor.literal is not None:
            return self.made(f"{self.function('*')}({tensor.c}, {self.convert(factor, 'Tensor')})", [tensor])
        return Value(f"grd_formula_times({tensor.c}, {self.scalar(factor)})", "Tensor", makes=tensor.makes)

    def on_IfExp(self, node):
        test = self.truth(self.expression(node.test))
        self.lazy += 1
        yes, no = self.expression(node.body), self.expression(node.orelse)
        self.lazy -= 1
        kind = no.type if yes.type in ("None", "int", "float") else yes.type
        if yes.type == no.type and yes.type in ("int", "Scalar") and not self.gradients:
            return Value(f"({test} ? {yes.c} : {no.c})", yes.type)
        if kind in NUMERIC and "Tensor" not in (yes.type, no.type):
            return Value(f"({test} ? {self.arithmetic(yes, 'float')} : {self.arithmetic(no, 'float')})", "float")
        return Value(f"({test} ? {self.convert(yes, kind)} : {self.convert(no, kind)})", kind)

    def on_BoolOp(self, node):
        symbol = " && " if isinstance(node.op, ast.And) else " || "
        return Value(f"({symbol.join(self.truth(self.expression(v)) for v in node.values)})", "bool")

    def on_Compare(self, node):
        if len(node.ops) != 1:
            raise self.fail(f"chained comparison: '{ast.unparse(node)}'")
        if isinstance(node.ops[0], ast.In) and isinstance(node.comparators[0], (ast.Tuple, ast.List)):
            return self.expression(ast.BoolOp(ast.Or(), [ast.Compare(node.left, [ast.Eq()], [item]) for item in node.comparators[0].elts]))
        left, right, op = self.expression(node.left), self.expression(node.comparators[0]), type(node.ops[0])
        if op in (ast.Is, ast.IsNot):
            absent = self.absent(left)
            return Value(absent if op is ast.Is else f"!({absent})", "bool")
        if op not in COMPARE:
            raise self.fail(f"formulas have no comparison like '{ast.unparse(node)}'")
        if left.type == "dtype":
            return Value(f"({left.c} {COMPARE[op]} {self.convert(right, 'dtype')})", "bool")
        if "str" in (left.type, right.type):
            return Value(f"(strcmp({left.c}, {right.c}) {COMPARE[op]} 0)", "bool")
        return Value(f"({self.arithmetic(left)} {COMPARE[op]} {self.arithmetic(right)})", "bool")

    def on_Call(self, node):
        if not isinstance(node.func, ast.Name):
            raise self.fail(f"only operators can be called: '{ast.unparse(node.func)}'")
        name = node.func.id
        if name in FACTS:
            return self.fact(name, node)
        # If the argument is a number and the function has a version grd_scalar_<name>, which takes a grd_scalar, call that version.
        if f"scalar_{name}" in FUNCTIONS and isinstance(node.args[0], ast.Name) and self.names.get(node.args[0].id) in NUMERIC:
            return Value(f"grd_scalar_{name}({self.scalar(self.expression(node.args[0]))})", "Scalar")
        if name == "len" and not self.gradients:
            return Value(f"{self.expression(node.args[0]).c}.n", "int")
        if name in FUNCTIONS and name not in self.operators and not (self.gradients and is_of_tensors(*FUNCTIONS[name])):
            types, result = FUNCTIONS[name]
            if len(node.args) != len(types):
                raise self.fail(f"'{name}' takes {len(types)} arguments")
            return Value(f"grd_{name}({', '.join(self.convert(self.expression(a), t) for a, t in zip(node.args, types))})", result)
        callee = self.operators.get(name if self.gradients else name.removesuffix("_"))
        if callee is None or (name.endswith("_") and "inplace" not in callee.forms):
            raise self.fail(f"'{name}' is not an operator")
        return self.call(callee, node, "_" if name.endswith("_") or "functional" not in callee.forms else "")

    def on_Attribute(self, node):
        value = self.expression(node.value)
        if not value.type.startswith("grd_"):
            raise self.fail(f"'{ast.unparse(node.value)}' has no parts")
        return Value(f"{value.c}.{node.attr}", "Tensor", makes=1)

    def call(self, callee, node, form):
        self.called.add(callee.name)
        given = {}
        for argument, value in zip(callee.args, node.args):
            given[argument.name] = value
        if len(node.args) > len(callee.args):
            raise self.fail(f"'{callee.name}' takes {len(callee.args)} arguments")
        for keyword in node.keywords:
            if callee.arg(keyword.arg) is None or keyword.arg in given:
                raise self.fail(f"'{callee.name}' does not take '{keyword.arg}' here")
            given[keyword.arg] = keyword.value
        if self.through:
            words = [self.convert(self.expression(given[a.name]), argument_type(a)) if a.name in given else ctype.default(a) for a in callee.args]
            return Value(self.kernel_call(callee, words) if callee.kernel else f"op_{callee.c_name}({', '.join(['out', *words])})", "Tensor")
        if callee.kernel == "gradient":
            return Value(self.kernel_call(callee, [self.convert(self.expression(given[a.name]), argument_type(a)) for a in callee.args]), "Tensor")
        shortcut = callee.inlined if self.gradients and not any(a.has_default and a.name in given for a in callee.args) else ""
        words, options, operands = [], [], []
        for argument in callee.args:
            if argument.name in given:
                value = (self.expression if shortcut else self.operand)(given[argument.name])
                operands.append(value)
                if argument.has_default:
                    options.append(f".{argument.name} = {self.convert(value, argument_type(argument))}")
                else:
                    words.append(self.convert(value, argument_type(argument)))
            elif not argument.has_default:
                raise self.fail(f"'{callee.name}' needs '{argument.name}'")
        c = f"{shortcut or f'grd_{callee.c_name}{form}'}({', '.join(words + options)})"
        if shortcut:
            return Value(c, "Tensor", makes=max(o.makes for o in operands))
        if len(callee.results) > 1:
            return Value(c, f"grd_{callee.c_name}_result")
        return Value(c, "Tensor[]") if callee.returns_list else self.made(c, operands)

    @staticmethod
    def kernel_call(callee, words):
        """Returns the C call that runs the elementwise kernel of `callee` with the given tensors and numbers."""
        tensors = [word for word, argument in zip(words, callee.args) if argument.is_tensor]
        numbers = [word for word, argument in zip(words, callee.args) if not argument.is_tensor]
        params = f"&{numbers[0]}" if len(numbers) == 1 and numbers[0].isidentifier() else f"(const grd_scalar[]){{{', '.join(numbers)}}}" if numbers else "NULL"
        if callee.kernel == "gradient":
            return f"grd_op_gradient({', '.join([*tensors, *['NULL'] * (3 - len(tensors)), f'&{callee.elementwise}', params])})"
        return f"grd_op_{callee.kernel}({', '.join(['out', *tensors, f'&{callee.elementwise}', params])})"

    def fact(self, name, node):
        how, kind = FACTS[name]
        subject = node.args[0]
        if not isinstance(subject, ast.Name):
            raise self.fail(f"{name}(…) takes a name")
        if subject.id not in (*self.gradients, *self.names, *self.results, *self.parts_named):
            raise self.fail(f"unknown name '{subject.id}'")
        if subject.id in (*self.gradients, *self.parts_named) or not self.gradients:  # the tensor itself is available, so nothing need be saved
            if how not in FACT_OF_TENSOR:
                raise self.fail(f"{name}(…) is for derivatives, of an argument")
            return Value(FACT_OF_TENSOR[how].format(self.places.get(subject.id, subject.id)), kind)
        extra = node.args[1].id if how == "SIZES_ALONG" else ""
        return Value(self.save(how, subject.id, extra), kind)

    # ---- Conversions -------------------------------------------------------------------------------------------------

    @staticmethod
    def numeric(value):
        return "int" if value.type in ("int", "bool") else "float"

    def arithmetic(self, value, wanted=None):
        """Returns a number as a C expression of an arithmetic type. A grd_scalar is converted to int64_t if `wanted` is "int", otherwise to
        double."""
        if value.type not in NUMERIC:
            raise self.fail(f"'{value.c}' is a {value.type}, not a number")
        if value.type != "Scalar":
            return value.c
        return f"grd_scalar_{'int64' if wanted == 'int' else 'double'}({value.c})"

    def scalar(self, value):
        """Returns the C expression of type grd_scalar for `value`, which is a number or the constant None (an absent grd_scalar)."""
        if value.type == "None":
            return "(grd_scalar){0}"
        if value.type == "Scalar":
            return value.c
        return f"grd_{value.type}({self.arithmetic(value)})"

    def truth(self, value):
        if value.type in ("Tensor", "Tensor[]", "dims", "str"):
            raise self.fail(f"'{value.c}' is no condition; say 'is None' or compare")
        return self.arithmetic(value, "int") if value.type == "Scalar" else value.c

    def absent(self, value):
        if value.type == "dims":
            return f"{value.c}.data == NULL"
        if value.type == "dtype":
            return f"{value.c} == GRD_DTYPE_NONE"
        return f"{value.c}.kind == GRD_SCALAR_NONE" if value.type == "Scalar" else f"{value.c} == NULL"

    def convert(self, value, wanted):
        if wanted == "Scalar&" and value.type == "Scalar":
            return f"&{value.c}"
        if wanted == value.type or (value.type == "None" and wanted in ("Tensor", "str", "Generator")):
            return value.c
        if wanted == "Tensor" and value.type in NUMERIC:
            return f"grd_number({self.scalar(value)})"
        if wanted == "Scalar" and value.type in (*NUMERIC, "None"):
            return self.scalar(value)
        if wanted in ("int", "float", "bool") and value.type in NUMERIC:
            return self.arithmetic(value, wanted)
        if wanted == "dims":
            if value.type in ("int", "bool"):
                return ctype.dims([value.c])
            if value.type == "None":
                return "(grd_dims){0}"
        if wanted == "dtype" and value.type == "str":
            return f"GRD_{value.literal.upper()}"
        if wanted == "dtype" and value.type == "None":
            return "GRD_DTYPE_NONE"
        raise self.fail(f"'{value.c}' is a {value.type} where {wanted} is needed")

