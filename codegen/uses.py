"""gen/uses/op/norm.h: what src/op/norm.c includes of operators, which is the headers of those that it calls, implements or quotes the words of. So a new
operator, or a new word about one, builds few files again, and no file lists by hand what it calls."""
import re
from pathlib import Path

from codegen.headers import BANNER, family_name, include, needed

FOLDERS = ("op", "autograd", "transform", "optim", "io", "api")
COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)


def files(operators, src):
    """{relative path: text} for every file of the folders that asks for it."""
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
    """The headers of the families whose implementations a file has or calls."""
    words = set(re.findall(r"\b(?:op|plan|run|check|shortcut)_\w+(?=\()|\belementwise_\w+", code))
    return {f"gen/impl/{family_name(o.file)}.h" for o in operators.values() if not words.isdisjoint(parts(o))}


def parts(operator):
    """The functions that implement an operator."""
    names = {"op": True, "elementwise": operator.kernel, "plan": operator.planned and (not operator.law or operator.plan), "run": operator.planned and (operator.run or not operator.law),
             "check": operator.check, "shortcut": operator.shortcut and not operator.law}
    return {f"{part}_{name if part in ('run', 'check') and isinstance(name, str) else operator.c_name}" for part, name in names.items() if name}
