"""Compares histograms with PyTorch: counts, edges, weights, densities, errors. Also checks that the results have the same bits with any number of
threads."""
import gradus
import pytest
from oracle import torch


def result(module, name, *args, **options):
    """Calls module.name. Returns the elements of its results as lists, or the class and the text of its error. An argument {"tensor": values} and
    the option `weight` are passed as tensors, a list of lists as a list of tensors."""
    def tensor(value):
        return module.tensor(value, dtype=module.float64 if isinstance(value[0], float) or isinstance(value[0], list) else None)

    values = [tensor(a["tensor"]) if isinstance(a, dict) else [tensor(b) for b in a] if isinstance(a, list) and isinstance(a[0], list) else a for a in args]
    words = {key: tensor(value) if key == "weight" else value for key, value in options.items()}
    try:
        found = getattr(module, name)(*values, **words)
    except Exception as error:
        return type(error).__name__, str(error)
    found = [found] if isinstance(found, module.Tensor) else [found[0], *(found[1] if isinstance(found[1], (list, tuple)) else [found[1]])]
    return [t.tolist() for t in found]


def agree(name, *args, **options):
    ours, theirs = result(gradus, name, *args, **options), result(torch, name, *args, **options)
    if isinstance(theirs, tuple):
        assert ours == theirs
    else:
        assert ours == [pytest.approx(t, nan_ok=True) if not isinstance(t[0], list) else t for t in theirs]


X = {"tensor": [0.1, 1.0, 2.0, 2.0, 0.5, 3.0, -1.0, 1.75]}
NONE = {"tensor": [float("nan"), 1.0]}
INFINITE = {"tensor": [float("inf"), 1.0]}
SAME = {"tensor": [2.0, 2.0]}
INTEGERS = {"tensor": [1, 2]}
W = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


@pytest.mark.parametrize("args", [
    (X,), (X, 4), (X, 4, 0, 3), (X, 4, 0.0, 3.0), (X, 7, 1, 1), (X, 3, 3, 0), (X, 0), (X, -1), (X, 4, 0, float("inf")), (INFINITE, 3), (SAME, 4), (INTEGERS, 3), (X, 4, 2, 2.5)])
def test_histc(args):
    agree("histc", *args)


@pytest.mark.parametrize("args, options", [
    ((X,), {}), ((X, 4), {}), ((X, 4), {"range": (0.0, 3.0)}), ((X, 4), {"range": [0, 3]}), ((X, 4), {"weight": W}), ((X, 4), {"weight": W, "density": True}),
    ((X, 4), {"density": True, "range": (-2.0, 2.0)}), ((SAME, 4), {}), ((X, 4), {"range": (1.0, 1.0)}), ((X, {"tensor": [0.0, 1.0, 2.0, 5.0]}), {}),
    ((X, {"tensor": [0.0, 1.0, 1.0, 2.0]}), {"weight": W, "density": True}), ((X, {"tensor": [2.0, 1.0]}), {}), ((X, 0), {}), ((X, {"tensor": [1.0]}), {}),
    ((X, 4), {"range": (3.0, 0.0)}), ((X, 4), {"range": (0.0,)}), ((X, 4), {"range": (0.0, float("inf"))}), ((NONE, 4), {"range": (0.0, 4.0)}), ((INFINITE, 4), {}), ((INTEGERS, 4), {}),
    ((X, 4), {"weight": [1.0]}), ((X, 4), {"weight": [1, 2, 3, 4, 5, 6, 7, 8]}), ((X, INTEGERS), {}), ((X, {"tensor": [[1.0, 2.0]]}), {})])
def test_histogram(args, options):
    agree("histogram", *args, **options)


POINTS = {"tensor": [[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.5, 0.5]]}


@pytest.mark.parametrize("args, options", [
    ((POINTS, [3, 2]), {}), ((POINTS, 3), {}), ((POINTS, [3, 2]), {"range": [0.0, 3.0, 0.0, 4.0]}), ((POINTS, [[0.0, 1.0, 2.0], [0.0, 2.0]]), {}), ((POINTS, [3, 3]), {"density": True}),
    ((POINTS, [3, 3]), {"weight": W[:5]}), ((POINTS, [[0.0, 1.0, 2.0], [0.0, 2.0]]), {"weight": W[:5], "density": True}), ((POINTS, [3]), {}), ((POINTS, [3, 0]), {}),
    ((POINTS, [3, 3]), {"range": [0.0, 3.0]}), ((X, [3]), {}), ((POINTS, [[0.0, 1.0]]), {}), ((POINTS, [3, 3]), {"weight": W}), ((POINTS, [3, 3]), {"range": [0.0, 3.0, 3.0, 1.0]})])
