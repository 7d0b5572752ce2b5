"""A killed save must leave a complete file, either the old or the new one, and no other file in the folder. GRADUS_KILLS sets the number of kills."""
import os
import random
import signal
import sys
import time

import pytest

import gradus
from gradus.safetensors import load_file, save_file

KILLS = int(os.environ.get("GRADUS_KILLS", "20"))

pytestmark = pytest.mark.skipif(not hasattr(os, "fork") or sys.platform != "linux", reason="kills a process that was forked")


def save_checkpoint(number, path):
    gradus.save({"number": number, "x": [gradus.full((1 + number * 7919 % 50000,), number) for _ in range(3)]}, path)


def number_of_checkpoint(path):
    loaded = gradus.load(path)
    assert all(x.tolist() == [loaded["number"]] * (1 + loaded["number"] * 7919 % 50000) for x in loaded["x"])
    return loaded["number"]


def save_tensors(number, path):
    save_file({"x": gradus.full((1 + number * 7919 % 50000,), number), "number": gradus.tensor(number)}, path)


def number_of_tensors(path):
    loaded = load_file(path)
    number = loaded["number"].item()
    assert loaded["x"].tolist() == [number] * (1 + number * 7919 % 50000)
    return number


def others_in(folder, name):
    """Returns the files in the folder other than `name`. Waits up to 2 seconds until there are none, because the last two system calls of a save are
    made by a child process, which outlives the killed process."""
    for _ in range(2000):
        others = [entry for entry in os.listdir(folder) if entry != name]
        if not others:
            break
        time.sleep(0.001)
    return others


@pytest.mark.parametrize(("save", "number_of"), [(save_checkpoint, number_of_checkpoint), (save_tensors, number_of_tensors)],
                         ids=["checkpoint", "safetensors"])
def test_a_save_killed_at_any_time_leaves_a_complete_file(tmp_path, save, number_of):
    path, generator, number, changed = tmp_path / "model", random.Random(0), 0, 0
    save(0, path)
    for _ in range(KILLS):
        child = os.fork()
        if child == 0:
            try:
                for later in range(number + 1, number + 100000):
                    save(later, path)
            finally:
                os._exit(1)
        time.sleep(generator.uniform(0, 0.03))
        os.kill(child, signal.SIGKILL)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        assert others_in(tmp_path, "model") == []
        assert number_of(path) >= number
        changed += number_of(path) > number
        number = number_of(path)
    assert changed > 0


def test_an_exception_leaves_the_old_file(tmp_path):
    path = tmp_path / "model"
    save_checkpoint(1, path)
    with pytest.raises(KeyboardInterrupt):
        gradus.save([gradus.ones(3), Interrupts()], path)
    assert number_of_checkpoint(path) == 1 and os.listdir(tmp_path) == ["model"]


class Interrupts:
    def __reduce__(self):
        raise KeyboardInterrupt


def test_the_next_save_removes_a_temporary_file_of_a_killed_save(tmp_path):
    """On file systems without O_TMPFILE the temporary file of a killed save stays until the next save removes it."""
    left = tmp_path / ".model.0123456789abcdef.saving"
    left.write_bytes(b"part of a file")
    save_checkpoint(1, tmp_path / "model")
    assert os.listdir(tmp_path) == ["model"]
