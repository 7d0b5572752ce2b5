"""Builds small C11 and C++17 programs against an installed Gradus, in an empty folder, with pkg-config and with CMake. Also checks the exported
symbols and the size of the install."""
import json
import re
from pathlib import Path

import pytest

from conftest import ROOT, libdir, needs_pkg_config_and, run

C_PROGRAM = r'''
#include <stdio.h>
#include <gradus/gradus.h>
int main(void)
{
    grd_scope scope = grd_scope_open();
    grd_tensor *x = grd_from_data((const float[]){1, 2, 3, 4}, grd_dims(2, 2), GRD_FLOAT32);
    grd_set_requires_grad(x, true);
    grd_tensor *y = grd_sum(grd_mul(x, x), .dim = grd_dims(1), .keepdim = true);
    grd_backward(grd_sum(y));
    grd_print(grd_grad_of(x));
    grd_add(x, grd_zeros(grd_dims(3)));
    printf("%s: %s\n", grd_error_class(grd_error_get()), grd_error_message());
    grd_error_clear();
    grd_scope_close(scope);
    return grd_ok() ? 0 : 1;
}
'''

CPP_PROGRAM = r'''
#include <cstdio>
#include <gradus/gradus.h>
int main()
{
    grd_scope scope = grd_scope_open();
    const float values[] = {1, 2, 3, 4};
    grd_tensor *x = grd_set_requires_grad(grd_from_data(values, grd_dims(2, 2), GRD_FLOAT32), true);
    grd_sum_options rows;
    rows.dim = grd_dims(1);
    rows.keepdim = true;
    grd_tensor *y = grd_sum(grd_mul(x, x), rows);
    grd_backward(grd_sum(y));
    grd_print(grd_grad_of(x));
    grd_add(x, grd_zeros(grd_dims(3)));
    std::printf("%s: %s\n", grd_error_class(grd_error_get()), grd_error_message());
    grd_error_clear();
    grd_scope_close(scope);
    return grd_ok() ? 0 : 1;
}
'''

OUTPUT = ("tensor([[2., 4.],\n        [6., 8.]])\n"
          "RuntimeError: add: The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1\n")


@pytest.mark.parametrize("name, text, compiler", [
    ("main.c", C_PROGRAM, "cc -std=c11"),
    ("main.cpp", CPP_PROGRAM, "c++ -std=c++17"),
])
def test_one_command_with_pkg_config_builds_a_program(prefix, tmp_path, name, text, compiler):
    needs_pkg_config_and(compiler.split()[0])
    (tmp_path / name).write_text(text)
    built = run(f"{compiler} -Wall -Wextra -Werror {name} -o main $(pkg-config --cflags --libs gradus)", tmp_path, PKG_CONFIG_PATH=str(libdir(prefix)))
    assert built.returncode == 0, built.stderr
    ran = run(["./main"], tmp_path)
    assert (ran.returncode, ran.stdout) == (0, OUTPUT), ran.stdout + ran.stderr


def test_a_program_is_built_with_the_cmake_package(prefix, tmp_path):
    (tmp_path / "main.c").write_text(C_PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(stranger C)\nfind_package(gradus 0.1 REQUIRED)\n"
        "add_executable(main main.c)\ntarget_link_libraries(main gradus::gradus)\n")
    built = run(f"cmake -S . -B build -DCMAKE_PREFIX_PATH={prefix} && cmake --build build", tmp_path)
    assert built.returncode == 0, built.stdout + built.stderr
    ran = run(["build/main"], tmp_path)
    assert (ran.returncode, ran.stdout) == (0, OUTPUT)


@pytest.mark.parametrize("generator", ["Ninja", "Unix Makefiles"])
def test_a_build_without_options_is_optimised(tmp_path, generator):
    configured = run(["cmake", "-S", ROOT, "-B", tmp_path, "-G", generator], ROOT)
    assert configured.returncode == 0, configured.stderr
    commands = {Path(c["file"]).name: c["command"] for c in json.loads((tmp_path / "compile_commands.json").read_text())}
    slow = [name for name, command in commands.items() if not re.search(r" -O[23] ", command)]
    assert not slow
    assert not any("python/_C" in command for command in commands.values())


