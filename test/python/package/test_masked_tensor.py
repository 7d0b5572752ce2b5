"""Checks that printing, gradients and errors of masked tensors are PyTorch's. Also tests what only Gradus has: more views, and sums of gradients with
different masks."""
import copy
import pickle

import pytest

import gradus
from both import caught
from oracle import needs_torch, torch

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors", "ignore:It is not recommended to create a MaskedTensor", "ignore:Using backward")
MASK = [[True, False, True, True], [False, False, True, False]]


def scope(module):
    """Returns {name: value} for the names that the expressions below use. The masked tensors g and h require a gradient."""
    masked, d, m = module.masked, module.tensor([[0.0, -1.5, 2, 3], [4, 5, -6, 7]]), module.tensor(MASK)
    return {"torch": module, "F": module.nn.functional, "d": d, "m": m, "masked_tensor": masked.masked_tensor, "as_masked_tensor": masked.as_masked_tensor,
            "MaskedTensor": masked.MaskedTensor, "is_masked_tensor": masked.is_masked_tensor, "x": masked.masked_tensor(d, m), "y": masked.masked_tensor(d.flip(1) + 1, m),
            "z": masked.masked_tensor(d, ~m), "g": masked.masked_tensor(d, m, requires_grad=True), "h": masked.masked_tensor(d, ~m, requires_grad=True),
            "v": masked.masked_tensor(module.arange(4.0), m[0]), "one": masked.masked_tensor(module.tensor(2.5), module.tensor(True)),
            "none": masked.masked_tensor(module.tensor(2.5), module.tensor(False)), "leaf": d.clone().requires_grad_(),
            "i": masked.masked_tensor(module.arange(6).reshape(2, 3), module.tensor([[True, False, True], [False, False, False]])),
            "b": masked.masked_tensor(module.tensor([True, False, True]), module.tensor([True, True, False])),
            "image": masked.masked_tensor(module.arange(16.0).reshape(1, 1, 4, 4), module.arange(16).reshape(1, 1, 4, 4) % 3 == 0)}


def outcome(module, program):
    """Runs a program of statements separated by "; ". Returns the value of the last one, or the class and the text of the error."""
    names = scope(module)
    *statements, last = program.split("; ")
    try:
        for statement in statements:
            exec(statement, names)
        return repr(eval(last, names))
    except Exception as error:
        return type(error).__name__, str(error)


def lines(text):
    return [line.strip() for line in text.strip().splitlines()]


def agree(program):
    needs_torch()
    assert outcome(gradus, program) == outcome(torch, program)


UNARY = """abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1
fix floor frac i0 isfinite isnan isreal lgamma log log10 log1p log2 logit nan_to_num neg negative positive rad2deg reciprocal round rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt
square tan tanh trunc""".split()
BINARY = """add arctan2 atan2 div divide eq floor_divide fmax fmin fmod ge greater greater_equal gt le less less_equal logaddexp logaddexp2 lt maximum minimum mul multiply ne nextafter
not_equal remainder sub subtract true_divide""".split()


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions(name):
    if name != "sinc":  # the values of sinc at integers are rounding errors
        agree(f"torch.{name}(x)")
    agree(f"torch.{name}(masked_tensor(d * 0.1, m))")
    # PyTorch refuses some gradients of masked tensors, so its gradients are computed with an unmasked tensor and masked afterwards.
    if name not in ("isfinite", "isnan", "isreal", "signbit"):
        start, end = "w = (d.double() * 0.1 + 0.05)", f"; torch.{name}(w).sum().backward(); "
        assert outcome(gradus, f"{start}; w = masked_tensor(w, m, requires_grad=True){end}w.grad") == outcome(torch, f"{start}.requires_grad_(){end}masked_tensor(w.grad, m)")
    if name not in ("angle", "isfinite", "isnan", "isreal", "positive", "signbit", "sinc"):
        agree(f"torch.Tensor.{name}_(x); x")


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions(name):
    unsigned = " + 0" if name == "remainder" else ""  # the sign of a zero differs (docs/differences.md), and adding 0 removes it
    for other in ("y", "d", "2.0", "z", "v", "d[0]", "one"):
        if name in ("atan2", "arctan2", "fmax", "fmin", "logaddexp", "logaddexp2", "maximum", "minimum", "nextafter") and other == "2.0":
            continue
        agree(f"torch.{name}(x, {other}){unsigned}")
    agree(f"torch.{name}(d, x){unsigned}")
    if name in ("add", "div", "mul", "sub", "true_divide", "multiply", "divide"):
        agree(f"torch.{name}(g, y + 2).sum().backward(); g.grad")
        agree(f"torch.{name}(y + 2, g).sum().backward(); g.grad")
    if hasattr(torch.Tensor, name + "_"):
        agree(f"x.{name}_(y); x{unsigned}")
        agree(f"x.{name}_(z)")


