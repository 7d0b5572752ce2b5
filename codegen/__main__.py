"""python -m codegen --schema schema --out build: writes the generated files that changed. --show OP prints everything generated for one operator."""
import argparse
import re
import sys
from pathlib import Path

from codegen import calls, emit, headers, kernels, python, samples, stubs, uses
from codegen.schema import SchemaError, read_schema
from codegen.template import joined


# Folders that contain only generated files. Files in them that are no longer generated are deleted.
OWN = ("gen/calls", "gen/impl", "gen/ops", "include/gradus/ops", *(f"gen/uses/{folder}" for folder in uses.FOLDERS))


def write_changed(root, files):
    """Writes the files whose text has changed. The others are left alone, because a newer time stamp would recompile every file that includes them.
    Also deletes files in the folders OWN that are no longer generated."""
    for name, text in files.items():
        path = root / name
        if path.exists() and path.read_text() == text:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for folder in OWN:
        for path in (root / folder).glob("*"):
            if f"{folder}/{path.name}" not in files:
                path.unlink()


def show(name, operators):
    if name not in operators:
        raise SchemaError(f"no operator '{name}'")
    operator = operators[name]
    computed = [o for o in (operator, *(operators[n] for n in re.findall(r"\w+", " ".join(operator.fused.values())) if n in operators)) if o.kernel]
    rows = "\n".join(f"/* ---- gen/{o.kernel}_rows.h */\n{kernels.rows_file(o.kernel, [o], operators)}" for o in computed)
    if operator.planned_view:
        rows = f"/* ---- gen/view_calls.h */\n{emit.view_calls({name: operator})}"
    if not operator.is_operator:
        return joined(emit.operator_text(operator, operators, {}), rows)
    return joined(f"/* ---- ops.h */\n{headers.document(operator)}", f"/* ---- {headers.header_path(operator)} */\n{headers.header(operator)}",
                  f"/* ---- {calls.header_path(operator)} */\n{calls.functions([operator])}", emit.operator_text(operator, operators, {}), rows,
                  f"/* ---- test */\n{samples.reference(operator)}{samples.operator_cases(operator)}")


def main():
    parser = argparse.ArgumentParser(prog="codegen", description=__doc__)
    parser.add_argument("--schema", default="schema", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--stubs", default="python/_C", type=Path, help="the folder of stubs.pyi")
    parser.add_argument("--src", default="src", type=Path, help="the folder of the files whose calls are looked up")
    parser.add_argument("--show", metavar="OP")
    arguments = parser.parse_args()
    try:
        operators = read_schema(arguments.schema)
        if arguments.show:
            print(show(arguments.show, operators))
        if arguments.out:
            write_changed(arguments.out, emit.files(operators) | python.files(operators) | stubs.files(operators, arguments.stubs) | samples.files(operators) |
                          uses.files(operators, arguments.src))
    except SchemaError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
