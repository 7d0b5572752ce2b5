"""Checks that values, keys, repr and errors of nn.utils.parametrize and of parametrizations are PyTorch's."""
import copy
import pickle

import pytest
from nn_programs import attempt, same


def kinds(t):
    """Returns parametrizations of several kinds: with and without right_inverse, and with several tensors."""

    class Symmetric(t.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, a):
            return a.triu()

    class Exp(t.nn.Module):
        def forward(self, x):
            return x.exp()

        def right_inverse(self, a):
            return a.abs().log()

    class Plus(t.nn.Module):  # a parametrization without right_inverse
        def forward(self, x):
            return x + 1

    class RankOne(t.nn.Module):
        def forward(self, x, y):
            return x.unsqueeze(-1) @ y.unsqueeze(-2)

        def right_inverse(self, z):
            return z[:, 0].clone(), z[0].clone()

    return Symmetric, Exp, Plus, RankOne


@same
def test_register_one_and_several_parametrizations(t):
    P = t.nn.utils.parametrize
    Symmetric, Exp, Plus, RankOne = kinds(t)
    for made in ([Symmetric], [Exp], [Plus], [RankOne], [Symmetric, Exp], [Exp, Symmetric, Plus], [RankOne, Plus]):
        layer = t.nn.Linear(3, 3)
        for kind in made:
            yield attempt(P.register_parametrization, layer, "weight", kind())
        yield layer.weight, dict(layer.named_parameters()), list(layer.state_dict()), P.is_parametrized(layer), P.is_parametrized(layer, "bias")
        layer(t.randn(2, 3)).square().sum().backward()
        yield {name: p.grad for name, p in layer.named_parameters()}, type(layer).__name__, P.type_before_parametrizations(layer).__name__
        yield attempt(setattr, layer, "weight", t.eye(3) + 1), layer.weight, layer.parametrizations.weight.training
        copied = copy.deepcopy(layer)
        yield copied.weight, copied, attempt(pickle.dumps, layer)
        other = t.nn.Linear(3, 3)
        yield attempt(P.transfer_parametrizations_and_params, layer, other), attempt(lambda: other.weight)
        for leave in (False, True):
            removed = copy.deepcopy(layer)
            yield attempt(P.remove_parametrizations, removed, "weight", leave), attempt(lambda: list(removed.parameters()))
        yield layer, attempt(P.remove_parametrizations, t.nn.Linear(2, 2), "weight")


@same
def test_parametrized_buffers_and_several_tensors(t):
    P, (_, Exp, Plus, _) = t.nn.utils.parametrize, kinds(t)
    norm = t.nn.BatchNorm1d(3)
    P.register_parametrization(norm, "running_var", Exp())
    P.register_parametrization(norm, "weight", Plus())
    P.register_parametrization(norm, "bias", Exp(), unsafe=True)
    yield norm, list(norm.state_dict().items()), norm.eval()(t.randn(2, 3))
    P.remove_parametrizations(norm, "bias")
    yield norm, P.is_parametrized(norm), list(norm.state_dict())
    P.remove_parametrizations(norm, "weight")
    P.remove_parametrizations(norm, "running_var", leave_parametrized=False)
    yield norm, P.is_parametrized(norm), list(norm.state_dict().items()), hasattr(norm, "parametrizations")
    yield attempt(P.register_parametrization, norm, "nothing", Exp())


@same
def test_cached_parametrizations(t):
    P, (_, Exp, _, _) = t.nn.utils.parametrize, kinds(t)
    layer = P.register_parametrization(t.nn.Linear(2, 2), "weight", Exp())
    with P.cached():
        first = layer.weight
        with P.cached():
            yield layer.weight is first
        yield layer.weight is first, P._cache_enabled, len(P._cache)
    yield layer.weight is first, P._cache_enabled, len(P._cache)