@pytest.mark.parametrize("program", [
    "x", "v", "one", "none", "i", "b", "one.dtype", "x.half()", "x.bool()", "i.to(torch.int8)", "masked_tensor(torch.arange(24.0).reshape(2, 3, 4), torch.arange(24).reshape(2, 3, 4) % 3 == 0)",
    "masked_tensor(torch.tensor([1e10, -1e-10, 123456.789, torch.nan, torch.inf, -torch.inf]), torch.arange(6) % 2 == 0)",
    "masked_tensor(torch.tensor([1e10, -1e-10, 123456.789, torch.nan, torch.inf, -torch.inf]), torch.arange(6) > -1)",
    "masked_tensor(torch.tensor([100000000000, 2, 3]), torch.tensor([False, True, False]))", "masked_tensor(torch.tensor([100000000000, 2, 3]), torch.tensor([True, True, False]))",
    "masked_tensor(torch.arange(2000.0), torch.arange(2000) % 3 == 0)", "str(x)", "f'{one}'", "'{:.2f}'.format(one)",
])
def test_printing_masked_tensors(program):
    agree(program)


@pytest.mark.parametrize("program", [
    "x.get_data()", "x.get_mask()", "x.to_tensor(9)", "g.to_tensor(9)", "i.to_tensor(1.5)", "x.to_tensor(float('nan'))", "x.to_dense()", "g.get_data().requires_grad", "x.is_sparse",
    "x.is_sparse_coo()", "x.is_sparse_csr()", "x.dim(), x.numel(), len(x), x.size(), x.size(0), x.stride(), x.is_contiguous(), x.shape, x.dtype, x.layout, x.ndim",
    "is_masked_tensor(x), is_masked_tensor(d)", "g.is_leaf, g.requires_grad, x.requires_grad, g.grad", "as_masked_tensor(leaf, m).is_leaf, as_masked_tensor(leaf, m).requires_grad",
    "masked_tensor(leaf, m).requires_grad", "w = as_masked_tensor(d, m); d[0, 0] = 77.0; m[1, 1] = True; w", "w = as_masked_tensor(d, m); w.get_data()[0, 0] = 99; w",
    "x.float() is x", "x.double().dtype", "x.type(torch.int64)", "x.to(d)", "x.type()", "x.copy_(y)", "x.copy_(d)", "x.copy_(z)", "torch.ones_like(x)", "x.data", "one.item(), float(one), int(one), bool(one)",
    "x.requires_grad_().requires_grad", "g.detach().requires_grad", "h = x.clone(); h.add_(1); x", "x.t().contiguous().is_contiguous()", "torch.nn.Parameter(x)", "torch.nn.Sigmoid()(x)",
    "MaskedTensor.unary(torch.exp, d, m)", "F.dropout(x, 0.0)", "+x", "-x", "abs(x)", "~b", "b & b", "b | b", "b ^ b", "x ** 2", "2 / y", "x == None", "x += 1; x", "x *= y; x", "x /= 2; x",
    "torch.clamp(x, -1, 2)", "x.clamp(min=0)", "torch.clip(x, 0, 1)", "x.pow(2)", "torch.logit(x, 0.1)", "torch.isclose(x, y)", "torch.float_power(x, 2)", "torch.special.expit(x)", "x.clamp_(0, 1); x",
    "torch.bitwise_and(i, i)", "torch.bitwise_or(i, i)", "torch.bitwise_xor(i, i)", "torch.bitwise_left_shift(i, i)", "torch.bitwise_right_shift(i, 1)", "torch.bitwise_not(i)",
    "x + torch.ones(3, 2, 4)", "x + torch.ones(2, 1)", "x.max(y)", "x.min(y)",
])
def test_methods_and_constructors(program):
    agree(program)


