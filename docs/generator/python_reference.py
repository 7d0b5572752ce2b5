"""Generates the Python reference: a page per public module of the package, from signatures and docstrings."""
import importlib
import inspect
import re
import types

from generator.c_reference import contents

MODULES = """gradus gradus.Tensor gradus.autograd gradus.autograd.functional gradus.autograd.graph gradus.fft gradus.linalg gradus.nested gradus.nn gradus.nn.functional gradus.nn.init
gradus.nn.utils gradus.nn.utils.rnn gradus.optim gradus.optim.lr_scheduler gradus.random gradus.serialization gradus.utils.checkpoint gradus.utils.data
gradus.utils.dlpack gradus.viz""".split()


def resolve(path):
    try:
        return importlib.import_module(path)
    except ImportError:
        module, _, name = path.rpartition(".")
        return getattr(importlib.import_module(module), name, None)


def signature(value):
    """Returns the parameters as a caller writes them; '(…)' if inspect.signature cannot read them."""
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return "(…)" if callable(value) else ""
    return re.sub(r"<(?:function|class|built-in function) '?([\w.]+)'?[^>]*>", r"\1", text).replace("($module, ", "(").replace("$self, ", "")


def doc_text(doc):
    """Returns a docstring as Markdown: examples become blocks of code, and roles of Sphinx their names."""
    out, code = [], False
    for line in inspect.cleandoc(doc).split("\n"):
        begins = line.startswith(">>> ")
        if code and not line.strip():
            out += ["```", ""]
            code = False
            continue
        if begins and not code:
            out += ["", "```python"]
            code = True
        out.append(line if code else re.sub(r":\w+:`~?([^`]+)`", r"`\1`", line.replace("``", "`")))
    return "\n".join(out + ["```"] * code)


def is_documented(value):
    return (isinstance(value, type) or callable(value) or isinstance(value, property)) and not isinstance(value, types.ModuleType) and bool(value.__doc__)


def public_members(owner):
    """Yields (name, object) of the public functions, classes and methods that have a docstring."""
    for name in sorted(dir(owner)):
        if not name.startswith("_"):
            value = getattr(owner, name, None)
            if is_documented(value):
                yield name, value


def own_methods(value):
    """Yields the public methods that a class itself defines and that have a docstring."""
    return [(name, member) for name, member in sorted(vars(value).items())
            if not name.startswith("_") and isinstance(member, (types.FunctionType, classmethod, staticmethod)) and member.__doc__]


def member_text(path, name, value):
    parts = [f"## {name}", f"```python\n{path}.{name}{signature(value)}\n```", doc_text(value.__doc__)]
    if isinstance(value, type):
        for method, member in own_methods(value):
            shown = getattr(value, method)
            parts += [f"### {name}.{method}", f"```python\n{name}.{method}{signature(shown)}\n```", doc_text(member.__doc__)]
    return "\n\n".join(parts)


def module_page(path, owner):
    members = [member_text(path, name, value) for name, value in public_members(owner)]
    head = doc_text(owner.__doc__ or "")
    return "\n\n".join([f"# {path}", head, *members]) + "\n"


def pages():
    """Returns {path: text} of the Python reference."""
    made = {}
    for path in MODULES:
        owner = resolve(path)
        if owner is not None:
            made[f"python/{path}.md"] = module_page(path, owner)
    text = "Every public module, from its docstrings, whose examples run in the tests. In them `torch` is Gradus: `import gradus as torch`."
    return made | {"python/index.md": contents("Python reference", text, [name[len("python/"):-3] for name in made])}
