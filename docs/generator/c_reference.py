"""Generates the C reference: a page per public header, from its comments, and a page per family of operators, from the schema."""
import re

from codegen.schema import read_schema

C_KINDS = {"Tensor": "grd_tensor *", "Scalar": "number", "int": "int64_t", "float": "double", "bool": "bool", "dtype": "grd_dtype", "device": "grd_device",
           "str": "const char *", "Generator": "grd_generator *"}
LISTS = {"Tensor": "grd_tensors", "int": "grd_dims"}


# ---- Headers ---------------------------------------------------------------------------------------------------------------------


def comment_text(comment):
    """Returns a C comment as Markdown: its lines without the stars, with indented lines as a block of code."""
    body = re.sub(r"^/\*+ ?|\s*\*/$", "", comment.strip())
    lines = [re.sub(r"^ ?\* ?", "", line) if number else line for number, line in enumerate(body.split("\n"))]
    text = []
    for line in lines:
        code = line.startswith("    ")
        if code != bool(text and text[-1].startswith("    ")):
            text.append("")
        text.append(line if code else line.strip())
    return "\n".join(text)


def section_title(comment):
    match = re.fullmatch(r"/\* -{3,} (.+?) -{3,} \*/", comment.strip())
    return match and match[1]


def without_guards(text):
    """Returns the text of a header without its include guard, its includes and the macros for linkage."""
    skipped = re.compile(r"#(ifndef|define) GRADUS_\w+_H\s*$|#include .*|GRD_(BEGIN|END)_DECLS\s*$")
    lines = [line.removeprefix("GRD_API ") for line in text.split("\n") if not skipped.match(line)]
    while lines and lines[-1] in ("", "#endif"):
        lines.pop()
    return "\n".join(lines)


def header_chunks(text):
    """Yields (comment, code) pairs of a header, in order. One of the two may be empty."""
    pattern = re.compile(r"(?P<comment>^/\*.*?\*/[ ]*$)?\n?(?P<code>(?:^(?!/\*)[^\n]+\n?)*)", re.M | re.S)
    for match in pattern.finditer(without_guards(text) + "\n"):
        comment, code = match["comment"] or "", match["code"].rstrip()
        if comment or code:
            yield comment, code


def header_page(path):
    chunks = list(header_chunks(path.read_text()))
    parts = [f"# {path.name}", f"`#include <gradus/{path.name}>`, which `gradus/gradus.h` includes."]
    for comment, code in chunks:
        title = comment and section_title(comment)
        if title:
            parts.append(f"## {title}")
        elif comment:
            parts.append(comment_text(comment))
        if code:
            parts.append(f"```c\n{code}\n```")
    return "\n\n".join(parts) + "\n"


# ---- Families of operators -----------------------------------------------------------------------------------------------------------


def c_kind(argument):
    return LISTS[argument.kind] if argument.list else C_KINDS[argument.kind]


def is_option(argument):
    return argument.has_default or argument.optional


def joined(kind, name):
    return kind + name if kind.endswith("*") else f"{kind} {name}"


def c_call(operator, form=""):
    """Returns the call as a C program writes it, with types in the place of values and a dot before each option."""
    required = [joined(c_kind(a), a.name) for a in operator.args if not is_option(a)]
    options = [f".{a.name} = {c_kind(a).strip()}" for a in operator.args if is_option(a)]
    first = ["grd_tensor *out"] if form == "_out" else []
    return f"grd_{operator.name}{form}({', '.join(first + required + options)})"


def family_law(text):
    """Returns the comment at the head of a schema file as (title, rest)."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    head, _, rest = " ".join(lines).partition(". ")
    title, _, detail = head.rstrip(".").partition(": ")
    return title, f"{detail[:1].upper()}{detail[1:]}. {rest}" if detail else rest


def operator_text(operator):
    forms = [c_call(operator)] + [c_call(operator, form) for name, form in (("inplace", "_"), ("out", "_out")) if name in operator.forms]
    parts = [f"## {operator.name}", f"`{operator.schema}`", operator.doc, "```c\n" + "\n".join(forms) + "\n```"]
    facts = []
    if operator.formula:
        facts.append(f"- Formula: `{operator.formula}`")
    facts += [f"- Gradient of `{name}`: `{' '.join(formula.split())}`" for name, formula in (operator.grads or {}).items()]
    facts.append(f"- Declared in `{operator.file}:{operator.line}`")
    parts.append("\n".join(facts))
    if operator.example:
        parts.append(f"```python\n{operator.example}\n```")
    return "\n\n".join(parts)


def family_page(path, operators):
    title, law = family_law(path.read_text())
    shown = [operator for operator in operators.values() if operator.file.endswith(f"/{path.name}") and not operator.hidden]
    return "\n\n".join([f"# {title}", law, *map(operator_text, shown)]) + "\n"


# ---- Both ------------------------------------------------------------------------------------------------------------------------------


def contents(title, text, names):
    listed = "\n".join(names)
    return f"# {title}\n\n{text}\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"


def pages(root):
    """Returns {path: text} of the C reference."""
    operators = read_schema(root / "schema")
    headers = sorted(path for path in (root / "include" / "gradus").glob("*.h") if path.name != "gradus.h")
    families = sorted((root / "schema").glob("*.toml"))
    made = {f"c/{path.stem}_h.md": header_page(path) for path in headers}
    made |= {f"c/operators_{path.stem}.md": family_page(path, operators) for path in families if any(o.file.endswith(f"/{path.name}") for o in operators.values())}
    text = ("Every public header, then every operator by family. An argument without a default stands in its place; one with a default is an option, named "
            "after a dot. `number` is an integer, a floating-point or a complex number.")
    return made | {"c/index.md": contents("C reference", text, [name[2:-3] for name in made])}