@pytest.mark.parametrize("dim", ["", "0", "1", "-1", "(0, 1)", "[0]"])
@pytest.mark.parametrize("name", ["sum", "mean", "amin", "amax", "argmin", "argmax", "prod", "all", "var", "std"])
def test_reductions(name, dim):
    if name in ("argmin", "argmax", "prod") and dim[:1] in ("(", "["):
        dim = "1"
    for t in ("x", "(x > 0)", "i", "i.float()", "z"):
        if name in ("amin", "amax", "argmin", "argmax") and t == "(x > 0)":
            continue
        agree(f"{t}.{name}({dim})")
        if dim:
            agree(f"torch.{name}({t}, dim={dim}, keepdim=True)")
    agree(f"none.{name}()")
    if name in ("sum", "mean", "amin", "amax", "prod", "var", "std"):
        agree(f"r = g.{name}({dim}); r.sum().backward(); g.grad")
        agree(f"r = (g * y).{name}({dim}); (r * r).sum().backward(); g.grad")
        agree(f"(as_masked_tensor(leaf, m) * 2).{name}({dim}).sum().backward(); leaf.grad")


@pytest.mark.parametrize("program", [
    "F.softmax({}, 1) + y", "torch.softmax({}, 0) * y", "{}.softmax(-1) * y", "(F.softmax({}, -1) * y)", "{}[0]", "{}[0, 2]", "{}[:, 1:]", "{}[..., 0]", "{}[None]", "{}[:, ::2]", "{}.t()", "{}.transpose(0, 1)",
    "{}.mT", "{}.view(4, 2)", "{}.view(-1)[:4] * 3", "{}.reshape(4, 2)", "{}.flatten()", "{}.ravel()", "{}.expand(3, 2, 4)", "{}.unfold(1, 2, 1)", "torch.cat([{}, y])", "torch.cat([{}, {}], 1)",
    "torch.stack([{}, z])", "torch.vstack([{}, y])", "torch.hstack([{}, y])", "torch.dstack([{}, y])", "{}.narrow(1, 1, 2)", "{}.select(1, 2)", "{}.clone()", "{}.to(torch.float64)", "{}.exp()",
    "{}.exp() + {}.sin()", "{} * {}", "{} / y", "y / {}", "torch.where(m, {}, y)", "torch.where(m, {}, z)", "torch.where(d > 0, {}, y)", "torch.where(m, {}, 0.0)", "torch.where(m, {}, d)",
    "{}.view_as(y)", "{}.expand_as(torch.zeros(3, 2, 4))", "torch.broadcast_to({}, (3, 2, 4))", "{}.swapaxes(0, 1)", "{}.unflatten(1, (2, 2))", "{}.split(2, 1)[0]", "{}.chunk(2, 1)[1]",
])
def test_views_and_gradients_through_them(program):
    agree(program.replace("{}", "x"))
    # PyTorch refuses the gradients of programs with these operations, so only their values are compared.
    if not any(part in program for part in ("split", "chunk", "None", "dstack", "0.0")):
        agree("r = " + program.replace("{}", "g") + "; r.sum().backward(); g.grad")
        agree("r = " + program.replace("{}", "g") + "; (r * r).sum().backward(); g.grad")


