"""Replays the random numbers that test/record_random.py recorded from PyTorch, with several numbers of threads and at every instruction-set level."""
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import binding as g
from random_calls import Gradus, digest, rests_on_libm, run, state_digest

RECORDED = Path(__file__).resolve().parent.parent / "data" / "random.json"
ULP = 4  # allowed error in ulps of float64 numbers that depend on log, sin and cos, because these differ between C libraries


def is_recorded(call, data, recorded):
    name, arguments = call
    if rests_on_libm(name, arguments["dtype"]):
        got, wanted = numpy.frombuffer(data), numpy.frombuffer(bytes.fromhex(recorded))
        return got.shape == wanted.shape and bool((abs(got - wanted) <= ULP * numpy.spacing(abs(wanted))).all())
    return digest(data) == recorded


def replay(threads):
    """Returns the calls whose results differ from those recorded from PyTorch."""
    side, wrong = Gradus(threads), []
    for sequence in json.loads(RECORDED.read_text()):
        with g.scope():
            results, state = run(side, sequence)
        calls = [call for call in sequence["calls"] if call[0] not in ("save", "restore")]
        assert len(results) == len(sequence["results"])
        wrong += [call for call, data, recorded in zip(calls, results, sequence["results"]) if not is_recorded(call, data, recorded)]
        if state_digest(state) != sequence["state"]:
            wrong.append(["state", sequence["calls"][-1]])
    return wrong


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_random_calls_give_the_numbers_recorded_from_pytorch(threads):
    assert not replay(threads)


@pytest.mark.parametrize("level", ["portable", "v2", "v3", "v4"])
def test_random_calls_give_the_recorded_numbers_at_each_instruction_set_level(level):
    program = "import test_random, binding; print(binding.lib.grd_isa().decode(), test_random.replay(2))"
    result = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parent, env=os.environ | {"GRADUS_ISA": level}, capture_output=True,
                            text=True, check=True)
    isa, wrong = result.stdout.split(" ", 1)
    assert wrong.strip() == "[]", isa
