"""Compares recurrent networks and cells with PyTorch: values, gradients, second derivatives, initial values, the random numbers of dropout, reprs and
errors."""
import io
import pickle
import random

import numpy
import pytest

import gradus
from beside_torch import check
from oracle import needs_torch, torch

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def drawn(seed):
    """Returns random keyword arguments for `networks`, which builds a network from them."""
    draw = random.Random(seed)
    cell, hidden, rows = draw.choice(list(GATES)), draw.choice([1, 3, 8, 17]), draw.choice([1, 2, 9, 17])
    sizes = sorted([rows, *(draw.randint(1, rows) for _ in range(draw.randint(0, 4)))], reverse=True) if draw.random() < 0.5 else None
    return {"cell": cell, "hidden": hidden, "rows": rows, "features": draw.choice([1, 4]), "layers": draw.choice([1, 1, 2, 3]), "both": draw.random() < 0.4, "biases": draw.random() < 0.6,
            "projected": 2 if cell == "lstm" and hidden > 2 and draw.random() < 0.3 else None, "first": draw.random() < 0.4, "sizes": sizes}


def leaves_of(network, dtype):
    """Returns the input, the states and the weights of a network as NumPy arrays."""
    numbers, n = numpy.random.default_rng(5), network
    directions, width, state = 2 if n["both"] else 1, GATES[n["cell"]] * n["hidden"], n["projected"] or n["hidden"]
    shapes = [(sum(n["sizes"]), n["features"])] if n["sizes"] else [(n["rows"], 4, n["features"]) if n["first"] else (4, n["rows"], n["features"])]
    shapes += [(n["layers"] * directions, n["rows"], state)] + [(n["layers"] * directions, n["rows"], n["hidden"])] * (n["cell"] == "lstm")
    for layer in range(n["layers"]):
        for _ in range(directions):
            shapes += [(width, state * directions if layer else n["features"]), (width, state)] + [(width,)] * 2 * n["biases"] + [(state, n["hidden"])] * bool(n["projected"])
    return [numbers.uniform(-0.7, 0.7, shape).astype(dtype) for shape in shapes]


def outputs_and_gradients(t, network, dtype):
    n = network
    leaves = [t.tensor(x, requires_grad=True) for x in leaves_of(n, dtype)]
    states = 2 if n["cell"] == "lstm" else 1
    hx, weights = (leaves[1:3] if states == 2 else leaves[1]), leaves[1 + states:]
    arguments = (hx, weights, n["biases"], n["layers"], 0.0, True, n["both"])
    run = getattr(t, n["cell"])
    results = run(leaves[0], t.tensor(n["sizes"]), *arguments) if n["sizes"] else run(leaves[0], *arguments, n["first"])
    loss = sum((i + 1) * (r * r).sum() + r.sum() for i, r in enumerate(results))
    gradients = t.autograd.grad(loss, leaves, create_graph=dtype == "float64")
    second = t.autograd.grad(sum((g * g).sum() for g in gradients), leaves, allow_unused=True) if dtype == "float64" else ()
    return [*results, *gradients, *second], [r.stride() for r in results]


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("seed", range(50))
def test_random_networks_agree_with_pytorch(seed):
    needs_torch()
    network = drawn(seed)
    for dtype, close in (("float64", 1e-9), ("float32", 3e-4)):
        (ours, our_strides), (theirs, their_strides) = (outputs_and_gradients(t, network, dtype) for t in (gradus, torch))
        assert our_strides == their_strides, network
        for mine, wanted in zip(ours, theirs, strict=True):
            assert (mine is None) == (wanted is None), network
            if wanted is not None:
                numpy.testing.assert_allclose(mine.detach().numpy(), wanted.detach().numpy(), rtol=close, atol=close * max(1, wanted.abs().max().item()), err_msg=str(network))


def test_lstm_does_not_depend_on_the_number_of_threads():
    network = gradus.nn.LSTM(64, 96, 2, bidirectional=True)
    x = gradus.randn(12, 40, 64)
    results, before = [], gradus.get_num_threads()
    for threads in (1, 2, 3, before):
        gradus.set_num_threads(threads)
        network.zero_grad()
        output, _ = network(x)
        output.square().sum().backward()
        results.append([output.detach().clone(), *(p.grad for p in network.parameters())])
    assert all(gradus.equal(a, b) for other in results[1:] for a, b in zip(results[0], other))


