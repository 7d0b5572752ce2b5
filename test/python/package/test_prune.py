"""Checks that masks, values, keys and errors of nn.utils.prune are PyTorch's."""
import pytest
from both import submodule
from nn_programs import attempt, same

METHODS = {
    "identity": [{}], "random_unstructured": [{"amount": 5}, {"amount": 0.3}, {"amount": 0}, {"amount": 1.0}], "l1_unstructured": [{"amount": 4}, {"amount": 0.5}],
    "random_structured": [{"amount": 2, "dim": 0}, {"amount": 0.5, "dim": 1}, {"amount": 0, "dim": -1}],
    "ln_structured": [{"amount": 1, "n": 2, "dim": 0}, {"amount": 0.4, "n": 1, "dim": -1}, {"amount": 0, "n": float("inf"), "dim": 1}],
}


@pytest.mark.parametrize("name", METHODS)
def test_pruning_methods(name):
    @same
    def program(t):
        prune = submodule(t, "nn.utils.prune")
        for kwargs in METHODS[name]:
            layer = t.nn.Linear(5, 4)
            yield getattr(prune, name)(layer, "weight", **kwargs) is layer, list(layer.state_dict().items()), layer.weight, prune.is_pruned(layer)
            layer(t.ones(2, 5)).square().sum().backward()
            yield layer.weight_orig.grad, layer
            for other, more in METHODS.items():
                yield attempt(getattr(prune, other), layer, "weight", **more[-1]), layer.weight_mask, [type(hook).__name__ for hook in layer._forward_pre_hooks.values()]
            yield prune.remove(layer, "weight"), list(layer.state_dict().items()), prune.is_pruned(layer), attempt(prune.remove, layer, "weight")

    program()


@same
def test_custom_masks_and_importance_scores(t):
    prune = submodule(t, "nn.utils.prune")
    layer = t.nn.Linear(3, 2)
    prune.custom_from_mask(layer, "weight", t.tensor([[1, 0, 1], [0, 1, 1]]))
    yield layer.weight, attempt(prune.custom_from_mask, layer, "bias", t.ones(3)), list(layer.state_dict())
    layer = t.nn.Linear(3, 2)
    prune.l1_unstructured(layer, "weight", 2, importance_scores=t.arange(6.0).reshape(2, 3))
    yield layer.weight_mask, attempt(prune.l1_unstructured, layer, "bias", 1, t.ones(5))
    yield prune.L1Unstructured(2).prune(t.tensor([3.0, -1, 2, 0.5])), prune.L1Unstructured(1).prune(t.ones(3), default_mask=t.tensor([1.0, 0, 1]))
    yield attempt(prune.L1Unstructured(2).prune, t.ones(3), importance_scores=t.ones(2))


@same
def test_global_unstructured(t):
    nn, prune = t.nn, submodule(t, "nn.utils.prune")
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    pairs = [(net[0], "weight"), (net[2], "weight"), (net[2], "bias")]
    for kwargs in ({"amount": 0.3}, {"amount": 4, "importance_scores": {(net[2], "bias"): t.tensor([9.0, 0.0])}}):
        yield attempt(prune.global_unstructured, pairs, prune.L1Unstructured, **kwargs), [getattr(module, f"{name}_mask") for module, name in pairs], net(t.ones(1, 3))
    yield attempt(prune.global_unstructured, pairs, prune.LnStructured, amount=1, n=2), attempt(prune.global_unstructured, 3, prune.L1Unstructured, amount=1)
    yield attempt(prune.global_unstructured, pairs, prune.L1Unstructured, importance_scores=3, amount=1)


@same
def test_wrong_arguments_of_pruning(t):
    prune = submodule(t, "nn.utils.prune")
    for amount in ("a", -1, 1.5, -0.5, 100, True):
        layer = t.nn.Linear(3, 2)
        yield attempt(prune.random_unstructured, layer, "weight", amount)[:1], attempt(prune.l1_unstructured, layer, "weight", amount), list(layer.state_dict())
    layer = t.nn.Linear(3, 2)
    yield attempt(prune.ln_structured, layer, "bias", 1, 2, 0), attempt(prune.ln_structured, layer, "weight", 1, 2, 5), attempt(prune.identity, layer, "nothing")
    yield attempt(prune.random_structured, layer, "weight", 9, 0), attempt(prune.BasePruningMethod)[0]
    container = prune.PruningContainer()
    container._tensor_name = "weight"
    method = prune.Identity()
    method._tensor_name = "bias"
    yield attempt(container.add_pruning_method, 3), attempt(container.add_pruning_method, method)[0], len(container), list(container)
