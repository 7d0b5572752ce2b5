"""A string that an operator does not know is refused with the words that it does."""
import re

import pytest
from operator_calls import arguments, call, sample_texts, shown

# einsum's equation is a small language, and has errors of its own.
STRINGS = {(operator.name, argument.name): (function, operator, argument.name) for _, function, operator, form in shown() if form == "functional" for argument in operator.args
           if argument.kind == "str" and argument.name != "equation"}


@pytest.mark.parametrize("name, argument", STRINGS)
def test_words_stand_in_the_error(name, argument):
    function, operator, _ = STRINGS[name, argument]
    values = arguments(operator, next(iter(sample_texts(operator)))) | {argument: "neither"}
    with pytest.raises((RuntimeError, ValueError)) as info:
        call(function, operator, values)
    words = re.findall(r'"(\w+)"', operator.words[argument])
    assert len(words) > 1
    assert [word for word in words if word not in str(info.value)] == []
