"""Checks that every operator refuses an unknown string, and that the error lists the allowed strings."""
import re

import gradus
import pytest
from both import caught
from operator_calls import arguments, call, public_calls, sample_texts
from oracle import needs_torch, torch

# Each key is an operator and one of its string arguments. The equation of einsum is left out, because it is a small language with errors of its own.
STRINGS = {(operator.name, argument.name): (function, operator, argument.name) for _, function, operator, form in public_calls() if form == "functional" for argument in operator.args
           if argument.kind == "str" and argument.name != "equation" and any(sample_texts(operator))}


@pytest.mark.parametrize("name, argument", STRINGS)
def test_errors_list_the_allowed_strings(name, argument):
    function, operator, _ = STRINGS[name, argument]
    values = arguments(operator, next(iter(sample_texts(operator)))) | {argument: "neither"}
    with pytest.raises((RuntimeError, ValueError)) as info:
        call(function, operator, values)
    words = re.findall(r'"(\w+)"', operator.words[argument])
    assert len(words) > 1
    assert [word for word in words if word not in str(info.value)] == []


@pytest.mark.parametrize("call", [
    lambda m: m.fft.fft(m.ones(3), norm="x"), lambda m: m.fft.fftn(m.ones(2, 3), norm="x"), lambda m: m.linalg.matrix_norm(m.ones(2, 3), "x"), lambda m: m.linalg.svd(m.ones(2, 2), driver="gesvd"),
    lambda m: m.linalg.svdvals(m.ones(2, 2), driver="x"),
])
def test_the_allowed_strings_follow_the_text_of_pytorch(call):
    needs_torch()
    (ours, text), (theirs, expected) = caught(call, gradus), caught(call, torch)
    assert ours == theirs and text.startswith(expected.rstrip(".")) and text != expected
