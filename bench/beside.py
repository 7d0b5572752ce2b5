"""Times the same Python cases on Gradus and on PyTorch. The two packages alternate case by case, so that other load on the machine slows both.

A program defines its cases as follows.

    def cases(torch, layout):
        x = torch.rand(8, 64, 32, 32)
        return {"relu": lambda: torch.relu(x)}

    if __name__ == "__main__":
        compare(cases, __doc__, layouts=("default", "channels_last"))

A subject is a package with a memory layout. Each subject runs in its own process, which times a case on request. The ratio printed for a case is
PyTorch's median time over some rounds, in the layout in which PyTorch is fastest, divided by Gradus's median time. Above 1, Gradus is faster.
With `--threads 2` both packages use two threads.
"""
import argparse
import gc
import importlib
import math
import os
import resource
import statistics
import subprocess
import sys
import timeit
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEAST_SECONDS = 0.02  # least time of a measurement, long compared with the resolution of the clock


def time_of(run):
    """Returns the mean time of a call of `run` in nanoseconds. Makes so many calls that together they take at least LEAST_SECONDS. The first call is
    not measured, because it allocates memory that later calls reuse."""
    run()
    timer, count = timeit.Timer(run), 1
    while (took := timer.timeit(count)) < LEAST_SECONDS:
        count = max(2 * count, min(1000 * count, int(count * LEAST_SECONDS / max(took, 1e-9)) + 1))
    return took / count * 1e9


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def serve(cases, package, layout, threads):
    """Prints the names of the cases. Then, for each name read from standard input, prints the nanoseconds of a call of this case, and by how many
    bytes the peak of resident memory has grown since the package was imported."""
    torch = importlib.import_module(package)
    imported = peak()
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    found = cases(torch, layout)
    print("\t".join(found), flush=True)
    gc.disable()
    for line in sys.stdin:
        nanoseconds = time_of(found[line.rstrip("\n")])
        print(nanoseconds, peak() - imported, flush=True)


class Subject:
    """A process that runs the cases of one package with one memory layout and times a case on request."""

    def __init__(self, package, layout, threads):
        self.title = "Gradus" if package == "gradus" else "PyTorch" if layout == "default" else f"PyTorch, {layout}"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
        if package == "gradus":
            environment["PYTHONPATH"] = str(ROOT / "build" / "release" / "python")
        self.resident = 0
        self.process = subprocess.Popen([sys.executable, sys.argv[0], "--serve", package, layout, str(threads)], env=environment, text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.names = self.answer().rstrip("\n").split("\t")

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.title} stopped: see above")
        return line

    def measure(self, name):
        print(name, file=self.process.stdin, flush=True)
        nanoseconds, resident = self.answer().split()
        return float(nanoseconds), int(resident)

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def readable(nanoseconds):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size * 10:
            return f"{nanoseconds / size:.1f} {unit}"
    return f"{nanoseconds:.0f} ns"


def table(subjects, part, rounds):
    """Times all cases whose names contain `part`, and prints each as it is measured. Returns {name: ratio}, where a ratio above 1 means that Gradus
    is faster."""
    ours, others = subjects[0], subjects[1:]
    ratios = {}
    print(f"{'':34}" + "".join(f"{subject.title:>24}" for subject in subjects) + f"{'ratio':>9}")
    for name in ours.names:
        if part not in name:
            continue
        asked = [subject for subject in subjects if name in subject.names]
        times = {subject: [] for subject in asked}
        for _ in range(rounds):
            for subject in asked:
                nanoseconds, subject.resident = subject.measure(name)
                times[subject].append(nanoseconds)
        medians = {subject: statistics.median(times[subject]) for subject in asked}
        best = min((medians[subject] for subject in others if subject in medians), default=math.nan)
        ratios[name] = best / medians[ours]
        print(f"{name:34}" + "".join(f"{readable(medians[subject]) if subject in medians else '':>24}" for subject in subjects) + f"{ratios[name]:>9.2f}", flush=True)
    return ratios


def compare(cases, description, layouts=("default",), ours="default"):
    """The main program of a benchmark. With --serve it times the cases of one subject (a package with a memory layout) on request. Otherwise it
    prints a table with the times of Gradus in the layout `ours` and of PyTorch in all `layouts`."""
    if sys.argv[1:2] == ["--serve"]:
        return serve(cases, sys.argv[2], sys.argv[3], int(sys.argv[4]))
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--only", metavar="PART", default="", help="names that contain this")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    subjects = [Subject("gradus", ours, arguments.threads)] + [Subject("torch", layout, arguments.threads) for layout in layouts]
    ratios = table(subjects, arguments.only, arguments.rounds)
    for subject in subjects:
        subject.stop()
    print(f"\nleast {min(ratios.values()):.2f}, geometric mean {math.exp(statistics.fmean(map(math.log, ratios.values()))):.2f}; "
          f"memory beyond the import: {', '.join(f'{subject.title} {subject.resident / 1e6:.0f} MB' for subject in subjects)}")
