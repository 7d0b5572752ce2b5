"""Builds examples/plugins/operator, a plug-in that defines operators, against an installed Gradus with CMake and with pkg-config. Then loads the
plug-in, and calls and differentiates its operators."""
import re
import shutil

import pytest

from conftest import ROOT, libdir, needs_pkg_config_and, run

EXAMPLE = ROOT / "examples/plugins/operator"

OUTPUT = """\
extra::cube(Tensor self, *, Scalar scale=1) -> Tensor
tensor([[ 0.,  1.],
        [27.,  1.],
        [-8.,  8.]], dtype=torch.float64, grad_fn=<ExtraCubeBackward0>)
tensor([[   0.,    6.],
        [1458.,    6.],
        [-192.,  192.]], dtype=torch.float64)
gradcheck: passed
gradgradcheck: passed
extra::square_distances(Tensor points) -> Tensor
tensor([[ 0.,  9.,  5.],
        [ 9.,  0., 26.],
        [ 5., 26.,  0.]], dtype=torch.float64,
       grad_fn=<ExtraSquareDistancesBackward0>)
tensor([[ -136.,   -40.],
        [ 1256.,  -208.],
        [-1120.,   248.]], dtype=torch.float64)
gradcheck: passed
gradgradcheck: passed
"""


@pytest.fixture(scope="module")
def built(prefix, tmp_path_factory):
    folder = tmp_path_factory.mktemp("operator")
    shutil.copytree(EXAMPLE, folder / "source")
    result = run(f"cmake -S source -B build -DCMAKE_PREFIX_PATH={prefix} -DCMAKE_C_FLAGS='-Wall -Wextra -Werror' && cmake --build build", folder)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder / "build"


def test_the_example_operator_is_loaded_called_and_differentiated(built):
    result = run(["./use", "extra.so"], built)
    assert (result.returncode, result.stdout) == (0, OUTPUT), result.stdout + result.stderr


def test_loading_a_file_that_is_no_plugin_is_an_error(built):
    result = run(["./use", "./use"], built)
    assert result.returncode == 1 and result.stderr.startswith("OSError: cannot load plug-in '"), result.stderr
    result = run(["./use", "missing.so"], built)
    assert result.stderr == "OSError: cannot load plug-in 'missing.so': No such file or directory\n"


@pytest.mark.parametrize("compiler, name", [("cc -std=c11", "extra.c"), ("c++ -std=c++17", "plugin.cpp")])
def test_one_command_with_pkg_config_builds_a_plugin(prefix, built, tmp_path, compiler, name):
    needs_pkg_config_and(compiler.split()[0])
    shutil.copy(EXAMPLE / "extra.c", tmp_path)
    (tmp_path / "plugin.cpp").write_text('#include <gradus/gradus.h>\nstatic bool load()\n{\n    grd_definition definition{};\n'
                                         '    definition.schema = "cpp::same(Tensor self) -> Tensor";\n    definition.gradients[0] = {"self", "grad"};\n'
                                         '    return grd_define_operator(&definition) != nullptr;\n}\nGRD_PLUGIN("cpp", load)\n')
    result = run(f"{compiler} -Wall -Wextra -Werror -shared -fPIC {name} -o plugin.so $(pkg-config --cflags --libs gradus)", tmp_path,
                 PKG_CONFIG_PATH=str(libdir(prefix)))
    assert result.returncode == 0, result.stderr
    result = run([str(built / "use"), str(tmp_path / "plugin.so")], tmp_path)
    expected = (0, OUTPUT, "") if name == "extra.c" else (1, "", "RuntimeError: the plug-in has no operator extra::cube\n")
    assert (result.returncode, result.stdout, result.stderr) == expected


def test_a_plugin_with_another_interface_version_is_refused(prefix, built, tmp_path):
    """The plug-in is built with the header of another interface version, as if for an older or newer install."""
    headers = next(prefix.rglob("gradus/plugin.h")).parent.parent
    shutil.copytree(headers, tmp_path / "include")
    header = tmp_path / "include/gradus/plugin.h"
    header.write_text(re.sub(r"#define GRD_PLUGIN_INTERFACE \d+", "#define GRD_PLUGIN_INTERFACE 7", header.read_text()))
    library = next(prefix.rglob("libgradus.so")).parent
    result = run(f"cc -shared -fPIC {EXAMPLE / 'extra.c'} -o plugin.so -Iinclude -L{library} -lgradus", tmp_path)
    assert result.returncode == 0, result.stderr
    result = run([str(built / "use"), str(tmp_path / "plugin.so")], tmp_path)
    assert result.returncode == 1
    assert result.stderr == (f"RuntimeError: '{tmp_path}/plugin.so' was built against Gradus 0.1.0 for plug-in interface 7, "
                             "but this is Gradus 0.1.0 with plug-in interface 4\n")
