"""Tests list types such as grd_dims in C++. A stored list owns its elements, so it stays valid after the expression that made it. Code that would
leave a dangling pointer does not compile."""
import shutil

import pytest

from conftest import BUILD, ROOT, needs, run

FLAGS = f"-Wall -Wextra -pedantic -Wshadow -Werror -I{ROOT / 'include'} -I{BUILD / 'include'}"
LINK = f"-L{BUILD} -lgradus -Wl,-rpath,{BUILD}"

# This function overwrites the part of the stack that a temporary used, so that a dangling pointer to it gives wrong values.
OVERWRITE_THE_STACK = """
static void overwrite_the_stack()
{
    volatile char bytes[4096];
    for (char volatile &byte : bytes)
        byte = 0x55;
}
"""

PROGRAM = r"""
#include <gradus/gradus.h>

#include <cstdio>
#include <utility>
#include <vector>

struct layer {
    grd_dims shape;
    grd_sum_options options;
    grd_tensors parts;
};

static layer make(grd_tensor *t)
{
    layer made;
    made.shape = grd_dims(3, 4);
    made.options.dim = grd_dims(0, 1);
    made.options.keepdim = true;
    made.parts = grd_tensors(t, t);
    return made;
}

static grd_sum_options rows()
{
    grd_sum_options options;
    const int64_t dims[] = {1};
    options.dim = grd_dims_from(dims, 1);
    return options;
}

""" + OVERWRITE_THE_STACK + r"""
int main()
{
    grd_scope scope = grd_scope_open();
    grd_tensor *t = grd_ones(grd_dims(3, 4));
    std::vector<layer> layers;
    for (int i = 0; i < 10; i++)
        layers.push_back(make(t));
    layer moved = std::move(layers[3]);
    layers[3] = layers[4];
    layers[4] = layers[5];
    grd_sum_options stored = rows(), assigned;
    assigned.dim = grd_dims(1);
    grd_dims shape = grd_dims(2, 3), copied = shape, none = GRD_NO_DIMS;
    shape = grd_sizes(t);
    overwrite_the_stack();
    grd_print(grd_sum(grd_ones(moved.shape), moved.options));
    grd_print(grd_sum(t, stored));
    grd_print(grd_sum(t, assigned));
    grd_print(grd_cat(layers[3].parts));
    grd_print(grd_reshape(grd_ones(shape), grd_dims(2, 6)));
    grd_print(grd_zeros(copied));
    grd_print(grd_zeros(none));
    grd_print(grd_zeros(GRD_NO_DIMS));
    grd_tensors parts = grd_split(t, 2);
    std::printf("%d\n", (int)parts.n);
    assigned.dim = 1; /* numbers are numbers */
    grd_print(grd_sum(t, assigned));
    assigned.dim = {};
    grd_print(grd_sum(t, assigned));
    grd_print(grd_add_scalar(grd_fill(t, 2.5), 1));
    grd_backward_options into;
    into.inputs = grd_tensors(t);
#if __cplusplus > 201703L
    grd_print(grd_sum(t, {.dim = grd_dims(0, 1), .keepdim = true}));
    grd_print(grd_var(t, {.dim = 0, .correction = 0}));
    grd_sum_options designated{.dim = grd_dims(1)};
    overwrite_the_stack();
    grd_print(grd_sum(t, designated));
#endif
    grd_scope_close(scope);
    return !grd_ok();
}
"""
PRINTED = """tensor([[12.]])
tensor([4., 4., 4.])
tensor([4., 4., 4.])
tensor([[1., 1., 1., 1.],
        [1., 1., 1., 1.],
        [1., 1., 1., 1.],
        [1., 1., 1., 1.],
        [1., 1., 1., 1.],
        [1., 1., 1., 1.]])
tensor([[1., 1., 1., 1., 1., 1.],
        [1., 1., 1., 1., 1., 1.]])
tensor([[0., 0., 0.],
        [0., 0., 0.]])
tensor(0.)
tensor(0.)
2
tensor([4., 4., 4.])
tensor(12.)
tensor([[3.5000, 3.5000, 3.5000, 3.5000],
        [3.5000, 3.5000, 3.5000, 3.5000],
        [3.5000, 3.5000, 3.5000, 3.5000]])
"""
PRINTED_20 = "tensor([[12.]])\ntensor([0., 0., 0., 0.])\ntensor([4., 4., 4.])\n"


@pytest.mark.parametrize("command", ["g++ -std=c++11 -O2", "g++ -std=c++20 -O2", "clang++ -std=c++17 -O2",
                                     "g++ -std=c++20 -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined"])
def test_stored_lists_own_their_elements(command, tmp_path):
    if shutil.which(command.split()[0]) is None:
        pytest.skip(f"{command.split()[0]} is not installed: as root, apt-get install g++ clang")
    (tmp_path / "main.cpp").write_text(PROGRAM)
    built = run(f"{command} {FLAGS} main.cpp -o main {LINK}", tmp_path)
    assert built.returncode == 0, built.stderr
    ran = run(["./main"], tmp_path, ASAN_OPTIONS="detect_leaks=0")  # LeakSanitizer would report memory that a thread keeps for reuse
    assert (ran.returncode, ran.stdout) == (0, PRINTED + (PRINTED_20 if "c++20" in command else "")), ran.stderr


@pytest.mark.parametrize("statement", [
    "auto shape = grd_dims(2, 3); grd_zeros(shape);",
    "grd_value value; value.v.dims = grd_dims(2, 3);",
    "grd_value value; value.v.tensors = grd_tensors(t);",
    "grd_dims_literal one = grd_dims(2), two = one;",
])
def test_code_that_would_dangle_does_not_compile(statement, tmp_path):
    needs("g++", "as root, apt-get install g++")
    for text, compiles in ((statement, False), ("grd_zeros(grd_dims(2, 3));", True)):
        (tmp_path / "main.cpp").write_text(f"#include <gradus/gradus.h>\nvoid run(grd_tensor *t);\nvoid run(grd_tensor *t)\n{{\n    (void)t; {text}\n}}\n")
        assert (run(f"g++ -std=c++17 {FLAGS} -fsyntax-only main.cpp", tmp_path).returncode == 0) == compiles
