"""Checks rules that a compiler does not check: which headers each folder of src may include, references to notes, exported symbols, forbidden calls,
formatting, and golden files. Also checks that the edits in test/mutants, by which `make mutate` tests the tests, fit the present code, and that no
function of the Python package passes the result of one operator to another."""
import ast
import graphlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import includes
import numerics

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from codegen import schema  # noqa: E402

OPERATORS = ("gradus/ops", "gradus/gradus.h")

# Folder of src (called a floor) -> prefixes of the headers that its files may include, besides headers of the C library. "The floors" in
# ARCHITECTURE.md explains the order of the folders.
FLOORS = {
    "base": ["base/", "gradus/export.h", "gradus/error.h", "gradus/types.h", "gradus/runtime.h"],
    "kernel": ["base/", "kernel/", "gradus/export.h", "gradus/types.h", "gen/unary_", "gen/binary_", "gen/ternary_", "gen/gradient_", "gen/lines_", "gen/cast_", "gen/kernel_levels.h"],
    "core": ["base/", "kernel/", "core/", "gradus/"],
    "dispatch": ["base/", "core/", "dispatch/", "gradus/"],
    "op": ["base/", "core/", "dispatch/", "op/", "kernel/", "gen/", "gradus/"],
    "autograd": ["base/", "core/", "dispatch/", "autograd/", "gen/uses/autograd/", "gradus/"],
    "transform": ["base/", "core/", "dispatch/", "transform/", "gen/uses/transform/", "gradus/"],
    "optim": ["base/", "core/", "optim/", "gen/uses/optim/", "gradus/"],
    "io": ["base/", "core/", "io/", "gen/uses/io/", "gradus/"],
    "api": ["base/", "core/", "dispatch/", "op/", "autograd/", "transform/", "io/", "kernel/", "gen/", "gradus/"],
}
NO_OPERATORS = ("base", "kernel", "core", "dispatch")
NO_CALLS = re.compile(r"(?<![\w.>])(abort|exit|_exit|longjmp|setjmp|assert)\s*\(")
NO_MALLOC = re.compile(r"(?<![\w.>])(malloc|calloc|realloc|free)\s*\(")


def sources(*folders):
    snapshots = ROOT / "test" / "golden"
    return [p for f in folders for p in sorted((ROOT / f).rglob("*")) if p.suffix in (".c", ".h") and snapshots not in p.parents]


