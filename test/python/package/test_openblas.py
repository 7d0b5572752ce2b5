"""Checks that OpenBLAS is loaded by the first product that needs it, uses kernels for the instruction-set level, and never ends the process.

Each case runs in a process of its own, because a process chooses the kernels only once."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import BUILD
import gradus as torch

LINUX = Path("/proc/self/maps").exists()
HAS_OPENBLAS = subprocess.run([sys.executable, "-c", "import gradus; print(gradus.__config__.show())"], capture_output=True, text=True,
                              env={k: v for k, v in os.environ.items() if k != "GRADUS_OPENBLAS"} | {"PYTHONPATH": str(BUILD / "python")}).stdout.find("BLAS: openblas") >= 0
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "") or "libtsan" in os.environ.get("LD_PRELOAD", "")
needs_openblas = pytest.mark.skipif(not HAS_OPENBLAS, reason="OpenBLAS is not there: pip install scipy-openblas64")

PRODUCT = """
import gradus as torch
a = torch.ones(200, 200, dtype=torch.complex128)
assert bool(((a @ a) == 200).all())
"""
SHOW = "print(torch.__config__.show().split('BLAS: ')[1].splitlines()[0])\n"


def run(program, before=None, **environment):
    """Returns the output of a Python program that is run in a new process. The process calls before() first."""
    # The variables OPENBLAS_* would choose OpenBLAS's kernels, so the process runs without them.
    own = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=own | environment, preexec_fn=before)
    assert result.returncode == 0, f"status {result.returncode}: {result.stdout}{result.stderr}"
    return result.stdout.strip()


@needs_openblas
@pytest.mark.skipif(not LINUX, reason="what is loaded is read from /proc, which this system lacks")
def test_openblas_is_loaded_by_the_first_large_product():
    loaded = "print(*['openblas' in open('/proc/self/maps').read()])\n"
    program = "import gradus as torch\n" + loaded + "x = torch.ones(64, 64); x @ x\n" + loaded + PRODUCT + loaded
    assert run(program, GRADUS_ISA="v3").split() == ["False", "False", "True"]


@needs_openblas
def test_loading_openblas_does_not_change_the_environment():
    program = """
import ctypes
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
names = [b"OPENBLAS_NUM_THREADS", b"OPENBLAS_CORETYPE", b"HOME"]
before = [getenv(name) for name in names]
""" + PRODUCT + SHOW + "assert [getenv(name) for name in names] == before"
    assert run(program).startswith("openblas")
    assert run(program, OPENBLAS_CORETYPE="Nehalem").endswith("Nehalem")  # OpenBLAS uses the kernels that the user chooses


@needs_openblas
@pytest.mark.parametrize("level, core", [("v2", "Nehalem"), ("v3", "Haswell"), ("v4", "SkylakeX")])
def test_openblas_uses_kernels_of_the_instruction_set_level(level, core):
    if torch.__config__.show().find("x86-64-v") < 0 or run("import gradus; print(gradus.__config__.show())", GRADUS_ISA=level).find(f"x86-64-{level}") < 0:
        pytest.skip(f"this processor has no x86-64-{level}")
    assert run(PRODUCT + SHOW, GRADUS_ISA=level).endswith(core)


def test_openblas_is_not_loaded_with_gradus_openblas_none():
    assert run(PRODUCT + SHOW, GRADUS_OPENBLAS="none") in ("built-in (OpenBLAS is not used: GRADUS_OPENBLAS=none)", "built-in")


def test_a_file_that_is_no_openblas_library_is_not_used(tmp_path):
    text = tmp_path / "text.so"
    text.write_text("text")
    for path in (text, tmp_path / "absent.so"):
        assert run(PRODUCT + SHOW, GRADUS_OPENBLAS=str(path)) in (
            "built-in (OpenBLAS is not used: the file that GRADUS_OPENBLAS names cannot be loaded)", "built-in")
    assert run(PRODUCT + SHOW, GRADUS_OPENBLAS=torch._C.__file__) in (
        "built-in (OpenBLAS is not used: it lacks functions for 64-bit integers)", "built-in")


@pytest.mark.skipif(SANITIZED, reason="a sanitizer needs more address space than it may have here")
@pytest.mark.parametrize("threads", ["1", "8"])
def test_products_under_a_limit_of_the_address_space(threads):
    """With any limit of the address space a product gives the right result or raises MemoryError. The process must not be aborted."""
    import resource
    program = "import gradus as torch\ntry:\n    exec('''" + PRODUCT + "''')\nexcept MemoryError:\n    pass\nelse:\n    " + SHOW
    seen = set()
    for kilobytes in [*range(60_000, 320_000, 20_000), 400_000, 600_000, 1_000_000, 2_000_000]:
        size = kilobytes * 1024
        seen.add(run(program, lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)), GRADUS_NUM_THREADS=threads).split(" ")[0])
    assert "built-in" in seen and ("openblas" in seen or not HAS_OPENBLAS)


@pytest.mark.skipif(SANITIZED, reason="a sanitizer needs more address space than it may have here")
@pytest.mark.threads
def test_products_in_many_threads_with_little_memory():
    """Each product that runs at the same time as others needs a buffer. Products without a buffer wait for a free one."""
    import resource
    program = """
import threading
""" + PRODUCT + """
wanted = a @ a
def work():
    for _ in range(5):
        assert torch.equal(a @ a, wanted)
threading.stack_size(256 * 1024)
threads = [threading.Thread(target=work) for _ in range(12)]
[t.start() for t in threads]; [t.join() for t in threads]
""" + SHOW
    for megabytes in (280, 320, 360, 400, 500):
        size = megabytes << 20
        run(program, lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)), GRADUS_NUM_THREADS="1", MALLOC_ARENA_MAX="1")


@pytest.mark.skipif(SANITIZED, reason="a sanitizer needs more address space than it may have here")
def test_a_product_works_if_no_thread_can_be_started():
    import resource
    assert run(PRODUCT + SHOW, lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))).startswith(("openblas", "built-in"))


@pytest.mark.forks
def test_a_product_works_after_fork():
    program = "import os\n" + PRODUCT + """
wanted = a @ a
child = os.fork()
if child == 0:
    os._exit(0 if torch.equal(a @ a, wanted) else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    run(program)


def test_products_do_not_depend_on_the_number_of_threads():
    program = """
import gradus as torch
torch.manual_seed(0)
import hashlib
h = hashlib.sha1()
for dtype in (torch.complex64, torch.complex128, torch.float32, torch.float64):
    a, b = torch.randn(300, 260, dtype=dtype), torch.randn(260, 410, dtype=dtype)
    h.update(bytes((a @ b).contiguous().view(torch.uint8).flatten().tolist()) if not dtype.is_complex
             else bytes(torch.view_as_real(a @ b).contiguous().view(torch.uint8).flatten().tolist()))
print(h.hexdigest())
"""
    assert len({run(program, GRADUS_NUM_THREADS=n) for n in ("1", "2", "3", "8")}) == 1
