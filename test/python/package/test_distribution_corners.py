"""Compares distributions with PyTorch. Their parameters are at or beyond the limits of what is allowed, Python numbers, integer tensors, or tensors
of different dtypes. Also compares expanded distributions."""
import re
import warnings

import numpy as np
import pytest
from distribution_cases import CASES, FACTS, FIXED, FUNCTIONS, NAMES, OF_VALUES, parameters
from nn_programs import gradus
from oracle import torch
from test_transforms import array

CORNERS = [-1.0, 0.0, 1.0, 2.0, 1e-6, 1e6, float("nan"), float("inf")]
# Classes of errors that PyTorch raises because of bugs (its GeneralizedPareto mixes dtypes, its expanded Multinomial lacks an attribute). Gradus may
# return a result instead.
FAILURES = ("RuntimeError", "AttributeError")
POINTS = [-1.0, 0.0, 0.25, 1.0, 3.0]


def normalized(text):
    """Returns the text of an error without the names of packages and the values of tensors."""
    text = text.replace("gradus.", "torch.").replace("gradus", "torch")
    return re.sub(r"\s+", "", re.sub(r"tensor\(.*?\]\)|tensor\(.*?\)", "tensor", text, flags=re.S))


def attempt(function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function()
        except (ValueError, NotImplementedError) as error:
            return f"{type(error).__name__}: {normalized(str(error))}"
        except Exception as error:
            return type(error).__name__


def expect_equal(name, got, wanted, tolerance=1e-7):
    if isinstance(wanted, (str, tuple)):
        assert got == wanted or wanted in FAILURES, name
        return
    assert not isinstance(got, str), (name, got, wanted)
    assert str(got.dtype).split(".")[-1] == str(wanted.dtype).split(".")[-1] and tuple(got.shape) == tuple(wanted.shape), name
    np.testing.assert_allclose(array(got), array(wanted), rtol=tolerance, atol=tolerance, err_msg=name)


def questions_and_answers(t, make):
    """Yields (name, value or error) for each attribute and function of the distribution that make() returns, and for samples. Enables the checks of
    arguments, because PyTorch's own tests disable them when they are imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        t.distributions.Distribution.set_default_validate_args(True)
        made = attempt(make)
    if isinstance(made, str):
        yield "constructor", made
        return
    for name in FACTS:
        yield name, attempt(lambda: getattr(made, name))
    for name in FUNCTIONS:
        yield name, attempt(lambda: getattr(made, name)())
    for point in POINTS:
        value = t.full(tuple(made.batch_shape) + tuple(made.event_shape), point, dtype=t.float64)
        for name in OF_VALUES:
            yield f"{name}({point})", attempt(lambda: getattr(made, name)(value))
    t.manual_seed(5)
    yield "sample", attempt(lambda: made.sample((3,)))
    yield "next number", t.rand(1)


def compare(make):
    """Checks that the distributions that make(t) returns for the libraries t = gradus and t = torch have equal attributes, function values and
    samples."""
    ours, theirs = (dict(questions_and_answers(t, lambda: make(t))) for t in (gradus, torch))
    assert list(ours) == list(theirs), (ours, theirs)
    for question, wanted in theirs.items():
        expect_equal(question, ours[question], wanted)


@pytest.mark.parametrize("corner", CORNERS)
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_distributions_with_parameters_at_their_limits(case, corner):
    """Each parameter in turn has one element, or all elements, set to a limit."""
    if (case[0], corner) == ("VonMises", float("inf")):
        pytest.skip("no draw is ever accepted, in PyTorch neither")
    if (case[0], corner) == ("LowRankMultivariateNormal", 1e6):
        pytest.skip("1e12 and 1 are added there, so that few digits are left")
    for parameter in case[1]:
        for everywhere in (False,) if "matrix" in parameter else (False, True):  # a matrix whose numbers are all equal is singular up to rounding
            def make(t):
                made = parameters(t, case)
                flat = made[parameter].reshape(-1).clone()
                flat[slice(None) if everywhere else 0] = corner
                made[parameter] = flat.reshape(made[parameter].shape)
                return getattr(t.distributions, case[0])(**FIXED.get(case[0], {}), **made)
            compare(make)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_distributions_with_numbers_integers_and_mixed_dtypes_as_parameters(case):
    """Parameters are Python numbers, a number together with a tensor, integers, or float32 together with float64."""
    def numbers(t):
        return {key: value.reshape(-1)[0].item() for key, value in parameters(t, case).items()}

    def mixed(t):
        return {key: value if i % 2 else value.reshape(-1)[0].item() for i, (key, value) in enumerate(parameters(t, case).items())}

    def integers(t):
        return {key: value.to(t.int64) for key, value in parameters(t, case).items()}

    def dtypes(t):
        return {key: value.to(t.float32 if i % 2 else t.float64) for i, (key, value) in enumerate(parameters(t, case).items())}
    for change in (numbers, mixed, integers, dtypes):
        ours, theirs = (attempt(lambda: shapes_and_dtypes(t, case, change)) for t in (gradus, torch))
        if isinstance(ours, str) and isinstance(theirs, str):
            assert ours.split(":")[0] == theirs.split(":")[0], change.__name__
        else:
            assert ours == theirs or set(FAILURES) & set(map(str, theirs)), change.__name__


def shapes_and_dtypes(t, case, change):
    made = getattr(t.distributions, case[0])(**FIXED.get(case[0], {}), **change(t))
    drawn = made.sample((2,))
    return [tuple(made.batch_shape), tuple(made.event_shape), attempt(lambda: str(made.mean.dtype)[-5:]), str(drawn.dtype)[-5:], tuple(drawn.shape),
            attempt(lambda: str(made.log_prob(drawn).dtype)[-5:])]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_expanded_distributions(case):
    """An expanded distribution has the same class, attributes and function values as in PyTorch. expand() refuses the same sizes as in PyTorch."""
    def make(t):
        made = getattr(t.distributions, case[0])(**FIXED.get(case[0], {}), **parameters(t, case))
        return made.expand((3, *made.batch_shape))
    compare(make)
    assert type(make(gradus)).__name__ == type(make(torch)).__name__
    for sizes in ((0,), (-1,), (5, 7)):
        ours, theirs = (attempt(lambda: tuple(make(t).expand(sizes).batch_shape)) for t in (gradus, torch))
        assert isinstance(ours, str) == isinstance(theirs, str), sizes