@pytest.mark.parametrize("program", [
    "x[torch.tensor([1, 0])]", "x[torch.tensor([True, False])]", "x[d > 0]", "x[[1, 0]]", "x[1]", "x[0, 1]", "F.unfold(image, 2)", "F.fold(image[0], (3, 3), 2)",
    "torch.where(~m, x, z)", "torch.atleast_2d(v)", "torch.tensor_split(x, 2)", "torch.hsplit(x, 2)", "v.expand(2, -1)",
    "torch.where(m, g, h).sum().backward(); g.grad, h.grad", "torch.where(d > 0, g, h).sum().backward(); g.grad, h.grad", "torch.where(m, g, leaf).sum().backward(); leaf.grad, g.grad",
    "(x * leaf).sum().backward(); leaf.grad", "w = d[0].clone().requires_grad_(); (x * w).sum().backward(); w.grad", "w = torch.tensor(2.0, requires_grad=True); (x * w).sum().backward(); w.grad",
    "g[0].sum().backward(); g.grad", "g[0, 0].backward(); g.grad", "g.sum(1)[0].backward(); g.grad", "g.amax(1)[0].backward(); g.grad", "g.sum().backward(); g.sum().backward(); g.grad",
    "g[0].sum().backward(); g.grad = None; g[1].sum().backward(); g.grad", "g.exp().backward(torch.ones(2, 4)); g.grad", "g.exp().backward(masked_tensor(torch.ones(2, 4), m)); g.grad",
    "g.to_tensor(7.0).sum().backward(); g.grad", "(g.get_data() * d).sum().backward(); g.grad", "(g.to_tensor(3.0) * d).sum().backward(); g.grad", "torch.autograd.grad((g * g).sum(), g)",
    "torch.autograd.grad((g * g * g).sum(), g, create_graph=True)[0].sum().backward(); g.grad", "k = g * 2; k.retain_grad(); k.sum().backward(); k.grad", "k = g * 1; k.add_(y); k.sum().backward(); g.grad",
    "k = g * 2; (k * k).sum().backward(); g.grad", "w = d.double().requires_grad_(); k = as_masked_tensor(w, m); (k * k).sum().backward(); w.grad.dtype, w.grad",
    "as_masked_tensor(leaf, m).get_data().sum().backward(); leaf.grad", "seen = []; g.register_hook(seen.append); (g * 2).sum().backward(); seen", "torch.masked.sum(as_masked_tensor(leaf, m)).backward(); leaf.grad",
    "torch.masked.sum(x, 1), torch.masked.amax(x, 0), torch.masked.prod(x, 1), torch.masked.softmax(x, 1), torch.masked.logsumexp(x, 1), torch.masked.normalize(x, 2, 1)",
    "torch.masked.logaddexp(x, y), torch.masked.logaddexp(x, d)", "torch.masked.sum(x, mask=~m)",
])
def test_splitting_indexing_and_where(program):
    agree(program)


@pytest.mark.parametrize("program", [
    "x + z", "x + v", "x + one", "x + x[0:1]", "torch.minimum(x, z)", "x.add_(z)", "torch.pow(x, y)", "torch.clamp(x, min=torch.zeros(2, 4))", "x[7]", "x.transpose(0, 5)", "x.sum(3)", "x.sum((0, 0))",
    "x.reshape(3, 3)", "x.view(torch.int32)", "x.expand(4, 2)", "x.sum().backward()", "g.sum(1).backward()", "g.exp_()", "torch.cat([x, d])", "torch.cat([x, v])", "torch.where(x)", "x + None", "x + 'a'",
    "masked_tensor(d, m.float())", "masked_tensor(d, m[0])", "masked_tensor(d, m[:, :3])", "masked_tensor([1, 2], m)", "masked_tensor(x, m)", "masked_tensor(d, x)", "masked_tensor(d, None)",
    "masked_tensor(d.to(torch.bfloat16), m)", "masked_tensor(d.to(torch.complex64), m)", "masked_tensor(d.to(torch.uint8), m)", "masked_tensor(d.long(), m, requires_grad=True)", "x.to(torch.bfloat16)",
    "as_masked_tensor(d, m.int())", "MaskedTensor(1, m)", "x.numpy()", "x.tolist()", "x.item()", "bool(x)", "i.mean()", "x.get_data(1)", "x.argmax((0, 1))", "x.mask",
])
def test_errors(program):
    ours, theirs = outcome(gradus, program), outcome(torch, program) if needs_torch() is None else None
    assert isinstance(ours, tuple) and isinstance(theirs, tuple)
    assert ours == theirs or (ours[0], ours[1][:30]) == (theirs[0], theirs[1][:30])