def test_histogramdd(args, options):
    agree("histogramdd", *args, **options)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_histograms_of_half_types(dtype):
    def program(module):
        as_half = getattr(module, dtype)
        x = (module.arange(-20, 21) / 8).to(as_half)
        edges = module.tensor([-1.0, 0.5, 0.75, 2.0], dtype=as_half)
        weight = (module.arange(41) % 4).to(as_half)
        found = [*module.histogram(x, 8, range=(-2.0, 2.0)), *module.histogram(x, edges, weight=weight), *module.histogram(x, edges, density=True), *module.histogram(x[:0], 2)]
        found += [module.histogramdd(module.stack([x, -x], 1), [4, 2], range=(-1.0, 3.0, -2.0, 2.0)).hist, module.histogramdd(x[:, None], [edges]).hist]
        refused = []
        for call in (lambda: module.histogram(x, 4), lambda: module.histogramdd(x[:, None], [4]), lambda: module.histogram(x.long(), 4), lambda: module.histogram(x.long(), 4, range=(0.0, 1.0))):
            with pytest.raises(NotImplementedError) as info:
                call()
            refused.append(str(info.value))
        return [(str(t.dtype).split(".")[1], t.tolist()) for t in found], refused

    assert program(gradus) == program(torch)


def test_histograms_of_many_values_agree_with_pytorch():
    """Some values lie on the edges of bins. There are enough values for several threads."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(-1000, 1001, (100_003,), generator=generator) / 128
    ours = gradus.from_numpy(x.numpy())
    for bins in (1, 7, 64, 100, 1000, 30011):
        assert gradus.histc(ours, bins, -5, 5).tolist() == torch.histc(x, bins, -5, 5).tolist()
        assert gradus.histogram(ours, bins).hist.tolist() == torch.histogram(x, bins).hist.tolist()
        edges = torch.linspace(-6, 6, bins + 1)
        assert gradus.histogram(ours, gradus.from_numpy(edges.numpy())).hist.tolist() == torch.histogram(x, edges).hist.tolist()
    # The elements are exact in float16, and each count is rounded to float16 once.
    assert gradus.histc(ours.to(gradus.float16), 4, -8, 8).tolist() == torch.histc(x, 4, -8, 8).half().tolist()


def test_histograms_do_not_depend_on_the_number_of_threads():
    x, weight = gradus.randn(200_000), gradus.rand(200_000)
    before, found = gradus.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            gradus.set_num_threads(threads)
            found.append(gradus.histogram(x, 50, weight=weight).hist)
    finally:
        gradus.set_num_threads(before)
    assert all(gradus.equal(found[0], other) for other in found)


def test_methods_out_argument_and_named_results():
    x = gradus.tensor([1.0, 2.0, 1.0])
    assert x.histc(2).tolist() == [2, 1] and x.histogram(2).bin_edges.tolist() == [1, 1.5, 2]
    out = gradus.empty(2)
    assert gradus.histc(x, 2, out=out) is out and out.tolist() == [2, 1]
    found = gradus.histogramdd(x.reshape(3, 1), 2)
    assert found.hist.tolist() == [2, 1] and found.bin_edges[0].tolist() == [1, 1.5, 2]
    texts = [repr(module.histogramdd(module.tensor([[0.0, 1.0], [1.0, 0.5]]), bins=[2, 3])) for module in (gradus, torch)]
    assert texts[0] == texts[1]
    with pytest.raises(RuntimeError, match="derivative for '.*histogram' is not implemented"):
        gradus.histogram(x.requires_grad_(), 2).hist.sum().backward()
    assert not gradus.histc(x, 2).requires_grad


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_vmap_of_histograms():
    x = gradus.randn(4, 50)
    rows = gradus.stack([gradus.histc(row, 5) for row in x])
    assert gradus.equal(gradus.vmap(lambda row: gradus.histc(row, 5))(x), rows)
    assert gradus.equal(gradus.vmap(lambda row: gradus.histogram(row, 5).hist)(x), gradus.stack([gradus.histogram(row, 5).hist for row in x]))


def test_too_many_bins_are_refused():
    with pytest.raises(RuntimeError, match="too many bins: 9223372036854775807"):
        gradus.histogram(gradus.ones(3), 2**63 - 1)
