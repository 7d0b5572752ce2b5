"""Checks that the gdb script prints tensors of an installed release library, in a running program and in a core file."""
import re
import subprocess

import pytest

from conftest import ROOT, flags, needs

PROGRAM = r"""
#include <gradus/gradus.h>
#include <math.h>
struct all { grd_tensor *leaf, *result, *view, *meta, *failed, *empty, *absent, *wild; grd_node *node; grd_dims dims, no_dims; grd_tensors list; grd_device device; grd_scalar scalar; grd_dtype dtype; };
__attribute__((noinline)) void stop_here(struct all *all);
void stop_here(struct all *all) { __asm__ volatile("" : : "r"(all) : "memory"); }
int main(void)
{
    static char nothing[512];
    struct all all = {0};
    all.leaf = grd_set_requires_grad(grd_from_data((const float[]){0.5, -1, 2, 3, 4, NAN}, grd_dims(2, 3), GRD_FLOAT32), true);
    all.result = grd_mul(all.leaf, all.leaf);
    all.view = grd_select(grd_transpose(grd_view(grd_arange(grd_int(20)), grd_dims(4, 5)), 0, 1), 0, 2);
    all.meta = grd_empty(grd_dims(2), .device = GRD_META);
    all.failed = grd_failed;
    all.empty = grd_zeros(grd_dims(0, 2), .dtype = GRD_BOOL);
    all.wild = (grd_tensor *)nothing;
    all.node = grd_grad_fn(all.result);
    all.dims = grd_dims(1, 2);
    all.list = grd_tensors(all.leaf, all.meta);
    all.device = GRD_CPU;
    all.scalar = grd_float(2.5);
    all.dtype = GRD_FLOAT32;
    stop_here(&all);
    return grd_item_double(grd_select(grd_select(all.result, 0, 0), 0, 1)) != 1;
}
"""
STORAGE = r"offset %s in storage 0x[0-9a-f]+ \(%s bytes, version \d+\)"
PRINTED = {
    "leaf": r"tensor of float32, sizes \[2, 3\], strides \[3, 1\], requires_grad, " + STORAGE % (0, 24) + r" = \[0.5, -1, 2, 3, 4, nan\]",
    "result": r"tensor of float32, sizes \[2, 3\], strides \[3, 1\], requires_grad, grad_fn MulBackward0, " + STORAGE % (0, 24) + r" = \[0.25, 1, 4, 9, 16, nan\]",
    "view": r"tensor of int64, sizes \[4\], strides \[5\], view of 0x[0-9a-f]+, " + STORAGE % (2, 160) + r" = \[2, 7, 12, 17\]",
    "meta": r"tensor of float32, sizes \[2\], strides \[1\], device meta, " + STORAGE % (0, 8),
    "failed": r"failed tensor of float32, sizes \[\], strides \[\], .*",
    "empty": r"tensor of bool, sizes \[0, 2\], strides \[2, 1\], " + STORAGE % (0, 0) + r" = \[\]",
    "wild": "memory that cannot be read",
}
VALUES = {"absent": r"\(grd_tensor \*\) 0x0", "node": r"\(grd_node \*\) 0x[0-9a-f]+ MulBackward0 to \[AccumulateGrad, AccumulateGrad\]", "dims": r"\[1, 2\]",
          "no_dims": "absent", "list": r"2 tensors = \{\[0\] = \(grd_tensor \*\) .* = \[0.5, .*\], \[1\] = \(grd_tensor \*\) .*device meta.*\}",
          "device": "cpu", "scalar": "2.5", "dtype": "GRD_FLOAT32"}


@pytest.fixture(scope="module")
def program(prefix, tmp_path_factory):
    needs("gdb", "as root, apt-get install gdb")
    folder = tmp_path_factory.mktemp("gdb")
    (folder / "main.c").write_text(PROGRAM)
    result = subprocess.run(f"cc -g -O1 -std=gnu11 -Wall -Wextra -Werror main.c -o main {flags(prefix)} -lm", cwd=folder, shell=True, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return folder / "main"


def gdb(prefix, *arguments):
    settings = ["set debuginfod enabled off", "set width 0", f"add-auto-load-scripts-directory {prefix}/share/gdb/auto-load", f"add-auto-load-safe-path {prefix}"]
    command = ["gdb", "-q", "-batch", "-nx", *(word for line in settings for word in ("-iex", line)), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True)
    if "Python scripting is not supported" in result.stdout + result.stderr:
        pytest.skip("this gdb was built without Python")
    return result.stdout


def commands(*lines):
    return [word for line in lines for word in ("-ex", line)]


def check(printed):
    values = dict(re.findall(r"^(\w+):(.*)$", printed, flags=re.M))
    for name, pattern in PRINTED.items():
        assert re.fullmatch(r"\(grd_tensor \*\) 0x[0-9a-f]+ " + pattern, values[name]), (name, values[name])
    for name, pattern in VALUES.items():
        assert re.fullmatch(pattern, values[name]), (name, values[name])


OUTPUT = [word for name in (*PRINTED, *VALUES) for word in (f"echo {name}:", f"output all->{name}", "echo \\n")]


def test_values_are_printed_in_a_running_program_and_in_its_core_file(prefix, program, tmp_path):
    core = tmp_path / "core"
    check(gdb(prefix, *commands("break stop_here", "run", *OUTPUT, f"generate-core-file {core}"), program))
    assert core.exists()
    check(gdb(prefix, *commands(*OUTPUT), program, core))


def test_printing_calls_no_function_of_the_program(prefix, program):
    printed = gdb(prefix, *commands("set may-call-functions off", "break stop_here", "run", "print all->result"), program)
    assert "grad_fn MulBackward0" in printed


def test_the_script_has_the_offsets_and_dtypes_of_the_library():
    """gdb/gradus-gdb.py has a name for each offset that src/api/layout.c exports, and a name for every dtype."""
    script = (ROOT / "gdb/gradus-gdb.py").read_text()
    layout = re.search(r"LAYOUT = \((.*?)\)\.split", script, flags=re.S)[1].replace('"', " ").split()
    entries = re.findall(r"^    (.+),$", (ROOT / "src/api/layout.c").read_text(), flags=re.M)
    assert len(layout) == len(entries)
    for name, entry in zip(layout, entries):
        member = re.search(r"(\w+)\)?$", entry)[1].lower()
        assert name.endswith(member.removeprefix("grd_key_")) or name in ("edge_size", "autograd_key"), (name, entry)
    dtypes = re.findall(r"\bX\(\w+, (\w+), \w+, (\d+)", (ROOT / "include/gradus/types.h").read_text())
    named = re.findall(r'\("(\w+)", "([?\w]*)"\)', re.search(r"DTYPES = \[(.*?)\]\n", script, flags=re.S)[1])
    assert [name for name, _ in named] == ["none", *(name for name, _ in dtypes)]
    sizes = {"?": 1, "B": 1, "b": 1, "H": 2, "h": 2, "I": 4, "i": 4, "Q": 8, "q": 8, "e": 2, "ee": 4, "f": 4, "d": 8, "ff": 8, "dd": 16, "bfloat16": 2}
    assert all(sizes[code] == int(size) for (_, code), (_, size) in zip(named[1:], dtypes))
