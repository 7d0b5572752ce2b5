"""Compares the C code that codegen generates for the small schema in test/golden with the golden files, byte for byte. With --write it replaces
the golden files."""
import difflib
import shutil
import sys
from pathlib import Path

from codegen import emit, samples
from codegen.schema import read_schema

FOLDER = Path(__file__).resolve().parent.parent / "test" / "golden"


def generated():
    operators = read_schema(FOLDER / "schema")
    return emit.files(operators) | samples.files(operators)


def main():
    expected = FOLDER / "out"
    files = generated()
    if "--write" in sys.argv:
        shutil.rmtree(expected, ignore_errors=True)
        for name, text in files.items():
            path = expected / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return
    found = {str(p.relative_to(expected)): p.read_text() for p in expected.rglob("*") if p.is_file()}
    differences = []
    for name in sorted(files.keys() | found.keys()):
        differences += difflib.unified_diff(found.get(name, "").splitlines(), files.get(name, "").splitlines(), f"snapshot/{name}", f"now/{name}", lineterm="")
    if differences:
        print("\n".join(differences[:60]))
        sys.exit("codegen writes something else than its snapshots; look, then `make golden`")


if __name__ == "__main__":
    main()
