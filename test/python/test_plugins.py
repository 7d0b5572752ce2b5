"""Builds each plug-in of examples/plugins as a user would, in a folder of its own against an installed Gradus, and runs it."""
import shutil
import signal

import pytest
from conftest import ROOT, run

DIGITS = ROOT / "examples/data/digits.csv"


def build(example, prefix, tmp_path_factory):
    """Builds an example with its CMakeLists.txt and returns the build folder. The sources of the example are copied first, so that the build cannot
    find other files of the repository."""
    folder = tmp_path_factory.mktemp(example)
    shutil.copytree(ROOT / "examples/plugins" / example, folder / "source")
    built = run(f"cmake -S source -B build -DCMAKE_PREFIX_PATH={prefix} -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS='-Wall -Wextra -Werror' "
                "&& cmake --build build", folder)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "build"


@pytest.fixture(scope="module")
def device(prefix, tmp_path_factory):
    return build("device", prefix, tmp_path_factory)


@pytest.fixture(scope="module")
def encrypted(prefix, tmp_path_factory):
    return build("encrypted", prefix, tmp_path_factory)


def test_digits_trains_on_two_plugin_devices_with_the_losses_of_the_cpu(device):
    result = run([device / "digits", DIGITS, device / "vault.so", device / "safe.so"], device)
    assert result.returncode == 0, result.stdout + result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["epoch", "cpu", "vault", "safe"]
    epochs = [line.split()[1:] for line in lines[1:-2]]
    assert len(epochs) == 6 and all(len(set(losses)) == 1 for losses in epochs)
    assert float(epochs[-1][0]) < float(epochs[0][0]) / 5
    accuracies = lines[-2].split()[2:]
    assert len(accuracies) == 3 and len(set(accuracies)) == 1 and float(accuracies[0]) > 0.85
    assert lines[-1] == "losses are the same"


def test_reading_device_memory_on_the_cpu_is_a_segmentation_fault(device):
    asked = run([device / "peek", device / "vault.so", "copy"], device)
    assert (asked.returncode, asked.stdout) == (0, "tensor([2., 2.], device='vault:0')\nthe first element is 2\n")
    assert run([device / "peek", device / "vault.so", "raw"], device).returncode == -signal.SIGSEGV


def test_loading_a_missing_plugin_is_an_error(device):
    result = run([device / "digits", DIGITS, "no/such.so"], device)
    assert result.returncode == 1
    assert result.stderr.startswith("OSError: cannot load plug-in 'no/such.so'")


def test_the_encrypted_wrapper_example_runs(encrypted):
    result = run([encrypted / "demo"], encrypted)
    assert result.returncode == 0, result.stdout + result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "x + y: tensor(..., wrapper='encrypted', size=(2, 3), dtype=torch.int64)"
    assert "refused: NotImplementedError: exp: Could not run 'exp' with arguments from the 'encrypted' wrapper." in lines
    assert lines[-1] == "all as in plain"
