"""A stranger's program against an install, in an empty folder: pkg-config, C11, C++17, CMake. What is installed: symbols, size."""
import pytest

from conftest import ROOT, libdir, run

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
    grd_sum_options rows{};
    rows.dim = grd_dims(1);
    rows.keepdim = true;
    const int64_t one[] = {1};
    rows.dim = grd_dims{one, 1};
    grd_tensor *y = grd_sum(grd_mul(x, x), rows);
    grd_backward(grd_sum(y));
    grd_print(grd_grad_of(x));
    grd_add(x, grd_zeros(grd_dims(3)));
    std::printf("%s: %s\n", grd_error_class(grd_error_get()), grd_error_message());
    grd_error_clear();
    grd_scope_close(scope);
    return grd_ok() ? 0 : 1;
}
'''.replace("    rows.dim = grd_dims(1);\n", "")

OUTPUT = ("tensor([[2., 4.],\n        [6., 8.]])\n"
          "RuntimeError: add: The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1\n")


@pytest.mark.parametrize("name, text, compiler", [
    ("main.c", C_PROGRAM, "cc -std=c11"),
    ("main.cpp", CPP_PROGRAM, "c++ -std=c++17"),
])
def test_one_line_builds_a_strangers_program(prefix, tmp_path, name, text, compiler):
    (tmp_path / name).write_text(text)
    built = run(f"{compiler} -Wall -Wextra -Werror {name} -o main $(pkg-config --cflags --libs gradus)", tmp_path, PKG_CONFIG_PATH=str(libdir(prefix)))
    assert built.returncode == 0, built.stderr
    ran = run(["./main"], tmp_path)
    assert (ran.returncode, ran.stdout) == (0, OUTPUT), ran.stdout + ran.stderr


def test_cmake_package(prefix, tmp_path):
    (tmp_path / "main.c").write_text(C_PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(stranger C)\nfind_package(gradus 0.1 REQUIRED)\n"
        "add_executable(main main.c)\ntarget_link_libraries(main gradus::gradus)\n")
    built = run(f"cmake -S . -B build -DCMAKE_PREFIX_PATH={prefix} && cmake --build build", tmp_path)
    assert built.returncode == 0, built.stdout + built.stderr
    ran = run(["build/main"], tmp_path)
    assert (ran.returncode, ran.stdout) == (0, OUTPUT)


def test_only_grd_symbols_are_exported(prefix):
    library = next(prefix.rglob("libgradus.so"))
    listing = run(["nm", "-D", "--defined-only", str(library)], ROOT).stdout.split("\n")
    foreign = [line for line in listing if line and not line.split()[-1].startswith("grd_")]
    assert not foreign


def test_the_library_is_small(prefix, tmp_path):
    stripped = tmp_path / "stripped.so"
    assert run(["strip", "-o", str(stripped), str(next(prefix.rglob("libgradus.so")))], ROOT).returncode == 0
    assert stripped.stat().st_size <= 4_000_000
