"""Each file of the tree includes the headers of the operators that it calls or implements, and no others: then a new operator builds few files again.

`python tools/includes.py` writes these lines, where the first of them stands or after the other includes; `check` is a part of `make lint`.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from codegen.headers import family_name, needed  # noqa: E402
from codegen.schema import read_schema  # noqa: E402

FOLDERS = ("src/op", "src/autograd", "src/optim", "src/io", "src/api", "python/_C")
OPERATOR = re.compile(r'#include "((?:gradus/ops|gen/ops|gen/impl)/\w+\.h|gen/words\.h|gradus/ops\.h|gen/hidden_ops\.h|gen/op_impl\.h)"[^\n]*\n')
ANY = re.compile(r"#include [^\n]*\n")
WORDS = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)


def sources():
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.[ch]"))]


def wanted(text, operators):
    code = WORDS.sub(" ", text)
    found = needed(code, operators) | implementations(code, operators) | ({"gen/words.h"} if "GRD_WORDS_" in code else set())
    return sorted(found, key=lambda path: (path.startswith("gen"), path))


def implementations(code, operators):
    """The headers of the families whose implementations a file has or calls."""
    words = set(re.findall(r"\b(?:op|plan|run|check|shortcut)_\w+(?=\()", code))
    return {f"gen/impl/{family_name(o.file)}.h" for o in operators.values() if not words.isdisjoint(parts(o))}


def parts(operator):
    """The functions that implement an operator."""
    names = {"op": True, "plan": operator.planned and not operator.law, "run": operator.planned and not operator.law and (operator.run or True),
             "check": operator.check, "shortcut": operator.shortcut and not operator.law}
    return {f"{part}_{name if isinstance(name, str) else operator.c_name}" for part, name in names.items() if name}


def check():
    operators = read_schema(ROOT / "schema")
    for path in sources():
        text = path.read_text()
        found, right = OPERATOR.findall(text), wanted(text, operators)
        if found != right:
            differing = ", ".join(sorted(set(found) ^ set(right))) or "their order"
            yield f"{path.relative_to(ROOT)}: includes of operators are wrong ({differing}): python tools/includes.py"


def rewrite(text, operators):
    lines = "".join(f'#include "{path}"\n' for path in wanted(text, operators))
    first = OPERATOR.search(text)
    rest = OPERATOR.sub("", text)
    at = first.start() if first else max((match.end() for match in ANY.finditer(rest)), default=0)
    return rest[:at] + lines + rest[at:]


def main():
    operators = read_schema(ROOT / "schema")
    for path in sources():
        text = path.read_text()
        changed = rewrite(text, operators)
        if changed != text:
            path.write_text(changed)


if __name__ == "__main__":
    main()
