"""Runs typical programs that import torch (test/programs). `python -m gradus.as_torch` must print what PyTorch prints, up to the rounding of the last
digit."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gradus
from oracle import needs_torch

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = sorted((ROOT / "test" / "programs").glob("*.py"))
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")


def run(*command, **environment):
    result = subprocess.run([sys.executable, *map(str, command), str(ROOT / "examples" / "data" / "digits.csv")], capture_output=True, text=True,
                            env=os.environ | environment)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def assert_same(got, wanted):
    """Checks that two texts are equal except for their numbers. The numbers may differ by two units in the last printed digit and by the rounding of
    float32 sums."""
    assert NUMBER.sub("#", got) == NUMBER.sub("#", wanted)
    for ours, theirs in zip(NUMBER.findall(got), NUMBER.findall(wanted)):
        last = 10.0 ** -len(theirs.split("e")[0].split(".")[1])
        assert float(ours) == pytest.approx(float(theirs), rel=2e-4, abs=2 * last), f"{got}\nis not\n{wanted}"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_prints_what_pytorch_prints(program):
    needs_torch()
    package = os.path.dirname(os.path.dirname(gradus.__file__))
    assert_same(run("-m", "gradus.as_torch", program, PYTHONPATH=package), run(program))


def test_the_comparison_of_outputs_detects_different_numbers():
    with pytest.raises(AssertionError):
        assert_same("loss 0.1234", "loss 0.1237")
    with pytest.raises(AssertionError):
        assert_same("loss 0.1234, right 3", "loss 0.1234, right 4")
    assert_same("loss 0.1234", "loss 0.1235")
