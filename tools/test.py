"""Builds a preset, runs its tests, and ends with the count of passed and failed.

  test.py --preset release --all      everything `make test` runs: C tests, the tests in Python, a stranger's program against an install
  test.py --preset dev                the C tests of a preset  [--label LABEL]
  test.py --preset dev --package      the tests of the Python package on a preset's build, its sanitizer loaded first  [--label threads] [--select NAMES]
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ROOT / "tools" / "install-packages.sh"


def run(command, **options):
    return subprocess.run([str(c) for c in command], cwd=ROOT, **options)


def need_cmocka():
    """cmocka is the one thing the tests need that the Python registry does not have."""
    probe = subprocess.run([os.environ.get("CC", "cc"), "-xc", "-fsyntax-only", "-"], capture_output=True, text=True,
                           input="#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <cmocka.h>\n")
    if probe.returncode == 0:
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print("cmocka is missing: running", PACKAGES.relative_to(ROOT), flush=True)
        run(["bash", PACKAGES], check=True)
    else:
        sys.exit(f"The C tests need cmocka. As root, run {PACKAGES.relative_to(ROOT)}")


def build(preset, *targets):
    jobs = ["-j", str(os.cpu_count() or 2)]
    directory = ROOT / "build" / preset
    if not (directory / "build.ninja").exists():
        run(["cmake", "--preset", preset], check=True, stdout=subprocess.DEVNULL)
    run(["cmake", "--build", "--preset", preset, *jobs, "--target", *(targets or ("all", "tests"))], check=True)
    return directory


def c_tests(directory, label):
    """Runs ctest; counts the tests inside each cmocka program."""
    selected = ["-L", label] if label else []
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1",
                   "TSAN_OPTIONS": "halt_on_error=1"}
    report = directory / "tests.xml"
    report.unlink(missing_ok=True)
    whole = ["--test-output-size-passed", str(1 << 20), "--test-output-size-failed", str(1 << 20)]
    run(["ctest", "--test-dir", directory, "--output-on-failure", "-j", str(os.cpu_count() or 2), "--output-junit", report, *whole, *selected],
        env=environment)
    passed = failed = 0
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        output = case.findtext("system-out") or ""
        inside = sum(int(n) for n in re.findall(r"\[  PASSED  \] (\d+) test", output))
        broken = sum(int(n) for n in re.findall(r"\[  FAILED  \] (\d+) test", output))
        ran = case.get("status") == "run"
        passed += inside if inside or broken else int(ran)
        failed += max(broken, 0 if ran else 1)
    return passed, failed


# A sanitizer's runtime must be there before the interpreter, which is built without, and for it the C++ library that the oracle throws exceptions
# with. What CPython keeps until its end is no leak of ours.
RUNTIMES = {"dev": ("libasan.so", "libstdc++.so.6"), "tsan": ("libtsan.so", "libstdc++.so.6")}
SANITIZED = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1", "TSAN_OPTIONS": "halt_on_error=1:exitcode=66",
             "PYTHONMALLOC": "malloc"}


def package_environment(preset):
    environment = {**os.environ, "GRADUS_BUILD": f"build/{preset}"}
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


def python_tests(folder, environment=None, selected=()):
    result = run([sys.executable, "-m", "pytest", "-q", folder, "-p", "no:cacheprovider", *selected], capture_output=True, text=True,
                 env=environment or os.environ)
    print(result.stdout[-4000:], result.stderr[-2000:], sep="", flush=True)
    counts = dict((word, int(n)) for n, word in re.findall(r"(\d+) (passed|failed|error)", result.stdout))
    failed = counts.get("failed", 0) + counts.get("error", 0)
    return counts.get("passed", 0), failed or int(result.returncode not in (0,))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--preset", required=True)
    parser.add_argument("--label")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--package", action="store_true")
    parser.add_argument("--select", help="of the package's tests those whose names pytest's -k finds")
    arguments = parser.parse_args()
    if arguments.package:
        passed, failed = package_tests(arguments.preset, arguments.label, arguments.select)
    else:
        need_cmocka()
        passed, failed = c_tests(build(arguments.preset), arguments.label)
    if arguments.all:
        more_passed, more_failed = python_tests("test/python")
        passed, failed = passed + more_passed, failed + more_failed
    print(f"\n{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
