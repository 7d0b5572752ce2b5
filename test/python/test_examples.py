"""Runs the example programs and the program in the README, and checks what they print."""
import re
import subprocess
import sys
from pathlib import Path

from conftest import needs_python_headers

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "build/release/examples/c"


def run(name, *arguments):
    result = subprocess.run([EXAMPLES / name, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_digits_reaches_97_percent_accuracy():
    lines = run("digits", "examples/data/digits.csv").rstrip().splitlines()
    accuracy = re.fullmatch(r"test accuracy: (0\.\d+)", lines[-1])
    assert accuracy and float(accuracy[1]) >= 0.97
    assert any("read as" in line for line in lines)


def test_digits_reports_a_missing_data_file():
    result = subprocess.run([EXAMPLES / "digits", "no such file"], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 1 and "no such file" in result.stderr


def test_lenet_reaches_98_percent_accuracy_and_saves_its_parameters(tmp_path):
    path = tmp_path / "lenet.safetensors"
    lines = run("lenet", "examples/data/digits.csv", path).replace("\r", "\n").splitlines()
    accuracy = re.fullmatch(r"test accuracy: (0\.\d+)", lines[-1])
    assert accuracy and float(accuracy[1]) >= 0.98 and any(line.startswith("epoch 20/20  loss 0.0") for line in lines)
    needs_python_headers()
    program = f"""
import gradus, gradus.safetensors
from gradus.nn import *
net = Sequential(Conv2d(1, 16, 3, padding=1), ReLU(), Conv2d(16, 32, 3, padding=1), ReLU(), MaxPool2d(2), Conv2d(32, 64, 3, padding=1), ReLU(), MaxPool2d(2),
                 Flatten(), Linear(256, 64), ReLU(), Linear(64, 10))
net.load_state_dict(gradus.safetensors.load_file({str(path)!r}))
rows = gradus.tensor([[int(value) for value in line.split(",")] for line in open("examples/data/digits.csv")])
right = net(rows[:, :64].reshape(-1, 1, 8, 8) / 16).argmax(1) == rows[:, 64]
assert right.double().mean() > 0.99
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_autodiff_prints_the_graph():
    text = run("autodiff")
    names = ["SumBackward0", "TanhBackward0", "AddBackward0", "MmBackward0", "AccumulateGrad"]
    positions = [text.index(name) for name in names]
    assert positions == sorted(positions)


def test_strides_draws_the_memory_of_views():
    text = run("strides")
    assert "strides [2, 1]" in text and "[1][2][3][4]" in text
    assert " 1  2 [3][4]" in text and "[1] 2 [3] 4 " in text


def test_checkpoint_resumes_from_its_file(tmp_path):
    path = tmp_path / "line.safetensors"
    assert run("checkpoint", path, "120") == "y = 2.00 x + 1.00\n"
    assert run("checkpoint", path, "150") == "goes on after step 100\ny = 2.00 x + 1.00\n"
    path.write_bytes(path.read_bytes()[:-1])
    result = subprocess.run([EXAMPLES / "checkpoint", path, "1"], capture_output=True, text=True)
    assert result.returncode == 1 and "bytes follow the header" in result.stderr


def test_char_rnn_learns_its_text():
    text = run("char_rnn")
    assert float(re.search(r"loss (0\.\d+)", text)[1]) < 0.3 and "went to mow a meadow" in text.split("after")[1]


def test_the_readme_program_compiles_and_runs(tmp_path):
    program = re.search(r"```c\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[1]
    assert len(program.splitlines()) <= 24
    (tmp_path / "main.c").write_text(program)
    build = ROOT / "build/release"
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "main.c", "-o", "main", f"-I{ROOT}/include", f"-I{build}/include", f"-L{build}",
                    f"-Wl,-rpath,{build}", "-lgradus"], cwd=tmp_path, check=True)
    result = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0 and result.stdout.strip(), result.stderr
