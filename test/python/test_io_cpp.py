"""Tests grd_named_tensors in C++. A stored list owns its entries, so it stays valid after the expression that made it. C++ programs write the same
files as C programs."""
import shutil

import pytest

from conftest import needs
from test_cpp import FLAGS, LINK, OVERWRITE_THE_STACK, run

PROGRAM = """
#include <cstdio>
#include <gradus/gradus.h>

struct model {
    grd_tensor *weight, *bias;
    grd_named_tensors named;
};

static model make()
{
    model made;
    made.weight = grd_ones(grd_dims(2, 2));
    made.bias = grd_zeros(grd_dims(2));
    made.named = grd_named_tensors({"weight", made.weight}, {"bias", made.bias});
    return made;
}

""" + OVERWRITE_THE_STACK + """
int main()
{
    grd_scope scope = grd_scope_open();
    const model first = make(), second = make();
    grd_named_texts texts = grd_named_texts({"format", "pt"});
    overwrite_the_stack();
    grd_save("model", first.named);
    grd_save_with_metadata("model", first.named, texts);
    grd_save_with_metadata("model", grd_named_tensors({"weight", first.bias}, {"bias", first.bias}), grd_named_texts({"a", "b"}));
    grd_save_with_metadata("model", first.named, texts);
    grd_zero_(second.weight);
    grd_load_into("model", second.named);
    grd_print(second.weight);
    grd_named_tensors loaded = grd_load("model");
    grd_print(grd_named_tensor_find(loaded, "bias"));
    grd_tensor_file *file = grd_tensor_file_open("model");
    std::printf("%s %d\\n", grd_tensor_file_metadata(file).data[0].text, (int)grd_tensor_file_sizes(file, 1).n);
    grd_tensor_file_close(file);
    grd_scope_close(scope);
    if (!grd_ok())
        std::printf("%s\\n", grd_error_message());
    return !grd_ok();
}
"""


@pytest.mark.parametrize("command", ["g++ -std=c++11 -O2", "clang++ -std=c++17 -O2", "g++ -std=c++20 -O1 -fsanitize=address,undefined"])
def test_named_lists_own_their_entries_and_write_the_same_files_as_c(tmp_path, command):
    if not shutil.which(command.split()[0]):
        pytest.skip(f"{command.split()[0]} is not installed: as root, apt-get install g++ clang")
    (tmp_path / "main.cpp").write_text(PROGRAM)
    built = run(f"{command} {FLAGS} main.cpp -o main {LINK}", tmp_path)
    assert (built.returncode, built.stderr) == (0, "")
    ran = run(["./main"], tmp_path, ASAN_OPTIONS="detect_leaks=0")  # LeakSanitizer would report memory that a thread keeps for reuse
    assert (ran.returncode, ran.stdout) == (0, "tensor([[1., 1.],\n        [1., 1.]])\ntensor([0., 0.])\npt 2\n"), ran.stderr


def test_assigning_a_temporary_to_a_view_of_a_named_list_does_not_compile(tmp_path):
    """Assigning a temporary list to a view, which would leave a dangling pointer, does not compile."""
    needs("g++", "as root, apt-get install g++")
    for text, compiles in [("grd_named_tensors list = grd_named_tensors({\"a\", t}); list = grd_named_tensors({\"b\", t});", True),
                           ("grd_named_tensors_view list; list = grd_named_tensors({\"b\", t});", False)]:
        (tmp_path / "main.cpp").write_text(f"#include <gradus/gradus.h>\nvoid run(grd_tensor *t);\nvoid run(grd_tensor *t)\n{{\n    {text}\n}}\n")
        assert (run(f"g++ -std=c++17 {FLAGS} -fsyntax-only main.cpp", tmp_path).returncode == 0) == compiles
