"""Puts the package of the build (GRADUS_BUILD, by default build/release) on the path of the tests, installs the build once for each run, and runs
commands.

The order of files, and of the tests within a file, is random. The end of the report shows the GRADUS_TEST_SEED that repeats this order. If workers
share the tests (pytest-xdist), each worker takes the next file in this order. Which worker runs a file then depends on time."""
import ast
import fcntl
import gc
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / os.environ.get("GRADUS_BUILD", "build/release")
PACKAGE = ROOT / "test/python/package"
NO_HEADERS = "the extension is not built, because Python's headers are missing: as root, apt-get install python3-dev"
SEED = os.environ.get("GRADUS_TEST_SEED") or str(random.randrange(2**32))
os.environ["GRADUS_TEST_SEED"] = SEED  # All workers must collect the tests in the same order.
sys.path.insert(0, str(BUILD / "python"))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(BUILD / "python"), os.environ.get("PYTHONPATH")]))  # for processes that tests start


def run(command, cwd, **environment):
    return subprocess.run(command, cwd=cwd, shell=isinstance(command, str), capture_output=True, text=True, env={**os.environ, **environment})


def needs(program, command):
    """Skips the test if `program` is not installed. `command` is the shell command that installs it."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: {command}")


def needs_python_headers():
    if not has_extension():
        pytest.skip(NO_HEADERS)


def has_extension():
    return any((BUILD / "python/gradus").glob("_C.*.so"))


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    """Installs the release build into a temporary folder and returns the folder."""
    folder = tmp_path_factory.mktemp("prefix")
    result = run(["cmake", "--install", str(ROOT / "build/release"), "--prefix", str(folder)], ROOT)
    assert result.returncode == 0, result.stderr
    return folder


def libdir(prefix):
    """Returns the folder of gradus.pc, for PKG_CONFIG_PATH."""
    return next(prefix.rglob("gradus.pc")).parent


def flags(prefix):
    """Returns the compiler flags that build a program against the installed release without pkg-config."""
    library = libdir(prefix).parent
    return f"-I{prefix}/include -L{library} -Wl,-rpath,{library} -lgradus"


def needs_pkg_config_and(compiler):
    needs("pkg-config", "as root, apt-get install pkg-config")
    needs(compiler, "as root, apt-get install g++")


@pytest.fixture(autouse=True)
def processes_find_the_package(request, monkeypatch):
    if PACKAGE in request.path.parents:
        monkeypatch.setenv("PYTHONPATH", str(BUILD / "python"))


@pytest.fixture(autouse=True)
def no_error_is_left(request):
    """Fails a test that leaves an error of the library pending, which an unrelated later call would raise."""
    yield
    if PACKAGE in request.path.parents:
        from gradus import _C

        assert not _C._error_is_pending()


def modes(torch):
    """Returns {name: (value, setter)} of the modes that a thread or the process keeps from one test to the next."""
    anomaly = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    return {
        "grad enabled": (torch.is_grad_enabled(), torch.set_grad_enabled), "inference mode": (torch.is_inference_mode_enabled(), None),
        "anomaly mode": (anomaly, lambda value: torch.autograd.set_detect_anomaly(*value)), "default dtype": (torch.get_default_dtype(), torch.set_default_dtype),
        "default device": (torch.get_default_device(), torch.set_default_device),
        "autocast": (torch.is_autocast_enabled("cpu"), lambda value: torch.set_autocast_enabled("cpu", value)),
        "number of threads": (torch.get_num_threads(), torch.set_num_threads),
    }


@pytest.fixture(autouse=True)
def modes_are_left_as_they_were(request):
    """Fails a test that leaves a mode changed, and restores the mode for the next test."""
    if PACKAGE not in request.path.parents:
        yield
        return
    import gradus

    before = modes(gradus)
    yield
    after = modes(gradus)
    changed = [name for name in before if before[name][0] != after[name][0]]
    for name in changed:
        value, restore = before[name]
        if restore is not None:
            restore(value)
    assert changed == [], f"left changed: {', '.join(f'{name} is {after[name][0]}, was {before[name][0]}' for name in changed)}"


@pytest.fixture
def no_collector():
    """Keeps the garbage collector from running during a test, because it would free tensors of earlier tests while this test counts memory."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Runs a test marked `alone` while no other worker runs a test."""
    with open(__file__) as file:
        fcntl.flock(file, fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH)
        try:
            return (yield)
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # Closing the file does not unlock it while a process forked by the test still has it open.


# ---- Tests of the package if it is not built ----------------------------------------------------------------------------


class Unbuilt(pytest.File):
    """Collects a file of tests that cannot be imported because the package is not built. Each test function in the file is skipped."""

    def collect(self):
        for node in ast.parse(self.path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                yield UnbuiltTest.from_parent(self, name=node.name)


class UnbuiltTest(pytest.Item):
    def runtest(self):
        pytest.skip(NO_HEADERS)


def pytest_pycollect_makemodule(module_path, parent):
    if PACKAGE in module_path.parents and not has_extension():
        return Unbuilt.from_parent(parent, path=module_path)
    return None


# ---- Order of the tests, and the report of skipped tests ----------------------------------------------------------------


def function_of(nodeid):
    """Returns the name of a test function without its parameters, because the parameters may depend on the software that is installed."""
    return nodeid.split("[")[0]


def pytest_collection_modifyitems(config, items):
    """Puts the tests into a random order, in which the tests of a file stay together because they share costly fixtures. If the environment variable
    GRADUS_TESTS is set, it is the path of a file that lists the test files and functions to run."""
    wanted = os.environ.get("GRADUS_TESTS")
    if wanted:
        names = set(Path(wanted).read_text().splitlines())
        kept = [item for item in items if names & {function_of(item.nodeid), item.nodeid.split("::")[0]}]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept
    order = random.Random(int(SEED))
    files = {path: order.random() for path in sorted({item.path for item in items})}
    items.sort(key=lambda item: (files[item.path], order.random()))


def pytest_report_header():
    return f"order: GRADUS_TEST_SEED={SEED}"


def pytest_terminal_summary(terminalreporter):
    skipped = sorted({function_of(report.nodeid) for report in terminalreporter.stats.get("skipped", [])})
    if "GRADUS_TESTS_SKIPPED" in os.environ:
        Path(os.environ["GRADUS_TESTS_SKIPPED"]).write_text("\n".join(skipped))
    terminalreporter.write_line(f"order: GRADUS_TEST_SEED={SEED}")