@same
def test_invalid_parametrizations_are_refused(t):
    P = t.nn.utils.parametrize

    def kind(forward, inverse=None):
        members = {"forward": lambda self, *x: forward(*x)}
        if inverse is not None:
            members["right_inverse"] = lambda self, x: inverse(x)
        return type("Given", (t.nn.Module,), members)()

    def absent(x):
        raise NotImplementedError

    given = [kind(lambda x: x.double()), kind(lambda x: x[:1]), kind(lambda x: [x]), kind(lambda x: x, lambda x: 3), kind(lambda x: x, lambda x: x.double()),
             kind(lambda x, y: x, lambda x: (x, 3)), kind(lambda x: x, absent), kind(lambda x: x, lambda x: x[:1]), kind(lambda x, y: x + y, lambda x: (x, x))]
    for each in given:
        for unsafe in (False, True):
            for before in ([], [kind(lambda x: x)]):
                layer = t.nn.Linear(2, 2)
                for first in before:
                    P.register_parametrization(layer, "weight", first)
                yield attempt(lambda: P.register_parametrization(layer, "weight", each, unsafe=unsafe) is layer), list(layer.state_dict())
    layer = P.register_parametrization(t.nn.Linear(2, 2), "weight", kind(lambda x, y: x + y, lambda x: (x, x) if x.dim() else x))
    yield attempt(setattr, layer, "weight", t.tensor(1.0)), attempt(setattr, layer, "weight", t.ones(2, 2, dtype=t.float64)), attempt(P.ParametrizationList, [], layer.bias)


@same
def test_weight_norm(t):
    nn = t.nn
    for dim in (0, 1, -1, None):
        layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 4), dim=dim)
        optimizer = t.optim.SGD(layer.parameters(), 0.1)
        for _ in range(2):
            layer(t.ones(2, 3)).square().sum().backward()
            optimizer.step()
        yield layer, layer.weight, list(layer.state_dict().items())
        old = nn.Linear(3, 4)
        attempt(nn.utils.weight_norm, old, dim=dim)
        yield attempt(layer.load_state_dict, old.state_dict()), layer.weight
        layer.weight = t.full((4, 3), 2.0)
        yield layer.weight, nn.utils.parametrize.remove_parametrizations(layer, "weight"), layer.weight


@same
def test_spectral_norm(t):
    nn = t.nn
    for make, name in ((lambda: nn.Linear(3, 4), "weight"), (lambda: nn.Linear(3, 4), "bias"), (lambda: nn.Bilinear(2, 3, 4), "weight")):
        for kwargs in ({}, {"n_power_iterations": 4}, {"eps": 1e-3}, {"dim": -1}):
            layer = nn.utils.parametrizations.spectral_norm(make(), name, **kwargs)
            value = getattr(layer, name)
            (value * value.detach().cos()).sum().backward()
            yield layer, value, {name: p.grad for name, p in layer.named_parameters()}, list(layer.state_dict().items())
            yield getattr(layer.eval(), name), nn.utils.parametrize.remove_parametrizations(layer, name), getattr(layer, name)
    for kwargs in ({"n_power_iterations": 0}, {"dim": 2}, {"name": "nothing"}):
        yield attempt(nn.utils.parametrizations.spectral_norm, nn.Linear(2, 2), **kwargs)


@same(tolerance=1e-4)
def test_orthogonal(t):
    orthogonal = t.nn.utils.parametrizations.orthogonal
    yield attempt(orthogonal, t.nn.Linear(2, 2), "bias"), attempt(orthogonal, t.nn.Linear(2, 2), "nothing"), attempt(orthogonal, t.nn.Linear(2, 2), orthogonal_map="other")


@same(tolerance=2e-4)
def test_orthogonal_matrices(t):
    """parametrizations.orthogonal agrees with PyTorch for each orthogonal_map, with and without trivialization, for square, tall and wide matrices.
    The weight, its gradient, the stored parameters and an optimizer step are compared."""
    for sizes in ((4, 4), (6, 3), (3, 6)):
        for kind in ("matrix_exp", "cayley", "householder", None):
            for trivial in (True, False):
                t.manual_seed(2)
                layer = t.nn.Linear(*sizes)
                made = attempt(t.nn.utils.parametrizations.orthogonal, layer, orthogonal_map=kind, use_trivialization=trivial)
                if not isinstance(made, t.nn.Module):
                    yield made[0]
                    continue
                weight, original = layer.weight, layer.parametrizations.weight.original
                (weight * t.arange(float(weight.numel())).view(weight.shape)).sum().backward()
                yield weight, original.grad, sorted(layer.state_dict())
                with t.no_grad():
                    original.add_(0.1)
                yield layer.weight
