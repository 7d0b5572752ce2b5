"""Times Gradus and PyTorch and prints both times with their ratio, which is above 1 where Gradus is faster.

The two programs, micro.c and torch_micro.py, run in turn, so that other load on the machine slows both. The shortest time of all rounds is shown.
The program does not fail if a time is long; some times are shown with a goal to compare them with. --record also writes the times to
docs/benchmarks.json, from which the page of benchmarks is made.
"""
import argparse
import datetime
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
GOALS = {"add": 60, "select": 40, "add_recorded": 120, "backward": 800}  # nanoseconds that a case should take at most


def pythons():
    """Returns the paths of this Python interpreter and of all others on PATH, because the one in build/venv often has no PyTorch."""
    found = [sys.executable]
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = shutil.which("python3", path=folder)
        if path and path not in found:
            found.append(path)
    return found


def has_torch(python):
    return subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0


def run(command, **environment):
    """Runs a benchmark program. Returns the tab-separated fields of each line of its output, and its error output, which describes the
    program, e.g. by the version of the package that it times."""
    result = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | environment)
    if result.returncode:
        sys.exit(f"{command[0]} failed:\n{result.stderr}")
    return [line.split("\t") for line in result.stdout.splitlines()], result.stderr


def measure(command):
    """Runs a benchmark program. Returns {name of the case: nanoseconds} and the first line of its error output, which names the package's version."""
    lines, about = run(command)
    return {name: float(time) for name, time in lines}, about.strip().splitlines()[0]


def least(runs):
    return {name: min(run[name] for run in runs) for name in runs[0]}