@pytest.mark.parametrize("name, options", [("libgradus.so", "-D"), ("libgradus.a", "-g")])
def test_only_public_symbols_are_exported(prefix, name, options):
    """Neither the shared nor the static library exports hidden operators or internal functions."""
    listing = run(["nm", options, "--defined-only", str(next(prefix.rglob(name)))], ROOT).stdout.split("\n")
    symbols = [line.split()[-1] for line in listing if len(line.split()) == 3]
    assert len(symbols) > 500
    assert not [s for s in symbols if not s.startswith("grd_") or "__" in s or s.startswith("grd_hidden")]


def test_headers_declare_what_the_library_exports(prefix):
    exported = {line.split()[-1] for line in run(["nm", "-D", "--defined-only", str(next(prefix.rglob("libgradus.so")))], ROOT).stdout.splitlines()}
    headers = "".join(path.read_text() for path in (prefix / "include" / "gradus").rglob("*.h"))
    declared = set(re.findall(r"\b(grd_\w+)\(", "".join(re.findall(r"^GRD_API [^;]*;", headers, re.M))))
    assert declared - exported == set()
    assert exported - declared == {"grd_debug_layout"}  # debuggers read this symbol
    assert not re.search(r"\bgrd_(with_|named_)?(hidden|_)", headers)


@pytest.mark.parametrize("name, text, compiler", [("main.c", C_PROGRAM, "cc -std=c11"), ("main.cpp", CPP_PROGRAM, "c++ -std=c++17")])
def test_a_program_links_the_static_library(prefix, tmp_path, name, text, compiler):
    needs_pkg_config_and(compiler.split()[0])
    (tmp_path / name).write_text(text)
    flags = run("pkg-config --static --libs gradus", tmp_path, PKG_CONFIG_PATH=str(libdir(prefix))).stdout.strip().replace("-lgradus", "-l:libgradus.a")
    built = run(f"{compiler} -Wall -Wextra -Werror {name} -o main $(pkg-config --cflags gradus) {flags} -Wl,--gc-sections", tmp_path,
                PKG_CONFIG_PATH=str(libdir(prefix)))
    assert built.returncode == 0, built.stderr
    assert "libgradus" not in run(["ldd", "main"], tmp_path).stdout
    for blas in ("none", ""):
        ran = run(["./main"], tmp_path, **({"GRADUS_OPENBLAS": blas} if blas else {}))
        assert (ran.returncode, ran.stdout) == (0, OUTPUT), ran.stdout + ran.stderr


def test_cmake_package_has_the_static_library(prefix, tmp_path):
    (tmp_path / "main.c").write_text(C_PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(stranger C)\nfind_package(gradus 0.1 REQUIRED)\n"
        "add_executable(main main.c)\ntarget_link_libraries(main gradus::static)\n")
    built = run(f"cmake -S . -B build -DCMAKE_PREFIX_PATH={prefix} && cmake --build build", tmp_path)
    assert built.returncode == 0, built.stdout + built.stderr
    ran = run(["build/main"], tmp_path)
    assert (ran.returncode, ran.stdout) == (0, OUTPUT)


def test_configuring_for_a_32_bit_platform_is_an_error(tmp_path):
    """The test tells CMake that pointers have 4 bytes, so it needs no 32-bit C library."""
    result = run(f"cmake -S {ROOT} -B {tmp_path} -DCMAKE_SIZEOF_VOID_P=4 -DCMAKE_C_ABI_COMPILED=1", tmp_path)
    assert result.returncode != 0
    assert "Gradus needs a 64-bit platform" in result.stderr and "Python" not in result.stderr


def test_the_stripped_library_is_at_most_10_megabytes(prefix, tmp_path):
    stripped = tmp_path / "stripped.so"
    assert run(["strip", "-o", str(stripped), str(next(prefix.rglob("libgradus.so")))], ROOT).returncode == 0
    assert stripped.stat().st_size <= 10_000_000
