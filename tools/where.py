"""Prints the source locations that belong to an operator, from its entry in the schema to its tests.

  make where OP=tanh                      prints the schema entry of tanh, and the C code, derivative, Python names and tests that belong to it
  make where OP=nn.functional.softmax     prints the operators that a Python name calls, and the locations if it is a single operator

Each line begins with path:line, relative to the root. Generated files are listed if they exist in build/release.
"""
import ast
import difflib
import re
import sys
from functools import cached_property

from sources import GENERATED, ROOT, Place, Sources, line_of, without_comments

sys.path.insert(0, str(ROOT))
from codegen import batch, derivative, emit, headers, kernels, plans, python, samples  # noqa: E402
from codegen.functions import FUNCTIONS  # noqa: E402
from codegen.schema import read_schema  # noqa: E402

PYTHON_HOMES = {"function": "", "method": "Tensor.", "nn": "nn.functional.", "linalg": "linalg.", "special": "special.", "fft": "fft.", "windows": "signal.windows."}
PYTHON_FILES = {"python/gradus/nn/functional/*.py": "nn.functional.", "python/gradus/_tensor*.py": "Tensor.", "python/gradus/functional.py": ""}
MOST_USES = 5  # maximum number of files of test/ that are listed for a name


class Where:
    def __init__(self, root=ROOT):
        self.sources, self.operators = Sources(root), read_schema(root / "schema")
        self.c_names = {name: o for o in self.operators.values() if o.is_operator for name in (*headers.declared_names(o), f"op_{o.c_name}")}
        self.c_names |= {o.elementwise: o for o in self.operators.values() if o.kernel}
        self.python_names = {PYTHON_HOMES[home] + name: function for (home, name), function in python.functions(self.operators).items()}

    def places(self, operator):
        """Returns {section: [Place]} with all locations that belong to an operator."""
        found = {"schema": [self.entry(operator)], "plan": self.plan(operator), "run": self.run(operator), "kernel": self.kernel(operator),
                 "derivative": self.derivative(operator), "Python": self.python(operator), "tests": self.tests(operator)}
        return {section: list(dict.fromkeys(places)) for section, places in found.items()}

    # ---- The schema ----------------------------------------------------------------------------------------------------------------

    def entry(self, operator, note=""):
        """Returns the Place of the operator's entry in schema/. Some operators have no entry of their own, namely NAME_copy for a view NAME, and
        kernels that compute gradients in one loop. For these, returns the entry from which the generator makes them."""
        return Place(operator.file, operator.line, self.sources.lines(operator.file)[operator.line - 1], note)

    def keys(self, operator, *prefixes, note=""):
        """Returns the Places of lines in the schema entry whose key is one of `prefixes` or below one, such as grad.self below grad."""
        found = [(key, line) for prefix in prefixes for key, line in operator.lines.items() if key == prefix or key.startswith(f"{prefix}.")]
        return [Place(operator.file, line, key, note or self.sources.lines(operator.file)[line - 1].partition("=")[2].strip(' "')) for key, line in found]

    def called(self, operator, *texts):
        """Returns all operators, except `operator` itself, that the C texts call."""
        words = dict.fromkeys(word for text in texts for word in re.findall(r"\w+", without_comments(text)))
        return list({o.name: o for o in (self.c_names[word] for word in words if word in self.c_names) if o is not operator}.values())

    # ---- Plan, run and kernel -------------------------------------------------------------------------------------------------------

    def implementation(self, operator):
        """Returns the generated C code of op_<name>, or "" if the whole function is written by hand."""
        if operator.planned_view:
            return plans.view_call(operator, self.operators, "")
        view = plans.written_plan(operator) if operator.run == "view_backward" else ""
        return emit.implementation(operator, self.operators) + view

    def written(self, operator, *prefixes):
        """Returns the Definitions of hand-written functions that a generated op_<name> calls and whose names have one of the prefixes (plan_,
        run_, ...)."""
        called = dict.fromkeys(re.findall(r"(\w+)\(", self.implementation(operator)))
        return [d for word in called if word.startswith(prefixes) for d in self.sources.defined.get(word, []) if d.path.startswith("src/op/")]

    def by_hand(self, operator):
        """Returns a list with the Definition of op_<name> if it is written by hand, otherwise []."""
        return self.sources.definitions_of(f"op_{operator.c_name}", "src/op/") if operator.composite or operator.whole else []

    def plan(self, operator):
        if operator.kernel:
            return [d.place("the law of elementwise operators") for d in self.functions_of_law(operator)]
        if operator.formula or operator.through:
            return self.keys(operator, "formula", "through") or [self.entry(operator, operator.formula)]
        law = self.keys(operator, "reduce" if operator.law == "reduce" else "law", "plan")
        planned = [d.place() for d in self.written(operator, "plan_", "check_", "shortcut_")]
        return law + planned + [d.place(operator.whole or "each operator that it calls has a plan") for d in self.by_hand(operator)]

    def functions_of_law(self, operator):
        return self.sources.definitions_of(f"grd_op_{operator.kernel}", "src/op/")

    def functions_of_run(self, operator):
        """Returns the Definitions of the functions in src/op that compute the operator's results. Returns [] for a composite operator, whose results
        are computed by the operators that it calls."""
        if operator.kernel:
            return self.functions_of_law(operator)
        if operator.through:
            return [d for o in self.parts(operator) if o.kernel for d in self.functions_of_law(o)]
        if operator.planned_view:
            return [d for d in self.written(operator, "") if not d.name.startswith("plan_")]
        return self.written(operator, "run_") if operator.planned else [] if operator.composite else self.by_hand(operator)

    def parts(self, operator):
        """Returns all operators that the implementation of `operator` calls."""
        if operator.planned_view:
            return []
        functions = self.by_hand(operator)
        return self.called(operator, self.implementation(operator), *(d.body for d in self.sources.reached(functions) if d.path == functions[0].path))

    def run(self, operator):
        return [d.place() for d in self.functions_of_run(operator)] + [self.entry(o, o.schema) for o in self.parts(operator) if o.is_operator]

    def kernel(self, operator):
        if operator.kernel:
            return self.elementwise_kernel(operator)
        if operator.law == "lines":
            return self.sources.bodies(f"lines_{operator.c_name}", "src/kernel/cpu/lines.c")
        if operator.law == "reduce":
            words = re.findall(r"GRD_(?:REDUCE|FINISH)_[A-Z_]+", self.implementation(operator))
            return [place for word in dict.fromkeys(words) for place in self.sources.reduction(word)]
        found = [place for o in self.parts(operator) if operator.through or not o.is_operator for place in [self.entry(o, o.schema), *self.kernel(o)]]
        starts = self.functions_of_run(operator) + (self.written(operator, "plan_", "check_") if operator.planned else [])
        return found if operator.through else found + self.sources.kernels_of(self.sources.reached(starts))

    def elementwise_kernel(self, operator):
        """Returns source lines as Places. First come the lines of the schema entry that define an element of the result, then the kernel's
        hand-written functions, and last the function with the loop over elements."""
        body = self.sources.definitions_of(f"{operator.kernel}_{operator.c_name}", "src/kernel/")
        text = kernels.block(operator, self.operators) + "".join(d.body for d in body)
        said = [self.entry(operator, operator.expr)] if operator.kernel == "gradient" else self.keys(operator, "expr", "body", "bits")
        return said + self.sources.bodies(text, f"src/kernel/cpu/{operator.kernel}.c")

    # ---- Derivative -----------------------------------------------------------------------------------------------------------------

    def derivative(self, operator):
        """Returns the Places of the gradient formulas, of the operators and functions that they call, and of the rules for forward-mode derivatives
        and for vmap."""
        if not operator.is_operator:
            return []
        found = self.keys(operator, "grad")
        if operator.grads and not found:
            derived = "; ".join(f"derived, d/d{name}: {formula}" for name, formula in operator.grads.items())
            found = self.keys(operator, "expr", "through", note=derived)
        if operator.grads is None:
            found = [self.entry(operator, "recorded by its parts")]
        text = derivative.derivative(operator, self.operators)
        helpers = {f"grd_{name}" for name in FUNCTIONS} | {o.inlined for o in self.operators.values()}
        found += self.keys(operator, "where", "fast", "jvp", "node") + [self.entry(o, o.schema) for o in self.called(operator, text)]
        found += [d.place() for word in dict.fromkeys(re.findall(r"\w+", without_comments(text))) if word in helpers for d in self.sources.definitions_of(word)]
        if operator.grads and isinstance(operator.jvp, str):
            found += self.sources.mention("src/autograd/derivative.h", f"GRD_FORWARD_{operator.jvp.upper()}", "how tangents follow")
        rule = f"GRD_BATCH_{batch.batch_rule(operator).upper()}"
        found += self.keys(operator, "batch") or self.sources.mention("src/dispatch/op.h", rule, "the rule for batch tensors")
        return found + self.sources.generated(*(f"{operator.c_name}_{part}" for part in ("backward", "fast", "forward", "batch")))

    # ---- Python and tests -----------------------------------------------------------------------------------------------------------

    @cached_property
    def names_of(self):
        """Returns {operator name: {Python name without "gradus.", e.g. "Tensor.add": Function}}."""
        found = {}
        for name, function in self.python_names.items():
            for signature in function.signatures:
                found.setdefault(signature.operator.name, {})[name] = function
        return found

    @cached_property
    def signature_tables(self):
        """Returns {C function that Python calls: Place of its row in the tables of signatures}."""
        path = f"{GENERATED}/python_functions.c"
        text = self.sources.text(path)
        return {match[1]: Place(path, line_of(text, match.start(1)), match[1], "its signatures") for match in re.finditer(r"\},\s+(call_\w+),\s", text)}

    @cached_property
    def written_in_python(self):
        """Returns [(name without "gradus.", names called by the body, Place)] for each public function that is written in Python. The names called
        are those of attributes, e.g. softmax for _nn.softmax(x)."""
        found = []
        for path, home in ((path, home) for pattern, home in PYTHON_FILES.items() for path in self.sources.paths(pattern)):
            for node in ast.walk(ast.parse(self.sources.text(path))):
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    called = {n.func.attr for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)}
                    found.append((home + node.name, called, Place(path, node.lineno, node.name, f"{home}{node.name} calls it")))
        return found

    def python(self, operator):
        shown = self.names_of.get(operator.name, {})
        found = [self.entry(operator, ", ".join(f"gradus.{name}" for name in shown))] if shown else []
        rows = [self.signature_tables[call] for call in (f"call_{f.symbol}" for f in shown.values()) if call in self.signature_tables]
        words = {function.name for function in shown.values()}
        callers = [place for name, called, place in self.written_in_python if name.startswith("nn.") and name not in shown and called & words]
        return self.keys(operator, "python") + found + rows + callers

    def python_operators(self, name):
        """Returns the names of the operators that the Python function `name` calls: those of its signatures and, if it is written in Python, those
        that its body calls."""
        name = name.removeprefix("torch.").removeprefix("gradus.")
        called = set().union(*(words for written, words, _ in self.written_in_python if written == name))
        functions = [self.python_names[name]] if name in self.python_names else [f for f in self.python_names.values() if f.name in called]
        return list(dict.fromkeys(s.operator.name for f in functions for s in f.signatures))

    @cached_property
    def uses(self):
        """Returns {word: {file of test/: [line numbers]}}. The words are, in C files, the identifiers that begin with grd_ and, in Python files, the
        names between a dot and a parenthesis, such as `name` in x.name(...)."""
        found = {}
        for path in self.sources.paths("test/[!g]*/**/*.[ch]", "test/[!g]*/**/*.py"):  # [!g] excludes test/golden
            word = re.compile(r"(?<=\.)[A-Za-z]\w*(?=\()" if path.endswith(".py") else r"\bgrd_\w+")
            for number, line in enumerate(self.sources.lines(path), 1):
                for name in word.findall(line):
                    found.setdefault(name, {}).setdefault(path, []).append(number)
        return found

    def tests(self, operator):
        if not operator.is_operator:
            return []
        found = self.keys(operator, "test")
        if samples.sample_texts(operator):
            found += [] if "samples" in operator.test else self.sources.mention("codegen/samples.py", "FAMILY", f"the samples of {operator.kernel} kernels")
            found += self.sources.mention("test/op/matrix.c", "test_cases", f"runs each sample: build/release/test/test_matrix {operator.name}")
        names = {function.name for function in self.names_of.get(operator.name, {}).values()} | set(headers.declared_names(operator))
        for word in sorted(names & self.uses.keys()):
            most = sorted(self.uses[word].items(), key=lambda use: -len(use[1]))
            found += [Place(path, lines[0], word, f"{len(lines)} times" if len(lines) > 1 else "") for path, lines in most[:MOST_USES]]
        return found


def printed(place, width=0):
    position = f"{place.path}:{place.line}"
    return f"  {position:{width}}  {place.name}{place.note and f'  {place.note}'}"


def main():
    where, name = Where(), sys.argv[1] if len(sys.argv) > 1 else ""
    behind = where.python_operators(name)
    if name not in where.operators and not behind:
        near = difflib.get_close_matches(name, dict.fromkeys([*where.operators, *where.python_names]), 6)
        sys.exit(f"'{name}' is neither an operator nor a Python name{'; near it are ' + ', '.join(near) if near else ''}")
    if behind not in ([], [name]):
        print("\n".join([f"{name} in Python", *(printed(where.entry(o, o.schema)) for o in map(where.operators.get, behind))]))
    if name in where.operators or len(behind) == 1:
        operator = where.operators[name if name in where.operators else behind[0]]
        sections = where.places(operator)
        width = max(len(f"{p.path}:{p.line}") for places in sections.values() for p in places)
        print(operator.schema)
        for section, places in sections.items():
            print("\n".join([section, *(printed(place, width) for place in places)]) if places else f"{section}: none of its own")


if __name__ == "__main__":
    main()
