"""Builds a preset, runs its tests, and prints how many passed, failed and were skipped, with the reasons for skipping.

  test.py --preset release --all      runs everything that `make test` runs: C tests, Python tests, a program built against an installed Gradus
  test.py --preset release --skipped  runs the tests that the last --all skipped, once the missing software is installed
  test.py --preset dev                runs the C tests of a preset  [--label LABEL]
  test.py --preset dev --package      runs the tests of the Python package on a preset's build, with its sanitizer loaded first
                                      [--label threads] [--select NAMES]
  test.py --sum                       prints the sum of the counts of the last --all and of all runs since
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COUNTS = ROOT / "build" / "test-counts"
SKIPPED = ROOT / "build" / "skipped-tests"
NO_CMOCKA = "cmocka, which the C tests need, is not installed: as root, apt-get install libcmocka-dev"
JOBS = str(os.cpu_count() or 2)
# Makes AddressSanitizer record 8 callers of each allocation and keep 16 MB of freed memory. Tests of failing allocations make millions of allocations
# and take a third longer with the default values.
SHORT_MEMORY = "malloc_context_size=8:quarantine_size_mb=16"


class Outcome:
    """Numbers of tests that passed and failed, and a count of skipped tests for each reason."""

    def __init__(self, passed=0, failed=0, reasons=()):
        self.passed, self.failed, self.reasons = passed, failed, Counter(reasons)

    def __add__(self, other):
        return Outcome(self.passed + other.passed, self.failed + other.failed, self.reasons + other.reasons)

    def line(self):
        return f"{self.passed} passed, {self.failed} failed, {self.reasons.total()} skipped"

    def report(self):
        if self.reasons:
            print("\nSkipped:")
        for reason, count in self.reasons.most_common():
            print(f"{count:7}  {reason}")
        print(f"\n{self.line()}", flush=True)


def run(command, **options):
    return subprocess.run([str(c) for c in command], cwd=ROOT, **options)


def has_cmocka():
    probe = subprocess.run([os.environ.get("CC", "cc"), "-xc", "-fsyntax-only", "-"], capture_output=True, text=True,
                           input="#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <cmocka.h>\n")
    return probe.returncode == 0


def get_cmocka():
    """Installs cmocka if needed and possible. Returns True if cmocka is installed. cmocka is the only dependency of the C tests that is not in the
    Python package registry. It is installed by apt-get if that exists and this process runs as root."""
    if has_cmocka():
        return True
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print("cmocka is missing: apt-get install libcmocka-dev", flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "libcmocka-dev"]
        for command in (install, ["apt-get", "update", "-qq"], install):
            if run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0 and has_cmocka():
                return True
    return False


def build(preset, *targets):
    """Configures the preset and builds the targets. Returns the build folder. Configuring is quick if nothing has changed."""
    log = ROOT / "build" / f"configure-{preset}.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("w") as output:
        configured = run(["cmake", "--preset", preset], stdout=output, stderr=subprocess.STDOUT)
    if configured.returncode:
        sys.exit(log.read_text())
    run(["cmake", "--build", "--preset", preset, "-j", JOBS, "--target", *(targets or ("all", "tests"))], check=True)
    return ROOT / "build" / preset


# ---- C tests ------------------------------------------------------------------------------------------------------------


def unbuilt_tests():
    """Returns the number of tests in the programs that need cmocka. A program with generated tests counts as one test."""
    programs = [path.read_text() for path in (ROOT / "test").glob("*/*.c") if path.parent.name != "fuzz"]
    return sum(max(1, len(re.findall(r"\b(?:cmocka_unit_test\w*|IN_SCOPE)\(", text))) for text in programs if "\nint main(" in text)


def c_tests(preset, label):
    """Runs ctest and returns the Outcome, which counts each test inside a cmocka program separately."""
    missing = Outcome() if get_cmocka() else Outcome(reasons={NO_CMOCKA: unbuilt_tests()})
    directory = build(preset)
    selected = ["-L", label] if label else []
    environment = {**os.environ, "ASAN_OPTIONS": f"detect_leaks=1:allocator_may_return_null=1:{SHORT_MEMORY}", "UBSAN_OPTIONS": "print_stacktrace=1",
                   "TSAN_OPTIONS": "halt_on_error=1"}
    report = directory / "tests.xml"
    report.unlink(missing_ok=True)
    whole = ["--test-output-size-passed", str(1 << 20), "--test-output-size-failed", str(1 << 20)]
    run(["ctest", "--test-dir", directory, "--output-on-failure", "-j", JOBS, "--output-junit", report, *whole, *selected],
        env=environment)
    if not report.exists():
        return missing + Outcome(failed=1)
    return sum((program_outcome(case) for case in ElementTree.parse(report).getroot().iter("testcase")), missing)


def program_outcome(case):
    """Returns the Outcome of one program, read from the program's output. cmocka prints the counts, and a test prints "skipped: REASON" before it
    skips. A program without cmocka counts as one test."""
    output = case.findtext("system-out") or ""
    passed, failed, skipped = (sum(int(n) for n in re.findall(rf"\[  {word}\s*\] (\d+) test", output)) for word in ("PASSED", "FAILED", "SKIPPED"))
    reasons = Counter(re.findall(r"^skipped: (.*)$", output, flags=re.M))
    reasons["no reason is given"] = skipped - reasons.total()
    ran = case.get("status") == "run"
    if not (passed or failed or skipped):
        passed = int(ran)
    return Outcome(passed, max(failed, 0 if ran else 1), +reasons)


# ---- Python tests -------------------------------------------------------------------------------------------------------


# The Python interpreter is built without a sanitizer, so the sanitizer's runtime library must be preloaded. The C++ library is preloaded too, because
# PyTorch throws C++ exceptions. Leaks are not detected, because CPython itself keeps memory until the process ends.
RUNTIMES = {"dev": ("libasan.so", "libstdc++.so.6"), "tsan": ("libtsan.so", "libstdc++.so.6")}
SANITIZED = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1",
             "TSAN_OPTIONS": f"halt_on_error=1:exitcode=66:suppressions={ROOT / 'test/data/tsan.supp'}",
             "PYTHONMALLOC": "malloc"}


def package_environment(preset):
    environment = {"GRADUS_BUILD": f"build/{preset}"}
    if preset not in RUNTIMES:
        return environment
    compiler = os.environ.get("CC", "cc")
    paths = [subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip() for name in RUNTIMES[preset]]
    return {**environment, **SANITIZED, "LD_PRELOAD": " ".join(paths)}


def package_tests(preset, label, select):
    build(preset, "gradus_python")
    marks = " and ".join(([label] if label else []) + (["not forks"] if preset in RUNTIMES else []))
    chosen = ["-m", marks] * bool(marks) + ["-k", select] * bool(select)
    return python_tests("test/python/package", package_environment(preset), chosen)


def python_tests(folder, environment, selected=()):
    """Runs pytest with one worker for each core, prints the last lines of its output, and returns the Outcome from its report file. If a worker
    dies, the run ends and the worker's test counts as failed. If a sanitizer is loaded, pytest does not capture file descriptors, because
    the capture would lose the report that the sanitizer prints before it ends a worker."""
    report = ROOT / "build" / "pytest.xml"
    report.unlink(missing_ok=True)
    result = run([sys.executable, "-m", "pytest", "-q", folder, "-p", "no:cacheprovider", f"--junitxml={report}", *selected,
                  "-n", JOBS, "--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "0",
                  *["--capture=sys"] * ("LD_PRELOAD" in environment)], capture_output=True, text=True, env={**os.environ, **environment})
    print(result.stdout[-4000:], result.stderr[-4000:], sep="", flush=True)
    if not report.exists():
        return Outcome(failed=1)
    suite = ElementTree.parse(report).getroot().find("testsuite")
    counts = {name: int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped")}
    failed = counts["failures"] + counts["errors"] or int(result.returncode != 0)
    reasons = [skip.get("message").removeprefix("Skipped: ") for skip in suite.iter("skipped")]
    return Outcome(counts["tests"] - counts["failures"] - counts["errors"] - counts["skipped"], failed, reasons)


# ---- All tests ----------------------------------------------------------------------------------------------------------


def everything():
    COUNTS.unlink(missing_ok=True)
    in_c = c_tests("release", None)
    outcome = in_c + python_tests("test/python", {"GRADUS_TESTS_SKIPPED": str(SKIPPED)})
    if NO_CMOCKA in in_c.reasons:
        SKIPPED.write_text(f"{NO_CMOCKA}\n{SKIPPED.read_text()}")
    return outcome


def skipped_tests():
    if not SKIPPED.exists():
        sys.exit("Nothing has been skipped: run make test first")
    in_c = c_tests("release", None) if NO_CMOCKA in SKIPPED.read_text() else Outcome()
    return in_c + python_tests("test/python", {"GRADUS_TESTS": str(SKIPPED)})


def counted():
    """Returns "P passed, F failed, S skipped", summed over all lines of the file COUNTS, to which each run appends its counts."""
    rows = [[int(n) for n in re.findall(r"\d+", line)] for line in COUNTS.read_text().splitlines()]
    passed, failed, skipped = (sum(column) for column in zip(*rows))
    return f"{passed} passed, {failed} failed, {skipped} skipped"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="release")
    parser.add_argument("--label")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--skipped", action="store_true")
    parser.add_argument("--package", action="store_true")
    parser.add_argument("--sum", action="store_true")
    parser.add_argument("--select", help="of the package's tests those whose names pytest's -k finds")
    arguments = parser.parse_args()
    if arguments.sum:
        print(counted())
        return
    if arguments.all:
        outcome = everything()
    elif arguments.skipped:
        outcome = skipped_tests()
    elif arguments.package:
        outcome = package_tests(arguments.preset, arguments.label, arguments.select)
    else:
        outcome = c_tests(arguments.preset, arguments.label)
    with COUNTS.open("a") as counts:
        print(outcome.line(), file=counts)
    outcome.report()
    sys.exit(1 if outcome.failed else 0)


if __name__ == "__main__":
    main()
