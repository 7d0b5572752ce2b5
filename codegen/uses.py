"""Generates the headers in gen/uses. For example, gen/uses/op/norm.h includes the headers of the operators that src/op/norm.c calls or implements.
So nobody maintains such lists by hand, and a new operator recompiles few files."""
import re
from pathlib import Path

from codegen.headers import BANNER, family_name, include, needed

FOLDERS = ("op", "autograd", "transform", "optim", "io", "api")
COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)


def files(operators, src):
    """Returns {relative path: text} of the gen/uses headers, with one header for every C file in FOLDERS that includes a gen/uses header of its own
    name."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((Path(src) / folder).glob("*.[ch]")):
            text, name = path.read_text(), f"gen/uses/{folder}/{path.stem}.h"
            if f'#include "{name}"' in text:
                found[name] = BANNER.format(f"what src/{folder}/{path.name} calls") + include(wanted(text, operators))
    return found


def wanted(text, operators):
    code = COMMENT_OR_TEXT.sub(" ", text)
    headers = needed(code, operators) | implementations(code, operators) | ({"gen/words.h"} if "GRD_WORDS_" in code else set())
    return sorted(headers, key=lambda path: (path.startswith("gen"), path))


def implementations(code, operators):
    """Returns the gen/impl headers that the C code `code` needs. There is one such header for each schema file. It is needed if `code`
    implements an operator of that file, or calls such an operator without dispatch, through op_<name>."""
    words = set(re.findall(r"\b(?:op|plan|run|check|shortcut)_\w+(?=\()|\belementwise_\w+", code))
    return {f"gen/impl/{family_name(o.file)}.h" for o in operators.values() if not words.isdisjoint(parts(o))}


def parts(operator):
    """Returns the names of the C functions and structs that implement an operator."""
    names = {"op": True, "elementwise": operator.kernel, "plan": operator.planned and (not operator.law or operator.plan), "run": operator.planned and (operator.run or not operator.law),
             "check": operator.check, "shortcut": operator.shortcut and not operator.law}
    return {f"{part}_{name if part in ('run', 'check') and isinstance(name, str) else operator.c_name}" for part, name in names.items() if name}
