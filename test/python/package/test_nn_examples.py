"""The Python examples: they learn, say what is wrong, and give the losses that PyTorch gives for the same seed."""
import sys
from types import ModuleType

import pytest
from conftest import BUILD, ROOT, run as run_command
from oracle import needs_torch

EXAMPLES = ROOT / "examples/python"
TEXT = (ROOT / "ARCHITECTURE.md").read_text()


def example(name, framework):
    """The example as a module, with another framework in place of gradus."""
    source = (EXAMPLES / f"{name}.py").read_text()
    module = ModuleType(f"{name}_{framework}")
    code = source if framework == "gradus" else source.replace("import gradus as torch", "import torch").replace("gradus", framework)
    exec(compile(code, f"{name}.py", "exec"), module.__dict__)
    return module


def digits_losses(framework):
    digits = example("digits", framework)
    torch = digits.torch
    torch.manual_seed(3)
    loader = digits.DataLoader(digits.Digits(ROOT / "examples/data/digits.csv"), batch_size=32, shuffle=True)
    model = digits.nn.Sequential(digits.nn.Linear(64, 128), digits.nn.ReLU(), digits.nn.Linear(128, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    return digits.train_epoch(model, loader, digits.nn.CrossEntropyLoss(), optimizer)[:50]


def char_gpt_losses(framework):
    char_gpt = example("char_gpt", framework)
    torch = char_gpt.torch
    torch.manual_seed(3)
    model = char_gpt.CharGPT(128, dropout=0.1)
    return char_gpt.train(model, torch.tensor([min(ord(character), 127) for character in TEXT]), 50, 10, size=4)


def lstm_names_losses(framework):
    lstm_names = example("lstm_names", framework)
    torch = lstm_names.torch
    torch.manual_seed(3)
    found = lstm_names.read_names(ROOT / "examples/data/names.txt")
    names = [torch.tensor([min(ord(letter), 127) for letter in name]) for language in found for name in found[language]]
    labels = torch.tensor([i for i, language in enumerate(found) for _ in found[language]])
    return lstm_names.train(lstm_names.NameReader(128, len(found)), names, labels, 3)


@pytest.mark.parametrize("losses", [digits_losses, char_gpt_losses, lstm_names_losses])
def test_losses_are_those_of_pytorch(losses):
    needs_torch()
    assert losses("gradus") == pytest.approx(losses("torch"), rel=2e-4)


def run(name, *arguments):
    return run_command([sys.executable, EXAMPLES / f"{name}.py", *arguments], ROOT, PYTHONPATH=str(BUILD / "python"))


def test_digits_learns_to_read():
    result = run("digits", "--epochs", "20")
    assert result.returncode == 0, result.stderr
    assert float(result.stdout.rsplit(" ", 1)[1]) >= 0.96 and "[#" in result.stderr and "epoch 20: loss" in result.stdout


def test_char_gpt_learns_and_writes(tmp_path):
    (tmp_path / "text.txt").write_text("round and round it goes. " * 40)
    result = run("char_gpt", tmp_path / "text.txt", "--steps", "150", "--every", "50", "--write", "60")
    assert result.returncode == 0, result.stderr
    losses = [float(line.split("loss ")[1]) for line in result.stdout.splitlines() if "loss" in line]
    assert len(losses) == 3 and losses[2] < 0.3 < losses[0]
    assert len(result.stdout.splitlines()[-1]) == 61 and "[#" in result.stderr


def test_lstm_names_learns_to_read():
    result = run("lstm_names", "--read", "Giacomina", "Hideko")
    assert result.returncode == 0, result.stderr
    assert float(result.stdout.split("right: ")[1].split()[0]) >= 0.5 and "[#" in result.stderr
    assert [line.split()[:2] for line in result.stdout.splitlines()[-2:]] == [["Giacomina", "Italian"], ["Hideko", "Japanese"]]


def test_what_is_wrong_is_said(tmp_path):
    assert "no such file" in run("lstm_names", "no such file").stderr
    assert "no such file" in run("digits", "no such file").stderr
    (tmp_path / "short.txt").write_text("short")
    result = run("char_gpt", tmp_path / "short.txt")
    assert result.returncode == 2 and "characters are needed" in result.stderr
