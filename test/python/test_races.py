"""Tests GRADUS_DEBUG=races with the release library: a call that needs exclusive use of a tensor is an error while another thread uses the tensor,
and vice versa."""
import os
import subprocess

import pytest
from test_lifetimes import ROOT, build

SHARED = "on the same tensor, or one that shares its memory"
ALONE_AGAIN = ["grd_resize_: nothing", "grd_set_data: nothing", "grd_detach_: nothing"]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build(ROOT / "test" / "lifetimes" / "races.c", tmp_path_factory.mktemp("races") / "races", "-pthread")


def reports(program, case, modes):
    result = subprocess.run([program, case], capture_output=True, text=True, timeout=60, env={**os.environ, "GRADUS_DEBUG": modes})
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


@pytest.mark.parametrize("modes", ["races", "races,lifetimes"])
def test_changing_a_tensor_that_another_thread_reads_is_an_error(program, modes):
    def refused(name):
        return f"{name} was called while another thread runs mul {SHARED}; {name} needs exclusive use of it"

    assert reports(program, "changes_meet_mul", modes) == [
        "grd_resize_: resize: " + refused("resize_"),
        "grd_set_data: " + refused("grd_set_data"),
        "grd_detach_: " + refused("grd_detach_"),
        "grd_resize_ of a view: resize: " + refused("resize_"),
        "mul: nothing", *ALONE_AGAIN]


@pytest.mark.parametrize("modes", ["races", "races,lifetimes"])
def test_reading_a_tensor_that_another_thread_changes_is_an_error(program, modes):
    def refused(name):
        return f"{name}: {name} was called while another thread runs resize_ {SHARED}; resize_ needs exclusive use of it"

    assert reports(program, "reads_meet_resize", modes) == ["grd_add: " + refused("add"), "grd_add_: " + refused("add"), *ALONE_AGAIN,
                                                            "resize_: nothing", *ALONE_AGAIN]


def test_concurrent_reads_and_changes_of_other_tensors_are_allowed(program):
    assert reports(program, "reads_meet_mul", "races") == ["grd_add: nothing", "grd_add_: nothing", *ALONE_AGAIN, "mul: nothing", *ALONE_AGAIN]


def test_races_are_not_reported_without_the_mode(program):
    assert not any("another thread" in line for line in reports(program, "reads_meet_mul", "lifetimes"))
