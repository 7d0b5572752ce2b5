"""Finds the definitions of C functions, macros and kernels in the tree. No compiler is needed, because the search relies on the layout that
clang-format produces.

Generated files are included if they exist in build/release.
"""
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GENERATED = "build/release/gen"
# Patterns of definitions, which begin in the first column. The name of a kernel is wrapped in GRD_TYPED or GRD_AT_LEVEL, which append the dtype or
# the instruction-set level.
FUNCTION = re.compile(r"^(?:[A-Za-z_][\w \t*()]*?[ *])?(\w+)\(([^;{}=]*)\)\s*\{", re.M)
MACRO = re.compile(r"^#define (\w+)\(.*(?:\\\n.*)*", re.M)
VARIABLE = re.compile(r"^(?:static )?const struct \w+ (\w+)(?:\[\w*\])* =(?= \{)", re.M)
KERNEL = re.compile(r"^(?!extern)\w.*?\bGRD_(?:TYPED|AT_LEVEL)\((\w+)\)[^{;]*?(?= \{|\n\{)", re.M)
NO_CODE = re.compile(r"/\*.*?\*/|__attribute__\(\(.*?\)\)", re.S)
# Kernels and functions that any operator may call. They are left out of the lists of functions that belong to one operator.
SHARED_KERNELS = ("src/kernel/table.h", "src/kernel/map.h", "src/kernel/map.c", "src/kernel/bytes.h")
SHARED_FUNCTIONS = ("grd_plan_", "grd_copy_", "grd_op_", "op_")


@dataclass(frozen=True)
class Place:
    """A line of a file that contains `name`. `path` is relative to the root of the tree."""
    path: str
    line: int
    name: str
    note: str = ""


@dataclass(frozen=True)
class Definition:
    """A definition of a C name. `body` is the text from the name to the end of the definition. A local (static) definition is visible only in its
    own file."""
    path: str
    line: int
    name: str
    body: str
    is_local: bool = False

    @cached_property
    def words(self):
        return list(dict.fromkeys(re.findall(r"\w+", self.body)))

    def place(self, note=""):
        return Place(self.path, self.line, self.name, note)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def without_comments(text):
    """Returns the text with comments and attributes replaced by spaces, which preserves line numbers."""
    return NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def body(code, start):
    """Returns the text of a definition from `start` to the end of the line if the definition ends there, otherwise to the first closing brace in
    the first column."""
    line = code[start:code.find("\n", start)]
    return line if re.search(r"\};?$", line) else code[start:code.find("\n}", start)]


def definitions(path, text):
    """Yields a Definition for each definition in the text of the file `path`."""
    code = without_comments(text)
    for pattern in (FUNCTION, MACRO, VARIABLE, KERNEL):
        for match in pattern.finditer(code):
            is_local = path.endswith(".c") and pattern in (FUNCTION, VARIABLE) and re.match("static|[A-Z]", match[0]) is not None
            yield Definition(path, line_of(code, match.start(1)), match[1], match[0].partition(")")[2] if pattern is MACRO else body(code, match.end()), is_local)


