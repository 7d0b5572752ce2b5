"""Tests the tests by mutation: makes small wrong edits in a copy of the tree, one at a time, and runs the tests that should then fail. Fails if they
pass.

  mutate.py                       makes all edits of test/mutants/*.toml
  mutate.py --only softmax        makes the edits whose names contain the word, or the edits of one file: --only autograd
  mutate.py --sample 8            makes 8 edits, drawn at random from all files
  mutate.py --list                prints the edits

An edit consists of `file`, `find` (a text that occurs once in the file) and `replace`. `tests` lists C test programs, with a filter if they accept
one ("test_matrix softmax"), or files of test/python, with the name of a test if only that one is meant ("package/test_index.py::test_errors").
"""
import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TREE = ROOT / "build" / "mutants"
JOBS = os.environ.get("JOBS", str(os.cpu_count() or 2))
TIMEOUT = 600  # seconds for one test, so that an edit that makes a loop endless is noticed too


@dataclass
class Mutant:
    name: str
    file: str
    find: str
    replace: str
    tests: list
    floor: str = field(default="")


def read_mutants():
    found = [Mutant(**entry, floor=path.stem) for path in sorted((ROOT / "test/mutants").glob("*.toml"))
             for entry in tomllib.loads(path.read_text())["mutant"]]
    names = [mutant.name for mutant in found]
    if len(set(names)) != len(names):
        sys.exit(f"two mutants have one name: {sorted(n for n in set(names) if names.count(n) > 1)}")
    return found


def copy_tree():
    """Copies the files that git does not ignore to the folder TREE, and deletes all other files there except builds. Equal files are not rewritten,
    so that little is rebuilt."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = {name for name in listed.stdout.split("\0") if (ROOT / name).is_file()}
    for name in names:
        source, target = ROOT / name, TREE / name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    for path in TREE.rglob("*"):
        if path.is_file() and "build" not in path.relative_to(TREE).parts and str(path.relative_to(TREE)) not in names:
            path.unlink()
    (TREE / "build").mkdir(exist_ok=True)
    if not (TREE / "build/venv").exists():
        (TREE / "build/venv").symlink_to(ROOT / "build/venv")


def run(command, timeout=None):
    """Runs a command and returns its exit status and output. The status is None if the command took longer than `timeout` seconds."""
    environment = {**os.environ, "CCACHE_BASEDIR": str(TREE), "CCACHE_NOHASHDIR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        result = subprocess.run(command, cwd=TREE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=timeout)
    except subprocess.TimeoutExpired:
        return None, "the time was over"
    return result.returncode, result.stdout


def build(tests):
    """Builds the programs that the tests need. Returns "", or the end of the output if the build fails."""
    targets = sorted({test.split()[0] for test in tests if ".py" not in test} | {"gradus_python" for test in tests if ".py" in test})
    status, said = run(["cmake", "--build", "--preset", "release", "-j", JOBS, "--target", *targets])
    return said[-3000:] if status else ""


def command_of(test):
    if ".py" in test:
        return [sys.executable, "-m", "pytest", "-q", "-x", f"test/python/{test}", "-p", "no:cacheprovider"]
    program, *arguments = test.split()
    return [f"build/release/test/{program}", *arguments]


def failing(tests):
    """Runs the tests and returns (test, output) for the first one that fails, or None if all pass."""
    for test in tests:
        status, said = run(command_of(test), TIMEOUT)
        if status != 0:
            return test, said
        if ".py" in test and not re.search(r"\d+ passed", said):
            sys.exit(f"{test} runs nothing here:\n{said[-1000:]}")
    return None


def try_mutant(mutant):
    """Makes one edit, runs its tests, and undoes the edit. Returns ("noticed", the test that failed), ("survives", ""), or ("broken", the reason
    why the edit or the build is impossible)."""
    path = TREE / mutant.file
    if not path.exists():
        return "broken", f"there is no {mutant.file}"
    text = path.read_text()
    if text.count(mutant.find) != 1:
        return "broken", f"{mutant.file} has {text.count(mutant.find)} times what is to be found"
    path.write_text(text.replace(mutant.find, mutant.replace))
    try:
        error = build(mutant.tests)
        failed = None if error else failing(mutant.tests)
    finally:
        path.write_text(text)
    if error:
        return "broken", f"it does not build:\n{error}"
    return ("noticed", failed[0]) if failed else ("survives", "")


def prepare(mutants):
    """Copies and builds the tree, and exits with an error unless all tests pass without any edit."""
    copy_tree()
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    status, said = run(["cmake", "--preset", "release"])
    error = said if status else build(tests)
    if error:
        sys.exit(error)
    failed = failing(tests)
    if failed:
        sys.exit(f"{failed[0]} fails without any edit:\n{failed[1][-3000:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="WORD", default="")
    parser.add_argument("--sample", metavar="N", type=int)
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    mutants = read_mutants()
    if arguments.only in {m.floor for m in mutants}:
        mutants = [m for m in mutants if m.floor == arguments.only]
    else:
        mutants = [m for m in mutants if arguments.only in m.name]
    if arguments.sample is not None:
        mutants = random.sample(mutants, min(arguments.sample, len(mutants)))
    if arguments.list:
        print("\n".join(f"{m.floor:10} {m.name}" for m in mutants))
        return
    prepare(mutants)
    outcomes = []
    for number, mutant in enumerate(mutants, 1):
        outcome, detail = try_mutant(mutant)
        outcomes.append(outcome)
        print(f"[{number}/{len(mutants)}] {outcome:8}  {mutant.floor}: {mutant.name}{': ' if detail else ''}{detail}", flush=True)
    print(f"\n{outcomes.count('noticed')} noticed, {outcomes.count('survives')} survive, {outcomes.count('broken')} are no mutants")
    sys.exit(outcomes.count("noticed") != len(outcomes))


if __name__ == "__main__":
    main()
