"""Checks that the strides of results are PyTorch's. Every operator is called with the sample arguments in the schema and with variations of them, in
many memory layouts."""
import ast
import random

import pytest

import binding as g
from oracle import torch
from test_torch import OPERATORS, OWN, as_list, oracle, torch_call
from codegen.samples import evaluate, sample_texts

TRIALS = 30
pytestmark = pytest.mark.filterwarnings("ignore")  # only PyTorch warns here

# Operators whose results may differ from PyTorch's in the strides of dimensions of size 1. Such a stride addresses no element. In PyTorch
# it depends on the operators that the function is composed of.
SIZE_ONE = {
    **{name: "one kernel here, several operators in PyTorch" for name in ("softsign", "isinf", "isfinite", "isneginf", "isposinf", "isclose", "batch_norm", "rms_norm", "conj_physical")},
    **{name: "a number is a zero-dimensional input here, a parameter in PyTorch" for name in ("pow", "clamp", "clamp_min", "clamp_max", "round_decimals")},
    **{name: "made of other operators than PyTorch's" for name in ("einsum", "norm_except_dim", "polar", "prelu", "normalize", "binary_cross_entropy_with_logits",
                                                                               "gaussian_nll_loss")},
    **{name: "the transformed dimensions are those that PyTorch's library moves to the end" for name in OPERATORS if name.startswith("fft_")},
    **{name: "made of other operators than PyTorch's" for name in ("hash_tensor", "ldexp", "linalg_matrix_norm", "special_ndtr", "addr", "quantile_scalar", "nanquantile_scalar")},
    **{name: "one way for all, several in PyTorch" for name in ("convolution", "conv2d", "conv2d_padded", "conv_transpose2d")},
}

# Operators that are not compared, with the reason.
DIFFERENT = {
    **OWN,
    "as_strided": "its samples are for one layout",
    **{name: "with one channel and one tap they show which way PyTorch took" for name in ("conv1d", "conv1d_padded", "conv_transpose1d")},
    **{name: "PyTorch has it as a part of a backward alone" for name in (
        "convolution_input", "convolution_weight", "window_scatter", "window_gather", "avg_pool_backward", "adaptive_avg_pool_backward", "linear_scan", "attention_scores")},
    **{name: "in place, and of a copy in PyTorch's" for name in OPERATORS if name.startswith(("foreach_", "amp_")) and name.endswith(("_inplace", "_scale", "_unscale"))},
    **{name: "PyTorch's oneDNN corrupts memory where the dtypes of params differ from the input's" for name in ("lstm", "lstm_packed", "gru", "gru_packed")},
    **{name: "PyTorch's writes beyond its memory where the state is of other sizes" for name in OPERATORS if name.startswith("sobol_engine_")},
    "gru_cell": "PyTorch's follows the state; here the result is contiguous",
    "local_response_norm": "made of other operators than PyTorch's",
    "alpha_dropout": "random; the strides of sizes of 1 are those of a product of three tensors",
    "native_batch_norm": "PyTorch goes by the strides of sizes of 1, too",
    **{name: "PyTorch's result is contiguous; here it has the strides of its input" for name in ("standard_gamma_grad", "dirichlet_grad")},
    "triangular_solve": "the copy of the matrix lies as the matrix does; PyTorch's lies column by column",
    "gradient_spacings": "PyTorch takes no tensor there, but a list of numbers",
    "renorm": "PyTorch's result is contiguous; here it has the strides of its input",
    "rrelu": "PyTorch's result is contiguous; here it has the strides of its input, as those of the other activations",
    **{name: "PyTorch's result has the strides of its input; here it is contiguous" for name in ("frexp", "put")},
    "max_pool3d_with_indices_backward": "PyTorch's result has the memory format of its input; here it is contiguous",
    "weight_norm": "PyTorch's kernel for the first and the last dimension gives contiguous tensors, its parts for others keep the strides of v",
    "prelu_kernel": "made of other operators than PyTorch's, of which none broadcasts",
    "soft_margin_loss": "PyTorch fills a tensor that it has made empty, and its strides are left to the order in which that happens",
}


