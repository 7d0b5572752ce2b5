"""The formula language: a subset of Python expressions, lowered to C operator calls.

Names are arguments, results and gradients; operators are + - * / ** and unary minus; calls are operators of the schema or the facts
shape(x), strides(x), offset(x), dtype(x), device(x), sizes_along(xs, dim), of which only the fact is saved. See DESIGN §4.
The formula of an operator may also ask for ndim(x), numel(x), size(x, dim), is_complex(x), and for one of several results: sort(x).indices.
"""
import ast
from dataclasses import dataclass

from codegen import ctype

SYMBOLS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}  # the operators that have them say so in the schema
FACTS = {"shape": ("SHAPE", "dims"), "strides": ("STRIDES", "dims"), "offset": ("OFFSET", "int"), "dtype": ("DTYPE", "dtype"),
         "device": ("DEVICE", "device"), "sizes_along": ("SIZES_ALONG", "dims")}
FACT_OF_TENSOR = {"SHAPE": "grd_sizes({0})", "STRIDES": "grd_strides({0})", "OFFSET": "grd_offset({0})", "DTYPE": "grd_tensor_dtype({0})",
                  "DEVICE": "grd_tensor_device({0})"}
AT_HAND = {"ndim": ("{0}->ndim", "int"), "numel": ("{0}->numel", "int"), "size": ("grd_size({0}, {1})", "int"),
           "is_complex": ("grd_dtype_is_complex((grd_dtype){0}->dtype)", "bool")}  # what is never saved
COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
NUMERIC = ("int", "float", "bool", "Scalar")


@dataclass(frozen=True)
class Value:
    """A C expression and its type: Tensor, Tensor[], Scalar, int, float, bool, dims, dtype, device, str, Generator, None."""
    c: str
    type: str
    literal: object = None
    makes: int = 0  # 1: a call that makes a tensor; 2: of such, whose results are then done with


@dataclass(frozen=True)
class Save:
    """A value the backward needs: what (argument or result), which and how."""
    how: str
    name: str
    extra: str = ""

    @property
    def variable(self):
        return self.name if self.how == "WHOLE" else f"{self.name}_{self.how.lower()}"


def argument_type(argument):
    if argument.list:
        return "Tensor[]" if argument.kind == "Tensor" else "dims"
    return "Scalar" if ctype.of(argument)[0] == "grd_scalar " else argument.kind


