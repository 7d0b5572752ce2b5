"""Compares the transforms and constraints of distributions with PyTorch's: values, Jacobians, domains, shapes, reprs and errors. Also compares the
registry that maps a constraint to a transform."""
import warnings

import numpy as np
import pytest
from distribution_cases import CASES, NAMES, build, numbers, tril
from nn_programs import gradus
from oracle import torch

# Name -> (function of the library that makes the transform, sizes of an input, range of the input's elements).
TRANSFORMS = {
    "exp": (lambda t: t.distributions.ExpTransform(), (2, 3), (-2, 2)),
    "power": (lambda t: t.distributions.PowerTransform(t.tensor(2.5, dtype=t.float64)), (2, 3), (0.1, 2)),
    "power down": (lambda t: t.distributions.PowerTransform(t.tensor([-0.5, 2.0, 1.0], dtype=t.float64)), (2, 3), (0.1, 2)),
    "sigmoid": (lambda t: t.distributions.SigmoidTransform(), (2, 3), (-40, 40)),
    "softplus": (lambda t: t.distributions.SoftplusTransform(), (2, 3), (-5, 25)),
    "tanh": (lambda t: t.distributions.TanhTransform(), (2, 3), (-3, 3)),
    "abs": (lambda t: t.distributions.AbsTransform(), (2, 3), (-2, 2)),
    "affine": (lambda t: t.distributions.AffineTransform(1.5, -2.0), (2, 3), (-2, 2)),
    "affine of tensors": (lambda t: t.distributions.AffineTransform(t.tensor([1.0, 2.0, 3.0], dtype=t.float64), t.tensor(0.5, dtype=t.float64)), (2, 3), (-2, 2)),
    "affine of vectors": (lambda t: t.distributions.AffineTransform(0.5, t.tensor([1.0, -2.0, 3.0], dtype=t.float64), event_dim=1), (2, 3), (-2, 2)),
    "affine of matrices": (lambda t: t.distributions.AffineTransform(0.5, -1.5, event_dim=2), (4, 2, 3), (-2, 2)),
    "identity": (lambda t: t.distributions.identity_transform, (2, 3), (-2, 2)),
    "softmax": (lambda t: t.distributions.SoftmaxTransform(), (2, 3), (-2, 2)),
    "stick breaking": (lambda t: t.distributions.StickBreakingTransform(), (2, 3), (-2, 2)),
    "correlation": (lambda t: t.distributions.CorrCholeskyTransform(), (2, 6), (-2, 2)),
    "lower cholesky": (lambda t: t.distributions.LowerCholeskyTransform(), (2, 3, 3), (-2, 2)),
    "positive definite": (lambda t: t.distributions.PositiveDefiniteTransform(), (2, 3, 3), (-2, 2)),
    "cumulative": (lambda t: t.distributions.CumulativeDistributionTransform(t.distributions.Normal(t.zeros(3, dtype=t.float64), 2.0)), (2, 3), (-2, 2)),
    "reshape": (lambda t: t.distributions.ReshapeTransform((2, 3), (6,)), (4, 2, 3), (-2, 2)),
    "independent": (lambda t: t.distributions.IndependentTransform(t.distributions.ExpTransform(), 1), (2, 3), (-2, 2)),
    "independent twice": (lambda t: t.distributions.IndependentTransform(t.distributions.AffineTransform(1.0, 3.0), 2), (4, 2, 3), (-2, 2)),
    "composed": (lambda t: t.distributions.ComposeTransform([t.distributions.AffineTransform(0.0, 2.0), t.distributions.ExpTransform()]), (2, 3), (-2, 2)),
    "composed, inverted": (lambda t: t.distributions.ComposeTransform([t.distributions.AffineTransform(1.0, -2.0), t.distributions.SigmoidTransform()]).inv, (2, 3), (0.1, 0.9)),
    "composed with vectors": (lambda t: t.distributions.ComposeTransform([t.distributions.ExpTransform(), t.distributions.StickBreakingTransform()]), (2, 3), (-2, 1)),
    "composed of nothing": (lambda t: t.distributions.ComposeTransform([]), (2, 3), (-2, 2)),
    "inverse": (lambda t: t.distributions.ExpTransform().inv, (2, 3), (0.1, 2)),
    "concatenated": (lambda t: t.distributions.CatTransform([t.distributions.ExpTransform(), t.distributions.AffineTransform(1.0, 2.0)], dim=1, lengths=[1, 2]),
                     (2, 3), (-2, 2)),
    "concatenated, dim 0": (lambda t: t.distributions.CatTransform([t.distributions.ExpTransform(), t.distributions.TanhTransform()], dim=0), (2, 3), (-2, 2)),
    "stacked": (lambda t: t.distributions.StackTransform([t.distributions.ExpTransform(), t.distributions.AffineTransform(1.0, 2.0)], dim=0), (2, 3), (-2, 2)),
    "stacked, last dim": (lambda t: t.distributions.StackTransform([t.distributions.ExpTransform()] * 3, dim=-1), (2, 3), (-2, 2)),
}