def layouts(shape, pick):
    """Returns random strides for the shape, dense or with gaps. Strides of dimensions of size 1 may be any number."""
    rank = len(shape)
    kind = pick.choice(["contiguous", "contiguous", "channels_last", "channels_last", "reversed", "transposed", "permuted", "permuted", "gaps", "expanded", "ones", "ones"])
    order = list(range(rank))
    if kind == "channels_last" and rank >= 3:
        order = [0, *range(2, rank), 1]
    elif kind == "reversed":
        order.reverse()
    elif kind == "transposed" and rank > 1:
        order[-1], order[-2] = order[-2], order[-1]
    elif kind in ("permuted", "ones"):
        pick.shuffle(order)
    strides, step = [0] * rank, 1
    for d in reversed(order):
        strides[d] = step
        step *= max(shape[d], 1)
        if kind == "gaps" and pick.random() < 0.5:
            step *= 2
    if kind == "ones":
        strides = [pick.choice([0, 1, 2, 7, s]) if n == 1 else s for n, s in zip(shape, strides)]
    if kind == "expanded" and rank:
        strides[pick.randrange(rank)] = 0
    return tuple(strides)


def with_strides(values, strides):
    """Returns a tensor with the given elements and strides. Along a dimension of stride 0 the first element is repeated."""
    n = 1 + sum((s - 1) * t for s, t in zip(values.shape, strides)) if values.numel() else 0
    memory = torch.zeros(n, dtype=values.dtype)
    laid = torch.as_strided(memory, values.shape, strides)
    if not n:
        return laid
    for d, stride in enumerate(strides):
        if stride == 0 and values.shape[d] > 1:
            values = values.narrow(d, 0, 1).expand(values.shape)
    torch.as_strided(memory, [1 if t == 0 else s for s, t in zip(values.shape, strides)], strides).copy_(
        values[tuple(slice(0, 1) if t == 0 else slice(None) for t in strides)])
    return laid


def to_gradus(t):
    n = 1 + sum((s - 1) * st for s, st in zip(t.shape, t.stride())) if t.numel() else 0
    data = torch.as_strided(t, (n,), (1,), 0).view(torch.uint8).numpy().tobytes() if n else b""
    flat = g.c.c_void_p(g.from_bytes(data, (n,), str(t.dtype).split(".")[1]))
    return g.call("as_strided", {"self": flat, "size": list(t.shape), "stride": list(t.stride()), "storage_offset": 0})[0]


def change(shapes, pick):
    """Returns the shapes of the arguments with some sizes replaced by 1 and with more leading or trailing dimensions. All shapes are changed in the
    same way, so that the arguments still fit together."""
    sizes = sorted({n for s in shapes for n in s})
    ones = {n for n in sizes if pick.random() < 0.3}
    deeper, where = pick.choice([0, 0, 1, 2, 3]), pick.random()
    more = [pick.choice([1, 2, 3]) for _ in range(deeper)]
    rank = max(map(len, shapes), default=0)
    changed = []
    for s in shapes:
        s = [1 if n in ones else n for n in s]
        if s or rank == 0:
            s = [*more, *s] if where < 0.5 else [*s, *more]
        changed.append(s)
    return changed


def calls_of(node):
    return [n for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in "TCIB"]


def tensor(node, shape, domain, pick, dtype):
    bounds = {k.arg: ast.literal_eval(k.value) for k in node.keywords}
    generator = torch.Generator().manual_seed(pick.randrange(2**31))
    if node.func.id == "B":
        values = torch.randint(0, 2, shape, generator=generator).bool()
    elif node.func.id == "I":
        values = torch.randint(bounds.get("lo", 0), bounds.get("hi", 2), shape, generator=generator)
    else:
        low, high = bounds.get("lo", domain[0]), bounds.get("hi", domain[1])
        values = torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low
        values = (values + bounds["ridge"] * torch.eye(*shape[-2:], dtype=torch.float64) if "ridge" in bounds else values).to(dtype)
    return with_strides(values, layouts(shape, pick))


