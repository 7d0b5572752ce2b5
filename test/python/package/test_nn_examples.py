"""Checks that the Python examples learn, report wrong arguments, and print the losses that PyTorch gives for the same seed."""
import sys
from types import ModuleType

import pytest
from conftest import BUILD, ROOT, run as run_command
from oracle import needs_torch

EXAMPLES = ROOT / "examples/python"
TEXT = (ROOT / "ARCHITECTURE.md").read_text()


def example(name, framework):
    """Returns the example `name` as a module that uses `framework`, "gradus" or "torch"."""
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


def gpt_losses(framework):
    gpt = example("gpt", framework)
    torch = gpt.torch
    torch.manual_seed(3)
    model = gpt.GPT(128)
    return gpt.train(model, gpt.new_optimizer(model), torch.tensor([min(ord(character), 127) for character in TEXT]), 50, 10, size=4)


def mnist_losses(framework):
    mnist = example("mnist_cnn", framework)
    torch = mnist.torch
    torch.manual_seed(3)
    loader = mnist.DataLoader(mnist.load(ROOT / "examples/data/digits.csv"), batch_size=64, shuffle=True)
    model = mnist.Net()
    return mnist.train_epoch(model, loader, torch.optim.AdamW(model.parameters(), lr=3e-3), 1)[:15]


def lstm_names_losses(framework):
    lstm_names = example("lstm_names", framework)
    torch = lstm_names.torch
    torch.manual_seed(3)
    found = lstm_names.read_names(ROOT / "examples/data/names.txt")
    names = [torch.tensor([min(ord(letter), 127) for letter in name]) for language in found for name in found[language]]
    labels = torch.tensor([i for i, language in enumerate(found) for _ in found[language]])
    return lstm_names.train(lstm_names.NameReader(128, len(found)), names, labels, 3)


def ppo_losses(framework):
    ppo = example("ppo", framework)
    torch = ppo.torch
    torch.manual_seed(3)
    agent, carts = ppo.Agent(), ppo.Carts(ppo.CARTS)
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3)
    return [ppo.learn(agent, optimizer, ppo.play(agent, carts)[0]) for _ in range(3)]


@pytest.mark.parametrize("losses", [digits_losses, gpt_losses, lstm_names_losses, mnist_losses, ppo_losses])
def test_losses_of_examples_are_those_of_pytorch(losses):
    needs_torch()
    assert losses("gradus") == pytest.approx(losses("torch"), rel=2e-4)


def run(name, *arguments):
    return run_command([sys.executable, EXAMPLES / f"{name}.py", *arguments], ROOT, PYTHONPATH=str(BUILD / "python"))


def test_digits_reaches_96_percent_accuracy():
    result = run("digits", "--epochs", "20")
    assert result.returncode == 0, result.stderr
    assert float(result.stdout.rsplit(" ", 1)[1]) >= 0.96 and "[#" in result.stderr and "epoch 20: loss" in result.stdout


def test_gpt_learns_resumes_and_generates_text(tmp_path):
    (tmp_path / "text.txt").write_text("round and round it goes. " * 40)
    train = ["train", tmp_path / "text.txt", "--every", "50"]
    whole = run("gpt", *train, "--steps", "150", "--file", tmp_path / "whole.pt")
    assert whole.returncode == 0, whole.stderr
    losses = [line for line in whole.stdout.splitlines() if "loss" in line]
    assert len(losses) == 3 and float(losses[2].split()[-1]) < 0.3 < float(losses[0].split()[-1]) and "[#" in whole.stderr
    for more in (["--steps", "100"], ["--steps", "150", "--resume"]):
        result = run("gpt", *train, "--file", tmp_path / "parts.pt", *more)
        assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == losses[2]  # training that was interrupted and resumed has the same loss as without the interruption
    result = run("gpt", "sample", "--file", tmp_path / "parts.pt", "--prompt", "it goes", "--length", "80", "--top-k", "3")
    assert result.returncode == 0, result.stderr
    assert len(result.stdout) == 88 and result.stdout.startswith("it goes. round and round it goes. ")
    assert "does not know the characters '!X'" in run("gpt", "sample", "--file", tmp_path / "parts.pt", "--prompt", "X!").stderr


def test_gpt_with_cached_keys_and_values_gives_the_same_scores():
    gpt = example("gpt", "gradus")
    gpt.torch.manual_seed(0)
    model, characters = gpt.GPT(10).eval(), gpt.torch.randint(10, (2, 12))
    first, kept = model(characters[:, :7], model.nothing(2))
    scores = [first]
    for i in range(7, 12):
        next_scores, kept = model(characters[:, i:i + 1], kept)
        scores.append(next_scores)
    assert gpt.torch.allclose(gpt.torch.cat(scores, 1), model(characters), atol=1e-5)


def test_mnist_cnn_reaches_96_percent_accuracy(tmp_path):
    result = run("mnist_cnn", "--epochs", "4", "--save", tmp_path / "model.pt", "--log", tmp_path / "log")
    assert result.returncode == 0, result.stderr
    assert float(result.stdout.split("test accuracy ")[-1].split()[0]) >= 0.96 and "[#" in result.stderr and "read as" in result.stdout
    assert (tmp_path / "model.pt").exists() and len(list((tmp_path / "log").rglob("events.out.tfevents.*"))) == 3


def test_lstm_names_learns_to_classify_names():
    result = run("lstm_names", "--read", "Giacomina", "Hideko")
    assert result.returncode == 0, result.stderr
    assert float(result.stdout.split("right: ")[1].split()[0]) >= 0.5 and "[#" in result.stderr
    assert [line.split()[:2] for line in result.stdout.splitlines()[-2:]] == [["Giacomina", "Italian"], ["Hideko", "Japanese"]]


def test_examples_report_wrong_arguments(tmp_path):
    assert "no such file" in run("lstm_names", "no such file").stderr
    assert "no such file" in run("digits", "no such file").stderr
    (tmp_path / "short.txt").write_text("short")
    result = run("gpt", "train", tmp_path / "short.txt")
    assert result.returncode == 2 and "characters are needed" in result.stderr


def test_ppo_learns_to_balance():
    result = run("ppo", "--updates", "40")
    assert result.returncode == 0, result.stderr
    assert float(result.stdout.rsplit(" ", 2)[1]) >= 300 and "update  40: the pole stood" in result.stdout and "[###" in result.stderr and "#\n" in result.stdout