def array(t):
    return np.array(t.detach().tolist())


def attempt(function):
    """Returns the result of the call, or the class name of its exception. A ValueError or NotImplementedError is given with its text, except if the
    text shows a tensor."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function()
        except Exception as error:
            text = str(error)
            own = isinstance(error, (ValueError, NotImplementedError)) and "tensor(" not in text
            return f"{type(error).__name__}: {text if own else ''}"


def description(constraint):
    return repr(constraint), constraint.event_dim, constraint.is_discrete


def expect_equal(name, got, wanted, tolerance=1e-10):
    if isinstance(wanted, (list, tuple)) and not hasattr(wanted, "numel"):
        assert type(got).__name__ == type(wanted).__name__ and len(got) == len(wanted), (name, got, wanted)
        for i, (a, b) in enumerate(zip(got, wanted)):
            expect_equal(f"{name}, {i}", a, b, tolerance)
    elif isinstance(wanted, torch.Tensor):
        assert hasattr(got, "dtype"), (name, got, wanted)
        assert str(got.dtype).split(".")[-1] == str(wanted.dtype).split(".")[-1] and tuple(got.shape) == tuple(wanted.shape), (name, got, wanted)
        np.testing.assert_allclose(array(got), array(wanted), rtol=tolerance, atol=tolerance, err_msg=name)
    else:
        assert got == wanted, (name, got, wanted)


def gradient(t, function, x):
    x = x.detach().requires_grad_()
    y = function(x)
    return t.autograd.grad((y * t.arange(1, y.numel() + 1, dtype=y.dtype).reshape(y.shape)).sum(), x)[0]


def answers(t, name):
    """Yields (name, value or error) for every property and function of the transform `name`."""
    make, sizes, limits = TRANSFORMS[name]
    transform, x = make(t), t.tensor(numbers(3, sizes, *limits), dtype=t.float64)
    for attribute in ("bijective", "sign", "event_dim"):
        yield attribute, attempt(lambda: getattr(transform, attribute))
    for attribute in ("domain", "codomain"):
        yield attribute, attempt(lambda: description(getattr(transform, attribute)))
    y = attempt(lambda: transform(x))
    yield "forward", y
    yield "back", attempt(lambda: transform.inv(y))
    yield "log_abs_det_jacobian", attempt(lambda: transform.log_abs_det_jacobian(x, y))
    yield "log_abs_det_jacobian of the inverse", attempt(lambda: transform.inv.log_abs_det_jacobian(y, x))
    yield "gradient", attempt(lambda: gradient(t, transform, x))
    yield "gradient of the inverse", attempt(lambda: gradient(t, transform.inv, y))
    yield "gradient of log_abs_det_jacobian", attempt(lambda: gradient(t, lambda x: transform.log_abs_det_jacobian(x, transform(x)), x))
    for sizes in ((2, 3), (4, 2, 3), (6,), (2, 3, 3), (), (2, 1)):
        yield f"forward_shape {sizes}", attempt(lambda: tuple(transform.forward_shape(sizes)))
        yield f"inverse_shape {sizes}", attempt(lambda: tuple(transform.inverse_shape(sizes)))
    yield "repr", "tensor" in repr(transform) or repr(transform)
    yield "repr of the inverse", "tensor" in repr(transform.inv) or repr(transform.inv)
    yield "equal", (transform == make(t), transform == t.distributions.TanhTransform(), transform.inv.inv is transform, transform.inv == make(t).inv)
    cached = attempt(lambda: transform.with_cache(1))
    yield "cache", attempt(lambda: (cached._cache_size, cached(x) is cached(x), cached.inv(cached(x)) is x))
    yield "domain holds", attempt(lambda: transform.domain.check(x))
    yield "codomain holds", attempt(lambda: transform.codomain.check(y))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_agree_with_pytorch(name):
    for (question, got), (_, wanted) in zip(answers(gradus, name), answers(torch, name), strict=True):
        expect_equal(question, got, wanted)


def test_every_transform_is_tested():
    tried = {type(part).__name__ for make, _, _ in TRANSFORMS.values() for part in [make(torch), *getattr(make(torch), "parts", [])]}
    assert set(torch.distributions.transforms.__all__) - tried <= {"Transform", "identity_transform"}


@pytest.mark.parametrize("wrong", [
    lambda d, t: d.ReshapeTransform((2, 3), (5,)), lambda d, t: d.IndependentTransform(d.ExpTransform(), 1)(t.tensor(1.0)),
    lambda d, t: d.AffineTransform(0.0, 1.0, cache_size=2), lambda d, t: d.TransformedDistribution(d.Normal(0.0, 1.0), [3]),
    lambda d, t: d.TransformedDistribution(d.Normal(0.0, 1.0), 3), lambda d, t: d.TransformedDistribution(d.Normal(0.0, 1.0), d.StickBreakingTransform()),
    lambda d, t: d.CatTransform([3]), lambda d, t: d.StackTransform([3]), lambda d, t: d.AbsTransform().log_abs_det_jacobian(1, 1),
    lambda d, t: d.Transform()(t.zeros(2)), lambda d, t: d.SoftmaxTransform().log_abs_det_jacobian(t.zeros(2), t.zeros(2)), lambda d, t: d.ReshapeTransform((2,), (2,))(t.zeros(3)),
    lambda d, t: d.CorrCholeskyTransform().forward_shape((4,)), lambda d, t: d.CorrCholeskyTransform().inverse_shape((3, 2)), lambda d, t: d.biject_to(3),
    lambda d, t: d.transform_to(d.constraints.integer_interval(0, 2)), lambda d, t: d.biject_to(d.constraints.simplex).forward_shape(()),
    lambda d, t: d.biject_to(d.constraints.boolean), lambda d, t: d.constraints.cat([d.constraints.real], lengths=[1, 2]), lambda d, t: d.constraints.stack([3]),
    lambda d, t: d.constraints.independent(3, 1), lambda d, t: d.constraints.independent(d.constraints.real, -1), lambda d, t: d.constraints.dependent.check(1),
    lambda d, t: d.constraints.independent(d.constraints.real, 2).check(t.zeros(3)), lambda d, t: d.biject_to.register(3, 4), lambda d, t: d.constraints.Constraint().check(1)])
def test_errors_are_those_of_pytorch(wrong):
    got, wanted = attempt(lambda: wrong(gradus.distributions, gradus)), attempt(lambda: wrong(torch.distributions, torch))
    assert isinstance(wanted, str), "PyTorch refuses it"
    plain = wanted.replace("torch.", "gradus.")
    assert got in (wanted, plain)


# ---- Constraints --------------------------------------------------------------------------------------------------------------------


def matrices():
    lower = np.array(tril(1, 3))
    row = lower / np.sqrt((lower * lower).sum(-1, keepdims=True))
    return [np.eye(3), lower, -lower, row, lower @ lower.T, np.ones((3, 3)), np.arange(9.0).reshape(3, 3) / 10, np.full((3, 3), np.nan), -np.eye(3)]


CONSTRAINTS = {
    **{name: (lambda c, name=name: getattr(c, name)) for name in (
        "boolean", "one_hot", "nonnegative_integer", "positive_integer", "real", "real_vector", "positive", "nonnegative", "unit_interval", "simplex",
        "lower_triangular", "lower_cholesky", "corr_cholesky", "square", "symmetric", "positive_semidefinite", "positive_definite")},
    "integer_interval": lambda c: c.integer_interval(-1, 2), "greater_than": lambda c: c.greater_than(0.5), "greater_than_eq": lambda c: c.greater_than_eq(0.0),
    "less_than": lambda c: c.less_than(0.5), "interval": lambda c: c.interval(-0.5, 1.0), "half_open_interval": lambda c: c.half_open_interval(0.0, 1.0),
    "multinomial": lambda c: c.multinomial(3), "independent": lambda c: c.independent(c.positive, 1),
    "cat": lambda c: c.cat([c.real, c.positive], dim=-1, lengths=[1, 2]), "stack": lambda c: c.stack([c.positive, c.real, c.unit_interval], dim=-1)}
VALUES = [[0.0, 1.0, 0.0], [1.0, 2.0, 3.0], [-1.0, 0.5, 1.0], [0.2, 0.3, 0.5], [-0.5, 0.0, 0.25], [float("nan"), 1.0, 0.5], [0.0, 0.0, 3.0],
          [1.0, 0.0, 2.0], [-3.0, -1.0, 0.0], [float("inf"), 1.0, 0.0]]


def is_singular(value):
    matrix = torch.tensor(value, dtype=torch.float64)
    is_square = matrix.dim() == 2 and matrix.shape[0] == matrix.shape[1]
    return is_square and bool(matrix.isfinite().all()) and bool(torch.linalg.eigvalsh(matrix).abs().min() < 1e-12)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints_agree_with_pytorch(name):
    ours, theirs = CONSTRAINTS[name](gradus.distributions.constraints), CONSTRAINTS[name](torch.distributions.constraints)
    assert description(ours) == description(theirs)
    assert type(ours).__name__ == type(theirs).__name__
    for value in [VALUES, *VALUES, *(m.tolist() for m in matrices())]:
        if name == "positive_semidefinite" and is_singular(value):
            # Singular matrices are not compared. Rounding decides the sign of an eigenvalue that is 0, so it decides the result of check().
            continue
        checked = [attempt(lambda: c.check(t.tensor(value, dtype=t.float64))) for c, t in ((ours, gradus), (theirs, torch))]
        expect_equal(str(value), *checked)


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_biject_to_and_transform_to(name, registry):
    """For each constraint the registry returns a transform of the same class as PyTorch's registry. The results of the transform satisfy the
    constraint."""
    def found(t):
        transform = getattr(t.distributions, registry)(CONSTRAINTS[name](t.distributions.constraints))
        width = 6 if name == "corr_cholesky" else 3
        x = t.tensor(numbers(2, (3, 3, 3) if transform.domain.event_dim == 2 else (2, width), -2, 2), dtype=t.float64)
        y = transform(x)
        return [repr(transform), description(transform.domain), description(transform.codomain), y, transform.inv(y), transform.codomain.check(y)]
    expect_equal(name, attempt(lambda: found(gradus)), attempt(lambda: found(torch)))


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_arg_constraints_and_support_of_distributions(case):
    """arg_constraints and support of each distribution are PyTorch's, and so are the transforms that the registry has for these constraints."""
    ours, theirs = build(gradus, case)[0], build(torch, case)[0]
    assert list(ours.arg_constraints) == list(theirs.arg_constraints)
    for (name, got), wanted in zip(ours.arg_constraints.items(), theirs.arg_constraints.values()):
        assert attempt(lambda: description(got)) == attempt(lambda: description(wanted)), name
    for registry in ("biject_to", "transform_to"):
        chains = [attempt(lambda: getattr(t.distributions, registry)(d.support)) for t, d in ((gradus, ours), (torch, theirs))]
        names = [chain if isinstance(chain, str) else "tensor" in repr(chain) or repr(chain) for chain in chains]
        assert names[0].replace("gradus.", "torch.") == names[1] if isinstance(names[0], str) else names[0] == names[1]
    assert "tensor" in repr(theirs) or repr(ours) == repr(theirs)
    assert str(ours.support) == str(theirs.support) or "tensor" in str(theirs.support)
    if hasattr(type(theirs), "icdf"):
        given = [t.tensor([[0.1], [0.5], [0.9]], dtype=t.float64) for t in (gradus, torch)]
        expect_equal("icdf", *(attempt(lambda: d.icdf(u)) for d, u in zip((ours, theirs), given)))