def arguments(operator, text, pick, dtype):
    domain = operator.test.get("domain", [-2, 2])
    call = ast.parse(f"f({text.removeprefix('~')})", mode="eval").body
    nodes = dict(zip((a.name for a in operator.args), call.args)) | {k.arg: k.value for k in call.keywords}
    tensors = [t for n in nodes.values() for t in calls_of(n)]
    shapes = [[ast.literal_eval(a) for a in t.args] for t in tensors]
    if pick.random() < 0.8:
        shapes = change(shapes, pick)
    made = {id(t): tensor(t, s, domain, pick, dtype) for t, s in zip(tensors, shapes)}
    values = {}
    for name, node in nodes.items():
        if isinstance(node, ast.Call):
            values[name] = made[id(node)]
        elif isinstance(node, ast.List) and calls_of(node):
            values[name] = [made[id(e)] for e in node.elts]
        else:
            values[name] = evaluate(node, operator)
    return values


def described(value):
    if isinstance(value, list):
        return [described(v) for v in value]
    return (tuple(value.shape), value.stride()) if isinstance(value, torch.Tensor) else value


def to_library(value):
    if isinstance(value, list) and value and isinstance(value[0], torch.Tensor):
        return [to_gradus(t) for t in value]
    return to_gradus(value) if isinstance(value, torch.Tensor) else value


def used(strides, sizes):
    return [stride for stride, size in zip(strides, sizes) if size != 1]


def differences(operator, values):
    """Calls an operator and compares the strides of its results with PyTorch's. Returns (differences, number of results compared). A difference is
    (arguments, index of the result, its sizes, PyTorch's strides, Gradus's strides)."""
    if operator.name == "index" and (not values["indices"] or any(not index.dim() for index in values["indices"])):
        return [], 0  # PyTorch's indexing takes a zero-dimensional index for a number and returns a view
    try:
        wanted = as_list(torch_call(operator, oracle(operator), values))
    except Exception:  # some variations of a sample are not valid
        return [], 0
    found, compared = [], 0
    with g.scope():
        try:
            got = g.call(operator.name, {name: to_library(value) for name, value in values.items()})
        except g.GradusError:
            return [], 0
        for i, (mine, its) in enumerate(zip(got, wanted)):
            if not isinstance(its, torch.Tensor) or not its.numel() or g.sizes(mine) != tuple(its.shape):
                continue
            compared += 1
            pair = g.strides(mine), its.stride()
            if operator.name in SIZE_ONE:
                pair = used(pair[0], its.shape), used(pair[1], its.shape)
            if pair[0] != pair[1]:
                found.append(({k: described(v) for k, v in values.items()}, i, tuple(its.shape), its.stride(), g.strides(mine)))
    return found, compared


def compared_operators():
    return [o for o in OPERATORS.values() if not o.hidden and "skip" not in o.test and "functional" in o.forms and o.name not in DIFFERENT and sample_texts(o)]


@pytest.mark.parametrize("operator", [pytest.param(o, id=o.name) for o in compared_operators()])
def test_strides_of_results_are_those_of_pytorch(operator, trials=TRIALS):
    all_compared, found = 0, []
    for number, text in enumerate(sample_texts(operator)):
        for trial in range(trials):
            pick = random.Random(f"{operator.name} {number} {trial}")
            some, compared = differences(operator, arguments(operator, text, pick, pick.choice([torch.float64, torch.float32, torch.complex128])))
            found += some
            all_compared += compared
    assert all_compared, f"{operator.name}: no call of {trials} gave a result to compare"
    assert not found, f"{operator.name}: {len(found)} of {all_compared}: " + "; ".join(map(str, found[:3]))


def mixed(pick):
    """Returns two tensors of one shape and different dtypes, each in a random layout."""
    shape = [pick.choice([1, 2, 3, 4]) for _ in range(pick.choice([1, 2, 3, 4, 4, 5]))]
    dtypes = pick.sample([torch.float64, torch.float32, torch.int64, torch.bool, torch.complex64], 2)
    return [with_strides((torch.rand(shape, generator=torch.Generator().manual_seed(pick.randrange(2**31))) * 3).to(d), layouts(shape, pick))
            for d in dtypes]


@pytest.mark.parametrize("name", ["add", "mul", "div", "eq", "logical_and"])
def test_strides_of_results_of_mixed_dtypes(name):
    found = []
    for trial in range(300):
        a, b = mixed(random.Random(f"{name} {trial}"))
        found += differences(OPERATORS[name], {"self": a, "other": b})[0]
    assert not found, f"{len(found)}: {found[:3]}"
