"""Generates the typing stubs of the extension: python/_C/stubs.pyi, which is written by hand, with the functions and methods of the schema inserted.

The lines "# schema: functions" and "# schema: methods" in stubs.pyi are replaced by definitions. A method that stubs.pyi already defines is not
generated. The functions of nn, linalg, special, fft and windows go into stub files of their own.
"""
import keyword
import re
from pathlib import Path

from codegen.python import functions
from codegen.schema import HOMES, INNER

# Maps the kind of a parameter to its type in the stubs. The names with an underscore are aliases that stubs.pyi defines, because a Tensor has methods
# and properties called int, float, dtype and so on.
TYPES = {"TENSOR": "Tensor", "TENSORS": "Sequence[Tensor]", "SCALAR": "Number", "INT": "_int", "FLOAT": "_float", "BOOL": "_bool",
         "DIMS": "Sequence[_int] | _int", "DTYPE": "_dtype | _type", "DEVICE": "_device | _str | _int", "STRING": "_str",
         "GENERATOR": "Generator", "OUT": "Tensor", "OUTS": "Sequence[Tensor]", "LAYOUT": "_layout", "PIN_MEMORY": "_bool", "SPARSE_GRAD": "_bool", "INPLACE": "_bool", "REDUCTION": "_int"}
MODULE_HEAD = """from builtins import bool as _bool, float as _float, int as _int, str as _str, type as _type
from collections.abc import Sequence
from typing import overload

from gradus._C import Generator, Number, Tensor, _device, _dtype, _layout, _memory_format

"""


def annotation(parameter):
    text = TYPES[re.sub("^(GRD|PY)_KIND_", "", parameter.kind)]
    if parameter.name == "memory_format":
        text = "_memory_format | _str"
    if "PY_NUMBER" in parameter.flags:
        text += " | Number"
    if "PY_NUMBERS" in parameter.flags:
        text += " | Sequence[_float]"
    if "PY_VALUE" in parameter.flags:
        text += " | Tensor"
    if "PY_NONE" in parameter.flags:
        text += " | None"
    return text


def argument(parameter):
    name = parameter.name + "_" * keyword.iskeyword(parameter.name)
    return f"{name}: {annotation(parameter)}" + ("" if parameter.default is None else f" = {parameter.default}")


def arguments(signature, home, loose):
    """Returns the parameter list of a Python def. If `loose` is true, the last positional parameter, a list of sizes, gets a star, as in
    *size. The caller can then pass the sizes as separate arguments."""
    words, star = [], False
    for index, parameter in enumerate(signature.parameters):
        if home == "method" and index == 0:
            words.append("self")
        elif loose and index == signature.positional - 1:
            words.append(f"*{parameter.name}: _int")
            star = True
        else:
            if parameter.keyword and not star:
                words.append("*")
                star = True
            words.append(argument(parameter))
    return ", ".join(words)


def result(signature):
    operator = signature.operator
    if signature.form == "inplace" or len(operator.results) == 1 and not operator.returns_list:
        return "Tensor"
    if operator.returns_list:
        return "tuple[Tensor, ...]"
    return f"tuple[{', '.join(['Tensor'] * len(operator.results))}]" if operator.python.get("tuple") else f"_{operator.name}_result"


def definition(function, indent):
    """Returns the Python def of a function, or an @overload for each of its signatures."""
    ways = [(s, loose) for s in function.signatures for loose in ((False, True) if s.loose else (False,))] + [(s, False) for s in function.others]
    name = function.name
    if keyword.iskeyword(name):
        return ""
    text = ""
    for signature, loose in ways:
        text += f"{indent}@overload\n" if len(ways) > 1 else ""
        text += f"{indent}def {name}({arguments(signature, function.home, loose)}) -> {result(signature)}: ...\n"
    return text


def named_tuples(found):
    operators = {s.operator.name: s.operator for f in found for s in f.signatures if len(s.operator.results) > 1 and not s.operator.python.get("tuple")}
    return "".join(f"class _{name}_result(NamedTuple):\n" + "".join(f"    {field}: Tensor\n" for field in operator.results) + "\n"
                   for name, operator in operators.items())


def module(definitions):
    """Returns the text of a stub module with the given definitions. The module imports the classes of results from gradus._C."""
    results = sorted(set(re.findall(r"-> (_\w+_result)", definitions)))
    return MODULE_HEAD + (f"from gradus._C import {', '.join(results)}\n\n" if results else "") + definitions


def files(operators, folder):
    found = list(functions(operators).values())
    of = {home: [f for f in found if f.home == home] for home in HOMES}
    hand = (Path(folder) / "stubs.pyi").read_text()
    hand = hand.replace("# schema: functions\n", named_tuples(found) + "".join(definition(f, "") for f in of["function"]))
    by_hand = re.findall(r"^    def (\w+)", hand.partition("class Tensor:")[2], re.M)
    hand = hand.replace("    # schema: methods\n", "".join(definition(f, "    ") for f in of["method"] if f.name not in by_hand))
    modules = {f"python/gradus/_C/{home}.pyi": module("".join(definition(f, "") for f in of[home])) for home in INNER}
    return {"python/gradus/_C/__init__.pyi": hand, **modules}