def readable(nanoseconds):
    for unit, size in (("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size * 10:
            return f"{nanoseconds / size:.1f} {unit}"
    return f"{nanoseconds:.0f} ns"


def geometric_mean(ratios):
    return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else math.nan


def table(ours, theirs):
    print(f"\n{'':22}{'Gradus':>12}{'PyTorch':>12}{'ratio':>9}{'goal':>9}")
    for name, time in ours.items():
        other = theirs.get(name)
        compared = f"{readable(other):>12}{other / time:>9.2f}" if other else " " * 21 * (name in GOALS)
        print(f"{name:22}{readable(time):>12}{compared}" + (f"{readable(GOALS[name]):>9}" if name in GOALS else ""))
    ratios = {name: theirs[name] / time for name, time in ours.items() if name in theirs and not name.startswith("memcpy")}
    groups = {"small": [r for n, r in ratios.items() if "/" not in n]}
    for threads in ("1", "2"):
        groups[f"large, {threads} thread{'s' * (threads > '1')}"] = [r for n, r in ratios.items() if n.endswith("/" + threads)]
    print()
    for title, group in groups.items():
        if group:
            print(f"geometric mean, {title + ':':20}{geometric_mean(group):>19.2f}")
    return {name: (time, theirs.get(name)) for name, time in ours.items()}


def products(program, part, core_type):
    """Compares matrix products with OpenBLAS in one process, and returns {name of the product: (nanoseconds of Gradus, nanoseconds of OpenBLAS)}.
    OpenBLAS gets the core type that Gradus sets for it, because its own choice may be slower."""
    lines, _ = run([program, part], OPENBLAS_THREAD_TIMEOUT="4", OPENBLAS_CORETYPE=core_type)
    if lines:
        print(f"\n{'product/threads':22}{'Gradus':>12}{'OpenBLAS':>12}{'ratio':>9}")
    for name, ours, theirs in lines:
        print(f"{name:22}{readable(float(ours)):>12}{readable(float(theirs)):>12}{float(theirs) / float(ours):>9.2f}")
    return {name: (float(ours), float(theirs)) for name, ours, theirs in lines}


START = """
import resource, time
begin = time.perf_counter()
import {0}
print("import", (time.perf_counter() - begin) * 1e9, sep="\\t")
print("resident bytes", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, sep="\\t")
"""


def python_rounds(python, part, rounds):
    """Runs the same Python code on Gradus, PyTorch and NumPy, in processes that run in turn. Returns, for each package, the shortest time of each
    case, and the time and memory that importing the package takes."""
    here = os.environ | {"PYTHONPATH": str(BUILD / "python")}
    programs = [("gradus", sys.executable, here), ("torch", python, os.environ), ("numpy", sys.executable, os.environ)]
    results = {name: [] for name, _, _ in programs}
    for _ in range(rounds):
        for name, interpreter, environment in programs:
            commands = [[interpreter, ROOT / "bench" / "python_micro.py", name, part]]
            commands += [] if part or name == "numpy" else [[interpreter, "-c", START.format(name)]]
            lines = [line for command in commands for line in run(command, **environment)[0]]
            results[name].append({case: float(value) for case, value in lines})
    return {name: least(runs) for name, runs in results.items()}


def python_table(python, part, rounds):
    times = python_rounds(python, part, rounds)
    print(f"\n{'Python':22}{'Gradus':>12}{'PyTorch':>12}{'ratio':>9}")
    ratios = {name: times["torch"][name] / value for name, value in times["gradus"].items()}
    for name, ratio in ratios.items():
        show = (lambda value: f"{value / 1e6:.0f} MB") if name == "resident bytes" else readable
        print(f"{name:22}{show(times['gradus'][name]):>12}{show(times['torch'][name]):>12}{ratio:>9.2f}")
    if "add" in times["numpy"] and "add" in times["gradus"]:
        print(f"{'add, NumPy':22}{readable(times['gradus']['add']):>12}{readable(times['numpy']['add']):>12}{times['numpy']['add'] / times['gradus']['add']:>9.2f}")
    small = [ratio for name, ratio in ratios.items() if "/" not in name and name not in ("training_step", "import", "resident bytes")]
    if small:
        print(f"\ngeometric mean, small calls:{geometric_mean(small):>27.2f}")
    return {name: (value, times["torch"][name]) for name, value in times["gradus"].items() if name != "resident bytes"}


# ---- The record from which the page of benchmarks is made --------------------------------------------------------------------------------


def processor():
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "an unnamed processor")
    return f"{model}, {os.cpu_count()} cores"


def headline(from_c, from_python):
    """Returns a sentence that compares the training step from Python, in Gradus and in PyTorch, with the step written by hand in by_hand.c."""
    step = from_c["training_step_by_hand"][0]
    ours, theirs = (time / step for time in from_python["training_step"])
    return (f"A training step of a 64-32-32-10 network from Python takes {ours:.1f} times as long as the step that is written in C by hand, without a tensor library; "
            f"in PyTorch it takes {theirs:.0f} times as long.")


def record(file, versions, load, from_c, from_python, from_blas):
    tables = [("From C, beside PyTorch from Python (name/threads where large)", "PyTorch", from_c), ("The same Python code", "PyTorch", from_python),
              ("Matrix products (name/threads)", "OpenBLAS", from_blas)]
    text = json.dumps({"headline": headline(from_c, from_python), "machine": processor(), "load": load, "date": datetime.date.today().isoformat(), "versions": versions,
                       "tables": [{"title": title, "beside": beside, "rows": {name: pair for name, pair in rows.items() if pair[1]}} for title, beside, rows in tables]}, indent=1)
    file.write_text(text + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="PART", default="", help="names that contain this")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="write docs/benchmarks.json")
    parser.add_argument("--program", type=Path, help="a bench_micro built elsewhere")
    arguments = parser.parse_args()
    program = arguments.program or BUILD / "bench" / "bench_micro"
    if not arguments.program:
        subprocess.run(["cmake", "--build", str(BUILD), "--target", "bench"], check=True, stdout=subprocess.DEVNULL)
    python = next(filter(has_torch, pythons()), None)
    commands = [[program, arguments.only]]
    if python:
        commands.append([python, ROOT / "bench" / "torch_micro.py", arguments.only])
    else:
        print("PyTorch is not installed (pip install torch): only Gradus is timed")
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"others are using this machine (load {load:.1f}): expect noise, most of all with 2 threads")
    results = [[] for _ in commands]
    about = []
    for number in range(arguments.rounds):
        for command, runs in zip(commands, results):
            times, line = measure(command)
            runs.append(times)
            about += [line] if number == 0 else []
    print("\n".join(about))
    from_c = table(*[least(runs) for runs in results], *([] if python else [{}]))
    from_python = python_table(python, arguments.only, arguments.rounds) if python and (BUILD / "python").exists() else {}
    beside_blas = program.with_name("bench_products")
    from_blas = products(beside_blas, arguments.only, about[0].split()[-1]) if beside_blas.exists() else {}
    if arguments.record:
        record(ROOT / "docs" / "benchmarks.json", "; ".join(about), load, from_c, from_python, from_blas)


if __name__ == "__main__":
    main()