def test_jvp_and_vmap_of_gru():
    network = gradus.nn.GRU(3, 4).double()
    weights = dict(network.named_parameters())
    x, v = gradus.randn(5, 2, 3, dtype=gradus.float64), gradus.randn(5, 2, 3, dtype=gradus.float64)

    def run(x):
        return gradus.func.functional_call(network, weights, (x,))[0]

    value, tangent = gradus.func.jvp(run, (x,), (v,))
    gradus.testing.assert_close(value, run(x))
    near = (run(x + 1e-6 * v) - run(x - 1e-6 * v)) / 2e-6
    gradus.testing.assert_close(tangent, near, rtol=1e-6, atol=1e-7)
    many = gradus.randn(3, 5, 2, 3, dtype=gradus.float64)
    gradus.testing.assert_close(gradus.vmap(run)(many), gradus.stack([run(x) for x in many]))
    gradients = gradus.vmap(gradus.func.grad(lambda x: run(x).square().sum()))(many)
    one = gradus.func.grad(lambda x: run(x).square().sum())(many[1])
    gradus.testing.assert_close(gradients[1], one)


MODULES = [("LSTM", {}), ("LSTM", {"num_layers": 2, "dropout": 0.4, "bidirectional": True}), ("LSTM", {"proj_size": 2, "bias": False, "num_layers": 2, "batch_first": True}),
           ("GRU", {"num_layers": 3, "dropout": 0.5}), ("GRU", {"bidirectional": True, "batch_first": True}), ("RNN", {"nonlinearity": "relu", "num_layers": 2}), ("RNN", {"bias": False})]


def module_outcome(t, name, options):
    t.manual_seed(3)
    module = getattr(t.nn, name)(3, 5, **options)
    x = t.randn(4, 6, 3)
    found = []
    for result in (module(x), module(x[0]), module(x, module(x)[1])):
        found += [result[0], *(result[1] if isinstance(result[1], tuple) else [result[1]])]
    sum((f * f).sum() for f in found).backward()
    return repr(module), [f.detach().numpy() for f in found] + [p.grad.numpy() for p in module.parameters()], module


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize(("name", "options"), MODULES)
def test_recurrent_modules(name, options):
    needs_torch()
    ours, theirs = module_outcome(gradus, name, options), module_outcome(torch, name, options)
    assert ours[0] == theirs[0]
    for mine, wanted in zip(ours[1], theirs[1], strict=True):
        numpy.testing.assert_allclose(mine, wanted, rtol=1e-4, atol=1e-4 * max(1, abs(wanted).max()))
    file = io.BytesIO()
    torch.save(theirs[2].state_dict(), file)
    file.seek(0)
    ours[2].load_state_dict(gradus.load(file))
    assert list(ours[2].state_dict()) == list(theirs[2].state_dict())
    copy = pickle.loads(pickle.dumps(ours[2]))
    x = gradus.randn(2, 3)
    assert gradus.equal(copy.eval()(x)[0], ours[2].eval()(x)[0])


@pytest.mark.parametrize(("name", "options"), [("LSTMCell", {}), ("GRUCell", {"bias": False}), ("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu"})])
def test_recurrent_cells(name, options):
    needs_torch()

    def run(t):
        t.manual_seed(1)
        cell, x, states = getattr(t.nn, name)(3, 5, **options), t.randn(4, 2, 3), None
        for row in x:
            states = cell(row, states)
        single = cell(x[0, 0])
        found = [*(states if isinstance(states, tuple) else [states]), *(single if isinstance(single, tuple) else [single])]
        sum((f * f).sum() for f in found).backward()
        return repr(cell), [f.detach().numpy() for f in found] + [p.grad.numpy() for p in cell.parameters()]

    ours, theirs = run(gradus), run(torch)
    assert ours[0] == theirs[0]
    for mine, wanted in zip(ours[1], theirs[1], strict=True):
        numpy.testing.assert_allclose(mine, wanted, rtol=1e-5, atol=1e-5)


X = "nn = torch.nn; R = torch.ones; "


