"""Writes the #include lines for operators in the C files of the Python extension. Each file then includes exactly the headers of the operators that
it calls, so that a new operator recompiles few files.

If a file already has such lines, `python tools/includes.py` replaces them at the position of the first one. Otherwise it writes them after the
other includes. `make lint` checks them. A file of the library does not need these lines, because it includes one generated header for all its
operators (codegen/uses.py).
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from codegen.headers import include  # noqa: E402
from codegen.schema import read_schema  # noqa: E402
from codegen.uses import wanted  # noqa: E402

OPERATOR = re.compile(r'#include "(gradus/ops(?:/\w+)?\.h)"[^\n]*\n')
ANY = re.compile(r"#include [^\n]*\n")


def sources():
    return sorted((ROOT / "python" / "_C").glob("*.[ch]"))


def check():
    operators = read_schema(ROOT / "schema")
    for path in sources():
        text = path.read_text()
        found, right = OPERATOR.findall(text), wanted(text, operators)
        if found != right:
            differing = ", ".join(sorted(set(found) ^ set(right))) or "their order"
            yield f"{path.relative_to(ROOT)}: includes of operators are wrong ({differing}): python tools/includes.py"


def rewrite(text, operators):
    lines = include(wanted(text, operators))
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