class Sources:
    """The source files below a root folder, with searches that are cached."""

    def __init__(self, root=ROOT):
        self.root = root

    def paths(self, *patterns):
        return [str(path.relative_to(self.root)) for pattern in patterns for path in sorted(self.root.glob(pattern))]

    @cache
    def text(self, path):
        """Returns the text of a file, or "" if it does not exist."""
        return (self.root / path).read_text() if (self.root / path).exists() else ""

    @cache
    def lines(self, path):
        return self.text(path).splitlines()

    @cache
    def first_lines(self, path):
        """Returns {word: number of the first line of the file that contains the word}."""
        found = {}
        for number, line in enumerate(self.lines(path), 1):
            for word in re.findall(r"\w+", line):
                found.setdefault(word, number)
        return found

    def mention(self, path, word, note):
        """Returns a list with a Place for the first line of the file that contains the word, or [] if no line does."""
        line = self.first_lines(path).get(word)
        return [Place(path, line, word, note)] if line else []

    @cached_property
    def defined(self):
        """Returns {name: [Definition]}, with the definitions in hand-written files first."""
        found = {}
        for path in self.paths("src/**/*.[ch]", f"{GENERATED}/*.[ch]"):
            for one in definitions(path, self.text(path)):
                found.setdefault(one.name, []).append(one)
        return found

    def definitions_of(self, name, folder="src/", path=None):
        """Returns the definitions of `name` below a folder that are visible in the file `path`. These are the definitions in that file or, if it
        has none, all definitions that are not local."""
        found = [d for d in self.defined.get(name, []) if d.path.startswith(folder)]
        return [d for d in found if d.path == path] or [d for d in found if not d.is_local]

    def generated(self, *names):
        return [d.place("generated") for name in names for d in self.defined.get(name, []) if d.path.startswith(GENERATED)]

    def reached(self, starts):
        """Returns the Definitions `starts`, and the Definitions of all functions of src/op that they call or pass as pointers, directly or
        indirectly, except SHARED_FUNCTIONS."""
        found, left = {}, list(starts)
        while left:
            one = left.pop(0)
            if (one.path, one.line) not in found:
                found[one.path, one.line] = one
                left += [d for word in one.words for d in self.definitions_of(word, "src/op/", one.path) if d.path == one.path or not word.startswith(SHARED_FUNCTIONS)]
        return list(found.values())

    # ---- Kernels -------------------------------------------------------------------------------------------------------------------

    @cached_property
    def tables(self):
        """Returns {member of struct grd_kernel_table: name}. A member points to a struct of kernels, e.g. grd_order_row, or to a single kernel, e.g.
        grd_transpose. The name is that of the struct or kernel."""
        text = self.text("src/kernel/table.h").partition("struct grd_kernel_table {")[2].partition("\n};")[0]
        return {name: f"grd_{name}" for name in re.findall(r"\*(\w+)\[", text)} | {name: row for row, name in re.findall(r"const struct (\w+) \*(\w+)", text)}

    @cached_property
    def members(self):
        """Returns {name of a struct of kernels: [(member, Definition of its function)]}, e.g. for grd_order_row the members rank, sort and so on. If
        a macro generates the function, the Definition is the line that initializes the member."""
        found = {}
        for one in (d for ds in self.defined.values() for d in ds if d.path.startswith("src/kernel/cpu/") and d.body.startswith(" {")):
            for match in re.finditer(r"\.(\w+) =([^.]*)", one.body):
                functions = [d for word in re.findall(r"[a-z]\w+", match[2]) for d in self.definitions_of(word, "src/kernel/cpu/", one.path)]
                if not functions and re.search(r"\b[a-z]\w*\b(?!\()", match[2]):
                    functions = [Definition(one.path, one.line + one.body.count("\n", 0, match.start()), match[1], "")]
                found.setdefault(one.name, []).extend((match[1], d) for d in functions)
        return found

    def kernels_of(self, functions):
        """Returns the Places of the kernels that `functions` use. Kernels in the table grd_kernels are found by the names of the table's members. The
        other functions of src/kernel are found by their own names."""
        text, found = "\n".join(one.body for one in functions), []
        read = set(re.findall(r"(?:->|\.)(\w+)", text))
        for table in dict.fromkeys(re.findall(r"grd_kernels->(\w+)", text)):
            row = self.tables.get(table)
            found += [d.place(f"{table}->{member}") for member, d in self.members.get(row, []) if member in read] or [d.place(table) for d in self.definitions_of(row, "src/kernel/cpu/")]
        called = [d for word in dict.fromkeys(re.findall(r"\bgrd_\w+(?=[(,)])", text)) for d in self.definitions_of(word, "src/kernel/")]
        return found + [d.place() for d in called if d.path not in SHARED_KERNELS and "/cpu/" not in d.path]

    @cache
    def included(self, path):
        """Returns `path` and all files of src/kernel and src/base that it includes, directly or indirectly."""
        found, left = [], [path]
        while left:
            if (path := left.pop()) not in found:
                found.append(path)
                left += [f"src/{name}" for name in re.findall(r'#include "((?:kernel|base)/[^"]+)"', self.text(path))]
        return found

    def bodies(self, text, file):
        """Returns the functions whose names occur in `text`, the code of a kernel in `file`. For a _Generic macro, all functions among which it
        chooses are included."""
        found = []
        for word in dict.fromkeys(re.findall(r"\w+", text)):
            for one in (d for d in self.defined.get(word, []) if d.path in self.included(file)):
                chosen = [d for w in one.words for d in self.defined.get(w, []) if d.path in self.included(file) and w != word] if one.body.lstrip().startswith("_Generic") else []
                found += [one.place(), *(d.place() for d in chosen)]
        return found

    def reduction(self, word):
        """Yields the Places of the kernels of the reduction whose enumerator is `word`. For example, for GRD_REDUCE_SUM these Places are the line
        `[GRD_REDUCE_SUM] = {sum_lines, sum_columns, ...}` in the initializer of grd_reduce_row, and the functions that this line names."""
        for row in self.defined.get("grd_reduce_row", []):
            for match in re.finditer(rf"\[{word}\] = (.*?)(?=,\n|\n *\}})", row.body, re.S):
                yield Place(row.path, row.line + row.body.count("\n", 0, match.start()), word, match[1])
                yield from (d.place() for name in re.findall(r"\w+", match[1]) for d in self.defined.get(name, []) if d.path == row.path)