@pytest.mark.parametrize("name", ["any", "median", "logsumexp", "cumsum", "cumprod", "log_softmax", "sort", "count_nonzero", "relu", "isinf", "logical_not", "zeros_like", "bernoulli", "tril"])
def test_functions_that_gradus_and_pytorch_refuse(name):
    arguments = (1,) if name in ("logsumexp", "cumsum", "cumprod", "log_softmax") else ()
    for module in (gradus, torch):
        assert caught(getattr(module, name), scope(module)["x"], *arguments)[0] == "TypeError"
    assert caught(getattr(gradus, name), scope(gradus)["x"], *arguments)[1] == f"{name}(): not implemented for MaskedTensor"


def test_in_place_functions_of_a_tensor_refuse_masked_tensors():
    names = scope(gradus)
    assert caught(names["d"].add_, names["x"]) == ("TypeError", "add_(): a Tensor cannot be changed by a MaskedTensor")
    assert caught(names["d"].copy_, names["x"]) == ("TypeError", "copy_(): a Tensor cannot be changed by a MaskedTensor")
    assert caught(gradus.where, names["x"] > 0, names["x"], names["y"]) == ("TypeError", "where(): the condition must not be a MaskedTensor")
    assert caught(names["none"].item) == ("ValueError", "item(): the element is masked")
    assert caught(gradus.exp, names["x"], out=names["x"]) == ("ValueError", "exp(): out= is not supported for MaskedTensor")
    assert caught(names["x"].to_sparse) == ("NotImplementedError", "to_sparse(): masked tensors of sparse layouts are not supported")


def test_programs_of_the_tutorials():
    """Gradus and PyTorch give the same results for the programs of PyTorch's tutorials on masked tensors: masks that keep NaN out of gradients,
    softmax of masked rows, and means of the unmasked elements."""
    def program(torch):
        masked_tensor, as_masked_tensor, said = torch.masked.masked_tensor, torch.masked.as_masked_tensor, []
        x = torch.tensor([-10.0, -5, 0, 5, 10, 50, 60, 70, 80, 90, 100], requires_grad=True)
        torch.where(x < 0, torch.exp(x), torch.ones_like(x)).sum().backward()
        said.append(x.grad)
        x = torch.tensor([-10.0, -5, 0, 5, 10, 50, 60, 70, 80, 90, 100])
        mask = x < 0
        mx, my = masked_tensor(x, mask, requires_grad=True), masked_tensor(torch.ones_like(x), ~mask, requires_grad=True)
        y = torch.where(mask, torch.exp(mx), my)
        y.sum().backward()
        said += [y, mx.grad, my.grad]
        q, div = torch.tensor([1.0, 1.0], requires_grad=True), torch.tensor([0.0, 1.0])
        mq = as_masked_tensor(q / div, div != 0)
        said.append(mq)
        torch.masked.sum(mq.get_data(), mask=mq.get_mask()).backward()
        said.append(q.grad)
        w = torch.tensor([4.0, 1.0], requires_grad=True)
        (as_masked_tensor((w / div).sqrt() * 3, div != 0) * 2).sum().backward()
        said.append(w.grad)
        data = torch.arange(24.0).reshape(2, 3, 4) / 7
        mt = masked_tensor(data, data.remainder(2) > 0.5)
        said += [mt.sum(0), mt.mean(1), mt.prod(2), mt.amin(1), mt.argmax(2), mt + mt, mt * 3, mt.sqrt(), mt.transpose(0, 2), mt.var(0)]
        rows = masked_tensor(torch.tensor([[0.3, -1.2, 0.7], [0.1, 0.2, 0.3]]), torch.tensor([[True, False, True], [False, False, False]]))
        said += [torch.softmax(rows, 1), torch.masked.softmax(torch.tensor([1.0, 2.0]), 0, mask=torch.tensor([True, False])), rows.mean(1).to_tensor(-1)]
        z = torch.tensor([1.0, float("nan")], requires_grad=True)
        mz = as_masked_tensor(z, ~torch.isnan(z))
        (10 * mz).sum().backward()
        return [repr(part) for part in [*said, mz, z.grad, mz.sum()]]

    needs_torch()
    assert program(gradus) == program(torch)