@pytest.mark.parametrize("expression", [
    "nn.LSTM(3, 4, 2, False, True, 0.5, True, 2)", "nn.RNN(3, 4, 2, 'relu', False, True, 0.1, True)", "nn.RNNBase('LSTM', 3, 4)", "nn.RNNCell(3, 4, nonlinearity='relu')", "nn.GRUCell(3, 4, False)",
    "nn.LSTM()", "nn.LSTM(3, 4, dropout=2)", "nn.LSTM(3, 4, dropout=True)", "nn.LSTM(3, 0)", "nn.LSTM(3, 4.0)", "nn.LSTM(3.5, 4)", "nn.LSTM(0, 4)", "nn.LSTM(3, 4, 0)", "nn.LSTM(3, 4, bias=0)",
    "nn.LSTM(3, 4, proj_size=-1)", "nn.LSTM(3, 4, proj_size=4)", "nn.RNN(3, 4, proj_size=2)", "nn.RNN(3, 4, nonlinearity='x')", "nn.RNNBase('X', 3, 4)",
    "nn.LSTM(3, 4)._all_weights", "nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)._flat_weights_names", "nn.LSTM(3, 4).all_weights[0][0].shape",
    "nn.LSTM(3, 4)(R(5, 2, 4))", "nn.LSTM(3, 4)(R(2))", "nn.RNN(3, 4)(R(2))", "nn.LSTM(3, 4)(R(5, 2, 3), (R(1, 2, 4), R(1, 2, 5)))", "nn.LSTM(3, 4)(R(5, 2, 3), (R(1, 3, 4), R(1, 2, 4)))",
    "nn.LSTM(3, 4)(R(5, 2, 3), (R(2, 4), R(2, 4)))", "nn.LSTM(3, 4)(R(5, 3), (R(1, 2, 4), R(1, 2, 4)))", "nn.GRU(3, 4)(R(5, 3), R(1, 2, 4))", "nn.GRU(3, 4)(R(5, 2, 3), R(1, 4))",
    "nn.GRU(3, 4)(R(5, 2, 3), R(1, 3, 4))", "nn.GRU(3, 4)(R(5, 2, 3).double())", "nn.GRU(3, 4)(R(0, 2, 3))", "nn.GRU(3, 4)(R(5, 0, 3))[0].shape", "nn.RNNCell(3, 4, nonlinearity='x')(R(2, 3))",
    "nn.GRUCell(3, 4)(R(1, 1, 3))", "nn.GRUCell(3, 4)(R(2, 3), R(4))", "nn.LSTMCell(3, 4)(R(2, 3), (R(1, 2, 4), R(2, 4)))", "nn.LSTMCell(3, 4)(R(3), (R(2, 4), R(4)))", "nn.RNNCell(3, 4)(R(2, 4))",
    "torch.gru(R(5, 3, 4), R(1, 3, 6), [R(18, 4), R(18, 6), R(18)], True, 1, 0.0, False, False, False)", "torch.gru(R(5, 3, 4), R(1, 3, 6), [R(18, 4), R(18, 6)], False, 2, 0.0, False, False, False)",
    "torch.gru(R(5, 3, 4), R(2, 3, 6), [R(18, 4), R(18, 6)], False, 2, 0.0, False, False, False)", "torch.gru(R(5, 3, 4), R(1, 3, 6), [R(18, 4), R(18, 6)], False, 1, 0.0, False, True, False)",
    "torch.gru(R(5, 3, 3), R(1, 3, 6), [R(18, 4), R(18, 6)], False, 1, 0.0, False, False, False)", "torch.lstm(R(5, 3, 4), [R(1, 3, 6)], [R(24, 4), R(24, 6)], False, 1, 0.0, False, False, False)",
    "torch.lstm_cell(R(3, 4), [R(3, 6)], R(24, 4), R(24, 6))", "torch.gru_cell(R(3, 4), R(3, 6), R(24, 4), R(24, 6))", "torch.lstm_cell(R(3, 4), [R(2, 6), R(3, 6)], R(24, 4), R(24, 6))"])
def test_repr_and_errors_of_recurrent_modules(expression):
    check(X + expression)


def test_unpickling_modules_of_old_versions():
    module = gradus.nn.LSTM(2, 3)
    state = module.__getstate__() if hasattr(module, "__getstate__") else dict(module.__dict__)
    state = {name: value for name, value in dict(state).items() if name not in ("_all_weights", "proj_size")} | {"all_weights": module._all_weights, "_flat_weights": []}
    old = gradus.nn.LSTM.__new__(gradus.nn.LSTM)
    old.__setstate__(state)
    assert gradus.equal(old(gradus.ones(4, 2))[0], module(gradus.ones(4, 2))[0])