class Lowering:
    """Lowers the formulas of one operator; collects what must be saved."""

    def __init__(self, operator, operators, key, gradients=()):
        self.operator, self.operators, self.key = operator, operators, key
        self.names = {a.name: argument_type(a) for a in operator.args}
        self.gradients = dict(gradients)  # name -> type; never saved
        self.results = operator.results if gradients else []
        self.saves = []
        self.statements, self.lazy = [], 0  # what goes before the expression; not where it may not be evaluated

    def fail(self, message):
        return self.operator.error(message, self.key)

    def lower(self, text):
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except SyntaxError as error:
            raise self.fail(f"cannot read formula '{text}': {error.msg}") from None
        return self.expression(tree)

    def save(self, how, name, extra=""):
        save = Save(how, name, extra)
        if self.gradients and save not in self.saves:
            self.saves.append(save)
        return save.variable

    def done(self, value, start):
        """A value that a call is going to read. In a derivative, what it was made of goes first: its own call becomes a statement."""
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
        """The C function of the operator that has this symbol."""
        found = next((o for o in self.operators.values() if o.symbol == symbol), None)
        if found is None:
            raise self.fail(f"no operator has the symbol '{symbol}'")
        return f"grd_{found.c_name}"

    @staticmethod
    def made(c, operands):
        """A call that makes a tensor of the operands. The list of several results lives as long as what they were made of."""
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
        if name in self.gradients:
            return Value(name, self.gradients[name])
        if name in self.names:
            return Value(self.save("WHOLE", name), self.names[name])
        if name in self.results:
            return Value(self.save("WHOLE", name), "Tensor[]" if self.operator.returns_list else "Tensor")
        if name in ("nan", "inf") and not self.gradients:
            return Value(ctype.literal(float(name)), "float", float(name))
        known = [*self.gradients, *self.names, *self.results]
        raise self.fail(f"unknown name '{name}'; known are {', '.join(known)}")

    def on_List(self, node):
        items = [self.expression(item) for item in node.elts]
        if any(item.type == "Tensor" for item in items):
            return Value(f"grd_tensors({', '.join(self.convert(i, 'Tensor') for i in items)})", "Tensor[]")
        return Value(ctype.dims([self.convert(i, "int") for i in items]), "dims")

    on_Tuple = on_List

    def on_UnaryOp(self, node):
        value = self.operand(node.operand)
        if isinstance(node.op, ast.Not):
            return Value(f"!{self.truth(value)}", "bool")
        if not isinstance(node.op, ast.USub):
            raise self.fail(f"formulas have no '{ast.unparse(node)}'")
        if value.type == "Tensor":
            return self.made(f"{self.function('unary -')}({value.c})", [value])
        literal = None if value.literal is None else -value.literal
        return Value(f"-{self.plain(value)}", self.numeric(value), literal)

    def on_BinOp(self, node):
        if type(node.op) not in SYMBOLS:
            raise self.fail(f"formulas have no operator like in '{ast.unparse(node)}'")
        symbol = SYMBOLS[type(node.op)]
        left, right = self.operand(node.left), self.operand(node.right)
        if "Tensor" in (left.type, right.type):
            return self.made(f"{self.function(symbol)}({self.convert(left, 'Tensor')}, {self.convert(right, 'Tensor')})", [left, right])
        if symbol == "**":
            raise self.fail(f"** needs a tensor: '{ast.unparse(node)}'")
        both = "int" if self.numeric(left) == self.numeric(right) == "int" and symbol != "/" else "float"
        return Value(f"({self.plain(left, both)} {symbol} {self.plain(right, both)})", both)

    def on_IfExp(self, node):
        test = self.truth(self.expression(node.test))
        self.lazy += 1
        yes, no = self.expression(node.body), self.expression(node.orelse)
        self.lazy -= 1
        kind = no.type if yes.type in ("None", "int", "float") else yes.type
        if kind in NUMERIC and "Tensor" not in (yes.type, no.type):
            return Value(f"({test} ? {self.plain(yes, 'float')} : {self.plain(no, 'float')})", "float")
        return Value(f"({test} ? {self.convert(yes, kind)} : {self.convert(no, kind)})", kind)

    def on_BoolOp(self, node):
        symbol = " && " if isinstance(node.op, ast.And) else " || "
        return Value(f"({symbol.join(self.truth(self.expression(v)) for v in node.values)})", "bool")

    def on_Compare(self, node):
        if len(node.ops) != 1:
            raise self.fail(f"chained comparison: '{ast.unparse(node)}'")
        left, right, op = self.expression(node.left), self.expression(node.comparators[0]), type(node.ops[0])
        if op in (ast.Is, ast.IsNot):
            absent = self.absent(left)
            return Value(absent if op is ast.Is else f"!({absent})", "bool")
        if op not in COMPARE:
            raise self.fail(f"formulas have no comparison like '{ast.unparse(node)}'")
        if "str" in (left.type, right.type):
            return Value(f"(strcmp({left.c}, {right.c}) {COMPARE[op]} 0)", "bool")
        return Value(f"({self.plain(left)} {COMPARE[op]} {self.plain(right)})", "bool")

    def on_Call(self, node):
        if not isinstance(node.func, ast.Name):
            raise self.fail(f"only operators can be called: '{ast.unparse(node.func)}'")
        name = node.func.id
        if name in FACTS:
            return self.fact(name, node)
        if name in AT_HAND:
            return self.at_hand(name, node)
        callee = self.operators.get(name)
        if callee is None:
            raise self.fail(f"'{name}' is not an operator")
        if len(callee.results) > 1:
            raise self.fail(f"'{name}' has several results; a formula needs one")
        return self.call(callee, node)

    def on_Attribute(self, node):
        """One of several results of an operator."""
        callee = self.operators.get(node.value.func.id) if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name) else None
        if self.gradients or callee is None or len(callee.results) < 2 or node.attr not in callee.results:
            raise self.fail(f"'{ast.unparse(node)}' is not one of several results of an operator")
        return Value(f"{self.call(callee, node.value).c}.{node.attr}", "Tensor", makes=1)

    def call(self, callee, node):
        given = {}
        for argument, value in zip(callee.args, node.args):
            given[argument.name] = value
        if len(node.args) > len(callee.args):
            raise self.fail(f"'{callee.name}' takes {len(callee.args)} arguments")
        for keyword in node.keywords:
            if callee.arg(keyword.arg) is None or keyword.arg in given:
                raise self.fail(f"'{callee.name}' does not take '{keyword.arg}' here")
            given[keyword.arg] = keyword.value
        shortcut = callee.inlined if self.gradients else ""
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
        form = "" if "functional" in callee.forms else "_"
        c = f"{shortcut or f'grd_{callee.c_name}{form}'}({', '.join(words + options)})"
        if shortcut:
            return Value(c, "Tensor", makes=max(o.makes for o in operands))
        return Value(c, "Tensor[]") if callee.returns_list else self.made(c, operands)

    def fact(self, name, node):
        how, kind = FACTS[name]
        subject = node.args[0]
        if not isinstance(subject, ast.Name):
            raise self.fail(f"{name}(…) takes a name")
        if subject.id not in (*self.gradients, *self.names, *self.results):
            raise self.fail(f"unknown name '{subject.id}'")
        if subject.id in self.gradients or not self.gradients:  # at hand: nothing to save
            if how not in FACT_OF_TENSOR:
                raise self.fail(f"{name}(…) is for derivatives, of an argument")
            return Value(FACT_OF_TENSOR[how].format(subject.id), kind)
        extra = node.args[1].id if how == "SIZES_ALONG" else ""
        return Value(self.save(how, subject.id, extra), kind)

    def at_hand(self, name, node):
        if self.gradients:
            raise self.fail(f"{name}(…) is for the formula of an operator, not for a derivative")
        tensor, *rest = [self.expression(argument) for argument in node.args]
        c, kind = AT_HAND[name]
        return Value(c.format(self.convert(tensor, "Tensor"), *(self.plain(value, "int") for value in rest)), kind)

    # ---- conversions -------------------------------------------------------------------------------------------------

    @staticmethod
    def numeric(value):
        return "int" if value.type in ("int", "bool") else "float"

    def plain(self, value, wanted=None):
        """A C number."""
        if value.type not in NUMERIC:
            raise self.fail(f"'{value.c}' is a {value.type}, not a number")
        if value.type != "Scalar":
            return value.c
        return f"grd_scalar_{'int64' if wanted == 'int' else 'double'}({value.c})"

    def scalar(self, value):
        """A grd_scalar."""
        if value.type == "None":
            return "(grd_scalar){0}"
        if value.type == "Scalar":
            return value.c
        return f"grd_{value.type}({self.plain(value)})"

    def truth(self, value):
        if value.type in ("Tensor", "Tensor[]", "dims", "str"):
            raise self.fail(f"'{value.c}' is no condition; say 'is None' or compare")
        return self.plain(value, "int") if value.type == "Scalar" else value.c

    def absent(self, value):
        if value.type == "dims":
            return f"{value.c}.data == NULL"
        return f"{value.c}.kind == GRD_SCALAR_NONE" if value.type == "Scalar" else f"{value.c} == NULL"

    def convert(self, value, wanted):
        if wanted == value.type or (value.type == "None" and wanted in ("Tensor", "str", "Generator")):
            return value.c
        if wanted == "Tensor" and value.type in NUMERIC:
            return f"grd_number({self.scalar(value)})"
        if wanted == "Scalar" and value.type in (*NUMERIC, "None"):
            return self.scalar(value)
        if wanted in ("int", "float", "bool") and value.type in NUMERIC:
            return self.plain(value, wanted)
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

