"""Checks that calls execute few instructions. In contrast to the time, the number of instructions is repeatable on a busy machine.
bench/instructions.sh counts the instructions of the release build."""
import subprocess

from conftest import ROOT, needs

# Largest number of instructions of each call. The documents promise the numbers of add, add_bias and add_transposed. Each other number is 10 % above
# the one that was measured when the limit was written.
LIMITS = {
    "add": 350,
    "add_batched": 1650,
    "add_number": 930,
    "add_recorded": 1005,
    "add_bias": 1300,
    "add_transposed": 1300,
    "softmax": 1306,
    "select": 330,
    "view": 473,
    "transpose": 393,
    "zeros": 613,
    "sum": 720,
    "mm": 495,
    "linear_1x8x8": 1221,
    "linear_16x64x32": 14700,
    "item": 240,
    "backward": 6030,
    "training_step": 220000,
    "training_step_optimizer": 167000,
}


def test_calls_execute_no_more_instructions_than_their_limits():
    needs("valgrind", "as root, apt-get install valgrind")
    result = subprocess.run([ROOT / "bench" / "instructions.sh", *LIMITS], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    counted = {name: int(count) for name, count in (line.split() for line in result.stdout.splitlines())}
    assert counted.keys() == LIMITS.keys() and all(counted.values())
    beyond = {name: f"{counted[name]} > {limit}" for name, limit in LIMITS.items() if counted[name] > limit}
    assert not beyond, f"more instructions than allowed: {beyond}"