def strip_comments(text):
    """Returns the text with comments and strings replaced by spaces, which preserves line numbers."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"'
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)


def check_extension():
    """Checks that the extension includes only public headers of the library. This proves that the public C API suffices to write the extension."""
    own = {p.name for p in (ROOT / "python" / "_C").glob("*.h")}
    for path in sources("python/_C"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if match and match[1] not in own and not match[1].startswith("gradus/"):
                yield f"{path.relative_to(ROOT)}:{number}: the extension may not include {match[1]}"


def check_circles():
    """Checks that the headers in one folder of src, or of the extension, do not include each other in a circle of any length. X.c and X.h count as
    one file."""
    for folder in ["python/_C", "src/kernel/cpu", *(f"src/{floor}" for floor in FLOORS)]:
        included = {}
        headers = {path.stem for path in (ROOT / folder).glob("*.h")}
        for path in [*(ROOT / folder).glob("*.c"), *(ROOT / folder).glob("*.h")]:
            names = set(re.findall(rf'#include "(?:{folder.removeprefix("src/")}/)?(\w+)\.h"', path.read_text()))
            included.setdefault(path.stem, set()).update(names & headers - {path.stem})
        try:
            graphlib.TopologicalSorter(included).prepare()
        except graphlib.CycleError as error:
            yield f"{folder}: files include each other in a circle: {', '.join(error.args[1])}"


def check_floors():
    for path in sources("src"):
        floor = path.relative_to(ROOT / "src").parts[0]
        allowed = FLOORS.get(floor)
        name = path.relative_to(ROOT)
        if allowed is None:
            yield f"{name}: '{floor}' is not a floor"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not match:
                continue
            target = match[1] if "/" in match[1] else f"{floor}/{match[1]}"
            if not any(target.startswith(prefix) for prefix in allowed):
                yield f"{name}:{number}: floor '{floor}' may not include {match[1]}"
            elif floor in NO_OPERATORS and target.startswith(OPERATORS):
                yield f"{name}:{number}: floor '{floor}' may not call operators"


def check_words():
    for path in sources("src/base"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if "tensor" in line.lower() and "#include" not in line:
                yield f"{path.relative_to(ROOT)}:{number}: the base floor does not know tensors"


def check_calls():
    for path in sources("src"):
        text = strip_comments(path.read_text())
        floor = path.relative_to(ROOT / "src").parts[0]
        for number, line in enumerate(text.splitlines(), 1):
            match = NO_CALLS.search(line) or (floor == "kernel" and NO_MALLOC.search(line))
            if match:
                yield f"{path.relative_to(ROOT)}:{number}: {match[1]} is not called in the library"


ELEMENT = r"(?:double|float|int(?:8|16|32)_t|uint(?:16|32|64)_t|grd_complex\w+)"
ANYTHING = rf"(?:{ELEMENT}|int64_t|uint8_t)"
# Files whose loops over elements have yet to move to src/kernel. Do not add a file here.
LOOPS_TO_MOVE = ("src/op/copy.c",)


def loops(text):
    """Yields (line number, text) of each for, while and do statement in the C code `text`."""
    for match in re.finditer(r"\b(for|while|do)\b", text):
        end = match.end()
        depth = 0
        while depth or text[end] not in ";}":
            depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(text[end], 0)
            end += 1
            if depth == 0 and text[end - 1] == "}":
                break
        yield text.count("\n", 0, match.start()) + 1, text[match.start():end]


def check_elements():
    """Checks that only src/kernel contains loops over elements. In src/op no cast pointer may be indexed by a variable, and no loop may
    dereference a pointer to elements or switch by dtype. A pointer to int64_t or uint8_t may also point to sizes or enumerators, so it counts as a
    pointer to elements only if it is the result of a cast."""
    chosen = re.compile(rf"\b{ANYTHING} \*\)[^;,]*\)\[[a-z]")
    for path in sources("src/op"):
        text = strip_comments(path.read_text())
        name = path.relative_to(ROOT)
        names = re.findall(rf"\b{ELEMENT} \*(?:restrict )?(\w+)", text) + re.findall(r"\b(?:int64_t|uint8_t) \*(\w+) = [^;]*\b(?:int64_t|uint8_t) \*\)", text)
        follows = re.compile(rf"(?<!\w)(?:{'|'.join(set(names)) or '-'})\[|\*\((?:const )?{ANYTHING} \*\)|\bcase GRD_[A-Z]+\d|"
                             r"memcpy\([^;]*itemsize\)")
        found = {text.count("\n", 0, match.start()) + 1 for match in chosen.finditer(text)}
        found |= {number + body.count("\n", 0, match.start()) for number, body in loops(text) for match in follows.finditer(body)}
        for number in sorted(found) if str(name) not in LOOPS_TO_MOVE else []:
            yield f"{name}:{number}: a loop over elements belongs to src/kernel"


def check_notes():
    files = [*sources("src", "include", "test"), *ROOT.glob("*.md"), *(ROOT / "codegen").glob("*.py"), *(ROOT / "schema").glob("*.toml")]
    texts = {p: p.read_text() for p in files}
    defined = {m for t in texts.values() for m in re.findall(r"^\s*/?[*#]?\s*Note \[([^\]]+)\]\s*$", t, flags=re.M)}
    for path, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            for name in re.findall(r"Note \[([^\]]+)\]", line):
                if name not in defined:
                    yield f"{path.relative_to(ROOT)}:{number}: there is no Note [{name}]"


def check_documents():
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"):
        path = ROOT / name
        lines = len(path.read_text().splitlines()) if path.exists() else 0
        if not 0 < lines <= 150:
            yield f"{name}: {lines} lines, not 1 to 150"


def check_symbols():
    library = ROOT / "build" / "release" / "libgradus.so"
    if not library.exists():
        yield "no release library is built: nothing to read the exported symbols of"
        return
    listing = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        symbol = line.split()[-1].split("@")[0]
        if not symbol.startswith("grd_"):
            yield f"{library.relative_to(ROOT)}: exports {symbol}"


def check_format():
    tool = shutil.which("clang-format")
    if not tool:
        yield "clang-format is missing: run make lint"
        return
    files = [str(p) for p in sources("src", "include", "python", "test", "examples", "bench")]
    result = subprocess.run([tool, "--dry-run", "-Werror", *files], capture_output=True, text=True)
    yield from sorted({line.split(": error")[0] + ": not formatted (make format)" for line in result.stderr.splitlines() if ": error" in line})[:20]


def check_snapshots():
    result = subprocess.run([sys.executable, "-m", "codegen.snapshots"], cwd=ROOT, capture_output=True, text=True)
    if result.returncode:
        yield result.stdout + result.stderr


def check_mutants():
    """Checks the mutants in test/mutants, the wrong edits by which `make mutate` tests the tests. The text that an edit replaces must occur exactly
    once in its file. The Python test files that should notice the edit must exist."""
    for path in sorted((ROOT / "test/mutants").glob("*.toml")):
        for mutant in tomllib.loads(path.read_text())["mutant"]:
            file = ROOT / mutant["file"]
            found = file.read_text().count(mutant["find"]) if file.exists() else 0
            if found != 1:
                yield f"{path.relative_to(ROOT)}: '{mutant['name']}' finds its text {found} times in {mutant['file']}"
            for test in mutant["tests"]:
                if ".py" in test and not (ROOT / "test/python" / test.split("::")[0]).exists():
                    yield f"{path.relative_to(ROOT)}: '{mutant['name']}' names {test}, which is not there"


def check_includes():
    yield from includes.check()


def check_numerics():
    yield from numerics.check()


def words_of_the_language():
    """Yields the words of the schema language, such as names of rules. They are in the tables of codegen/schema.py."""
    for name, table in vars(schema).items():
        if name.isupper() and isinstance(table, (set, tuple, dict)):
            for word in table:
                yield word
                if isinstance(table, dict) and isinstance(table[word], set):
                    yield from table[word]


def check_names():
    """Checks that the generator and the dispatcher contain no operator names. Everything particular to an operator must be a key of the operator's
    entry in schema/."""
    names = {name for name in schema.read_schema(ROOT / "schema") if len(name) > 1} - set(words_of_the_language())
    for path in sorted((ROOT / "codegen").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and node.value in names:
                yield f"{path.relative_to(ROOT)}:{node.lineno}: '{node.value}' is an operator, and the generator knows none by name: say it in the schema"
    for path in sources("src/dispatch"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for name in set(re.findall(r'"(\w+)"', line)) & names:
                yield f"{path.relative_to(ROOT)}:{number}: '{name}' is an operator, and the dispatcher knows none by name: say it in the schema"


def check_batches():
    """Checks that every operator has a rule for calls under vmap. The rule is in its schema entry, or follows from its `law`, or is not needed
    because the operators that it calls have rules."""
    for operator in schema.read_schema(ROOT / "schema").values():
        if operator.is_operator and operator.batch == "loop" and not operator.batch_reason:
            yield f"{operator.file}:{operator.line}: [{operator.name}] say how it is run for batch tensors: batch = \"<{', '.join(schema.BATCH_RULES)}, or a formula>\""


def check_bodies(root=ROOT):
    """Checks that every hand-written scalar body (the C function by which a kernel computes one element) belongs to an entry of the schema or is
    called by another scalar body."""
    operators = schema.read_schema(root / "schema").values()
    used = {f"{o.kernel}_{o.c_name}" for o in operators if o.kernel}
    for kind in schema.KERNELS:
        path = root / "src" / "kernel" / "cpu" / f"{kind}.c"
        text = strip_comments(path.read_text())
        defined = {m[1]: text.count("\n", 0, m.start(1)) + 1 for m in re.finditer(rf"^static [^\n;]*?\b({kind}_\w+)\([^;]*?\)\n", text, re.M)}
        calls = re.sub(r"^static .*", "", text, flags=re.M)
        for name, number in sorted(defined.items()):
            if name not in used and not re.search(rf"\b{name}\(", calls):
                yield f"{path.relative_to(root)}:{number}: {name} is left behind: no entry of the schema has this kernel"
    yield from unused_functions(root, " ".join(text for o in operators for text in o.body.values()))


def unused_functions(root, expressions):
    """Yields a problem for each function that a header of src/kernel declares and nothing uses. A function is used if its name occurs in an indented
    line of C (function bodies and tables are indented), in a schema entry or in a file of codegen."""
    texts = {p: strip_comments(p.read_text()) for p in sorted((root / "src").rglob("*.[ch]"))}
    inside = set(re.findall(r"\w+", " ".join(re.findall(r"^[ \t#\[].*", "\n".join(texts.values()), re.M)) + expressions))
    inside |= set(re.findall(r"\w+", " ".join(p.read_text() for p in (root / "codegen").glob("*.py"))))
    for path, text in texts.items():
        if path.suffix == ".h" and path.parent == root / "src" / "kernel":
            for match in re.finditer(r"^[\w ]+[ *](grd_\w+)\([^;{]*;", text, re.M):
                if match[1] not in inside and not match[0].startswith("typedef"):
                    yield f"{path.relative_to(root)}:{text.count(chr(10), 0, match.start(1)) + 1}: {match[1]} is left behind: nobody calls it"


def main():
    checks = [check_floors, check_extension, check_circles, check_words, check_calls, check_elements, check_notes, check_documents, check_symbols, check_format, check_snapshots,
              check_mutants, check_includes, check_numerics, check_names, check_batches, check_bodies]
    problems = [problem for check in checks for problem in check()]
    print("\n".join(problems) or f"lint: {len(checks)} checks, nothing found")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
