"""Generates three pages: the names of PyTorch that are missing, the examples, the benchmarks."""
import ast
import importlib
import json
import re


def find(path):
    """Returns the module, class or function of a dotted path that begins with `gradus`; None if there is none."""
    try:
        return importlib.import_module(path)
    except ImportError:
        module, _, name = path.rpartition(".")
        owner = find(module) if module else None
        return getattr(owner, name, None) if owner is not None else None


def recorded_names(file):
    """Returns {module: [names]} of PyTorch, and the line that names PyTorch's version."""
    head, *lines = file.read_text().splitlines()
    split = (line.split(": ", 1) for line in lines)
    return {module: names.split() for module, names in split}, head.lstrip("# ")


def missing_page(root):
    recorded, head = recorded_names(root / "docs" / "torch_names.txt")
    absent, parts, present, total = [], [], 0, 0
    for module, names in recorded.items():
        ours = find(module.replace("torch", "gradus", 1))
        lacking = [name for name in names if ours is None or not hasattr(ours, name)]
        total += len(names)
        present += len(names) - len(lacking)
        if ours is None:
            absent.append(f"`{module}`")
        elif lacking:
            parts.append(f"## {module}\n\n{len(names) - len(lacking)} of {len(names)} names are there. Missing: " + ", ".join(f"`{name}`" for name in lacking) + ".")
    text = (f"# What is missing, by name\n\nMade from PyTorch's public names ({head.split(':')[0]}) whenever these pages are built: {present} of {total} names are there. A program "
            "that uses another one is told so by an `AttributeError` or `ModuleNotFoundError` that names it; nothing is replaced silently. Devices other than the cpu come from plug-ins.\n\n"
            f"Modules that are absent as a whole: {', '.join(absent)}.\n\n")
    return text + "\n\n".join(parts) + "\n"


def first_sentence(text):
    return re.split(r"(?<=[.:])\s", " ".join(text.split()), maxsplit=1)[0].rstrip(":") if text else ""


def example_head(path):
    """Returns the first sentence of the comment at the head of a C file, or of a Python file's docstring."""
    text = path.read_text()
    if path.suffix == ".py":
        return first_sentence(ast.get_docstring(ast.parse(text)) or "")
    comment = re.match(r"/\*(.*?)\*/", text, re.S)
    return first_sentence(re.sub(r"\n \*", "\n", comment[1])) if comment else ""


def examples_page(root):
    rows = []
    for path in sorted((root / "examples").rglob("*")):
        if path.suffix in (".c", ".py"):
            rows.append(f"| `{path.relative_to(root)}` | {example_head(path)} |")
    return "# Examples\n\n`make demo` builds and runs the digits in C and in Python.\n\n| file | |\n|---|---|\n" + "\n".join(rows) + "\n"


def readable(nanoseconds):
    for unit, size in (("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size * 10:
            return f"{nanoseconds / size:.1f} {unit}"
    return f"{nanoseconds:.0f} ns"


def benchmark_table(title, rows, other):
    lines = [f"| {name} | {readable(ours)} | {readable(theirs)} | {theirs / ours:.1f} |" for name, (ours, theirs) in rows.items()]
    return f"## {title}\n\n| | Gradus | {other} | ratio |\n|---|---|---|---|\n" + "\n".join(lines)


def benchmarks_page(root):
    file = root / "docs" / "benchmarks.json"
    record = json.loads(file.read_text())
    noise = f" Other programs used the machine meanwhile (load {record['load']:.1f}): expect noise, most of all with two threads." if record["load"] > 0.5 else ""
    tables = [benchmark_table(table["title"], table["rows"], table["beside"]) for table in record["tables"]]
    head = (f"# Benchmarks\n\n{record['headline']}\n\nMeasured by `make bench` on {record['machine']}, {record['date']}, with {record['versions']}. Both libraries run in turn in one session, "
            f"and the least times of the rounds are shown: compare the columns with each other, not with another machine. A ratio above 1 means that Gradus is faster.{noise}\n\n")
    return head + "\n\n".join(tables) + "\n"


def pages(root):
    """Returns {path: text} of these pages."""
    return {"missing.md": missing_page(root), "examples.md": examples_page(root), "benchmarks.md": benchmarks_page(root)}
