"""The examples run and say what they promise; the README's program too."""
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "build/release/examples/c"


def run(name, *arguments):
    result = subprocess.run([EXAMPLES / name, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_digits_learns_to_read():
    lines = run("digits", "examples/data/digits.csv").rstrip().splitlines()
    accuracy = re.fullmatch(r"test accuracy: (0\.\d+)", lines[-1])
    assert accuracy and float(accuracy[1]) >= 0.97
    assert any("read as" in line for line in lines)


def test_digits_needs_its_data():
    result = subprocess.run([EXAMPLES / "digits", "no such file"], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 1 and "no such file" in result.stderr


def test_autodiff_prints_the_graph():
    text = run("autodiff")
    names = ["SumBackward0", "TanhBackward0", "AddBackward0", "MmBackward0", "AccumulateGrad"]
    positions = [text.index(name) for name in names]
    assert positions == sorted(positions)


def test_strides_pictures():
    text = run("strides")
    assert "strides [2, 1]" in text and "[1][2][3][4]" in text
    assert " 1  2 [3][4]" in text and "[1] 2 [3] 4 " in text


def test_checkpoint_goes_on_from_its_file(tmp_path):
    path = tmp_path / "line.safetensors"
    assert run("checkpoint", path, "120") == "y = 2.00 x + 1.00\n"
    assert run("checkpoint", path, "150") == "goes on after step 100\ny = 2.00 x + 1.00\n"
    path.write_bytes(path.read_bytes()[:-1])
    result = subprocess.run([EXAMPLES / "checkpoint", path, "1"], capture_output=True, text=True)
    assert result.returncode == 1 and "bytes follow the header" in result.stderr


def test_char_rnn_sings():
    text = run("char_rnn")
    assert float(re.search(r"loss (0\.\d+)", text)[1]) < 0.3 and "went to mow a meadow" in text.split("after")[1]


def test_readme_program(tmp_path):
    program = re.search(r"```c\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[1]
    assert len(program.splitlines()) <= 24
    (tmp_path / "main.c").write_text(program)
    build = ROOT / "build/release"
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "main.c", "-o", "main", f"-I{ROOT}/include", f"-I{build}/include", f"-L{build}",
                    f"-Wl,-rpath,{build}", "-lgradus"], cwd=tmp_path, check=True)
    result = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0 and result.stdout.strip(), result.stderr