def test_views_and_functions_that_pytorch_lacks():
    names = scope(gradus)
    x, g = names["x"], names["g"]
    assert lines(repr(x.T)) == lines(repr(x.t())) == lines(repr(x.permute(1, 0)))
    assert [lines(repr(row)) for row in x] == [lines(repr(x[0])), lines(repr(x[1]))]
    assert lines(repr(x.unsqueeze(1).squeeze())) == lines(repr(x))
    assert lines(repr(1 - x)) == lines(repr(-x + 1)) and (2**x).get_data()[0, 2].item() == 4
    assert x.norm().item() == 7 and x.sum(dtype=gradus.float64).dtype is gradus.float64 and x.var(1, correction=0).get_mask().tolist() == [True, True]
    (g[0].sum() + g[1].sum() * 2).backward()  # an element of a sum of gradients is unmasked if it is unmasked in one of the gradients
    assert g.grad.get_mask().tolist() == MASK and g.grad.to_tensor(0).tolist() == [[1, 0, 1, 1], [0, 0, 2, 0]]
    g.grad = None
    g[gradus.tensor([1, 0, 1])].sum().backward()
    assert g.grad.to_tensor(0).tolist() == [[1, 0, 1, 1], [0, 0, 2, 0]]
    g.grad = None
    g.split(1)[1].exp().sum().backward()
    assert g.grad.get_mask().tolist() == [[False] * 4, MASK[1]]


def test_masked_elements_do_not_reach_gradients():
    data = gradus.tensor([[0.0, 2.0], [float("nan"), 4.0]])
    w = gradus.ones(2, requires_grad=True)
    mt = gradus.masked.masked_tensor(1 / data, gradus.tensor([[False, True], [False, True]]), requires_grad=True)
    (mt * w).sum().backward()
    assert w.grad.to_tensor(-1).tolist() == [-1, 0.75] and w.grad.get_data().tolist() == [0, 0.75]
    assert mt.grad.get_data().tolist() == [[0, 1], [0, 1]]


def test_gradcheck_of_masked_tensors():
    mask = gradus.tensor(MASK)
    x = gradus.tensor([[0.3, -1.5, 2, 3], [4, 5, -6, 7]], dtype=gradus.float64, requires_grad=True)
    for function in (lambda t: t.exp().sum(1), lambda t: (t * t).mean(), lambda t: t.prod(1), lambda t: t.softmax(1)[0], lambda t: t.std(), lambda t: t.norm(2, 1), lambda t: gradus.where(mask, t, t * 2)):
        assert gradus.autograd.gradcheck(lambda d, function=function: function(gradus.masked.as_masked_tensor(d.flip(1), mask)).to_tensor(0), (x,), masked=False)
        assert gradus.autograd.gradgradcheck(lambda d, function=function: function(gradus.masked.as_masked_tensor(d.flip(1), mask)).to_tensor(0), (x,))


def test_copies_of_masked_tensors():
    g = scope(gradus)["g"]
    (g[0] * 2).sum().backward()
    for other in (copy.deepcopy(g), pickle.loads(pickle.dumps(g)), copy.copy(g)):
        assert type(other) is gradus.masked.MaskedTensor and other.requires_grad and repr(other) == repr(g)
    twin = copy.deepcopy(g)
    assert repr(twin.grad) == repr(g.grad) and twin.grad is not g.grad and twin.grad.get_mask().tolist() == [MASK[0], [False] * 4]
    assert caught(copy.deepcopy, g * 2)[0] == "RuntimeError"


def test_public_names_are_those_of_pytorch():
    needs_torch()
    missing = {name for name in dir(torch.masked) if not name.startswith("_")} - set(dir(gradus.masked)) - {"maskedtensor"}
    assert not missing and set(gradus.masked.__all__) == set(torch.masked.__all__)
