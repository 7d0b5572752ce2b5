"""Tests lazy conjugation and negation (conj, imag of conj). Such views share memory with their base, and every operator reads them as conjugated or
negated."""
import copy
import pickle

import numpy as np
import pytest

import gradus
from both import caught, without_tensors
from oracle import needs_torch, torch

X = np.array([[1 + 2j, -3 + 0.5j, 4j], [0.25 - 1j, 2, -1.5 + 1.5j]], "complex64")


def tensor(module, dtype="complex64"):
    return module.from_numpy(X.astype(dtype))


READ = [
    "x.conj()", "x.conj().imag", "x.conj().real", "x.mH", "x.H", "x.adjoint()", "x.conj().conj()", "x.conj()[0, 1:]", "x.conj().t().reshape(-1)", "x.conj() + 1", "x.conj() * x", "x.conj().sum()", "x.mH @ x",
    "m.stack([x.conj(), x])", "m.cat([x.conj().imag, x.real])", "m.linalg.vector_norm(x.conj())", "m.vdot(x.conj()[0], x[1])", "x.conj().clone()", "x.conj().contiguous()", "x.conj().resolve_conj()",
    "x.conj().imag.resolve_neg()", "m.view_as_real(x.conj().resolve_conj())", "m.conj_physical(x.conj())", "x.conj().to(m.complex128)", "x.conj().abs()", "m.where(x.real > 0, x.conj(), x)", "x.conj().imag.abs()",
    "x.conj().imag.sort()", "m.fft.fft(x.conj())", "m._neg_view(x.real)", "m._conj(x)", "x.conj().detach()", "x.conj().data", "x.conj().expand(2, 2, 3)", "x.conj().imag.cumsum(0)", "m.real(x.conj().conj())", "x.real.conj()",
    "x.conj().imag.neg()", "m.einsum('ij,kj->ik', x.conj(), x)", "x.conj().imag.masked_fill(x.real > 0, 7.)", "m.complex(x.conj().imag, x.real)", "x.conj().imag.to(m.int64)",
    "m.fill(x, x.conj()[0, 0])", "x.clone().fill_(x.conj()[0, 0])", "x.real.masked_fill(x.real > 0, x.conj().imag[0, 0])", "x.index_put((x.real > 0,), x.conj()[0, 0])",
]


@pytest.mark.parametrize("call", READ)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_operators_read_conjugated_and_negated_elements(call, dtype):
    needs_torch()
    ours, theirs = (eval(call, {"m": module, "x": tensor(module, dtype)}) for module in (gradus, torch))
    if isinstance(theirs, tuple):
        ours, theirs = ours[0], theirs[0]
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1] and tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(ours.resolve_conj().resolve_neg().numpy(), theirs.resolve_conj().resolve_neg().numpy(), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ours.tolist(), theirs.tolist(), rtol=1e-6, atol=1e-6)


BITS = ["x.conj()", "x.conj().imag", "x.conj().real", "x.mH", "x.H", "x.adjoint()", "x.conj().conj()", "x.conj()[0]", "x.conj().t()", "x.conj().clone()", "x.conj() + 1", "x.conj().resolve_conj()", "x.conj().detach()",
        "x.real.conj()", "x.conj().contiguous()", "m._neg_view(x.real)", "m._neg_view(x.real).resolve_neg()", "x.conj().imag.t()", "m.conj_physical(x)"]


@pytest.mark.parametrize("call", BITS)
def test_is_conj_and_is_neg(call):
    needs_torch()
    ours, theirs = (eval(call, {"m": module, "x": tensor(module)}) for module in (gradus, torch))
    assert (ours.is_conj(), ours.is_neg()) == (theirs.is_conj(), theirs.is_neg())
    assert (gradus.is_conj(ours), gradus.is_neg(ours)) == (ours.is_conj(), ours.is_neg())


WRITES = ["y = x.conj(); y.mul_(2j)", "y = x.conj(); y[0] = 3 + 5j", "y = x.conj().imag; y.add_(2)", "y = x.conj(); y.copy_(x + 1)", "y = x.conj(); x.zero_()", "y = x.conj(); y.fill_(1j)",
          "y = x.conj(); m.add(x, 1, out=y)", "y = x.conj(); y.t_(); y.mul_(2)", "y = x.conj(); y[x.real > 0] = 2j", "y = x.conj().imag; y.clamp_(-1, 1)", "y = x.conj(); y.index_add_(0, m.tensor([1]), x[:1].clone())",
          "y = x.conj(); y += y", "y = x.conj(); y.conj_physical_()", "y = x.real; m._neg_view(y).sub_(3)"]


@pytest.mark.parametrize("statement", WRITES)
def test_writes_to_conjugated_views_change_the_base(statement):
    needs_torch()
    seen = []
    for module in (gradus, torch):
        names = {"m": module, "x": tensor(module)}
        exec(statement, names)
        seen.append([np.array(names["x"].tolist()), np.array(names["y"].tolist())])
    np.testing.assert_allclose(seen[0][0], seen[1][0], rtol=1e-6)
    np.testing.assert_allclose(seen[0][1], seen[1][1], rtol=1e-6)


GRADIENTS = ["x.conj().imag.sum()", "(x.conj() * (1 + 2j)).sum().abs()", "(x.mH @ x).abs().sum()", "y = a.conj(); y.mul_(2j); return y.imag.sum()", "y = a.conj(); y[0].mul_(2j); return (a * (1 + 2j)).sum().imag",
             "y = a.conj(); y[0].mul_(2j); return (y * (1 + 2j)).sum().imag", "y = a.conj().imag; y.mul_(3); return (a * (1 + 2j)).sum().imag", "y = a.conj(); d = y.imag; y.mul_(3j); return (d * d).sum()",
             "y = a.conj(); d = y.real; y.mul_(3j); return (d * d).sum()", "y = a.conj(); a.mul_(2j); return (y * y).sum().real", "return m._neg_view(a.real).pow(2).sum() + m._neg_view(a.imag).sum()"]


@pytest.mark.parametrize("body", GRADIENTS)
def test_gradients_through_conjugated_views(body):
    needs_torch()
    gradients = []
    for module in (gradus, torch):
        x = tensor(module).requires_grad_()
        names = {"m": module}
        text = body if "return" in body else f"return {body}"
        exec("def f(x, a):\n    " + text, names)
        names["f"](x, x * 1).backward()
        gradients.append(x.grad.resolve_conj().numpy())
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-5, atol=1e-5)


def test_gradcheck_of_conjugated_and_negated_views():
    x = gradus.from_numpy(X.astype("complex128")).requires_grad_()
    for function in (gradus.conj, lambda t: t.conj().imag, lambda t: t.mH @ t, lambda t: gradus._neg_view(t.real) * t.imag):
        assert gradus.autograd.gradcheck(function, (x,), check_forward_ad=True) and gradus.autograd.gradgradcheck(function, (x,))


def test_name_of_the_conj_node():
    assert type(tensor(gradus).requires_grad_().conj().grad_fn).__name__ == "ConjBackward0"


def test_vmap_and_jvp_of_conjugated_views():
    x = tensor(gradus)
    assert gradus.vmap(lambda row: row.conj().imag * 2)(x).tolist() == (-2 * x.imag).tolist()
    assert gradus.vmap(lambda row: row + 1)(x.conj()).tolist() == (x.conj() + 1).tolist()
    value, tangent = gradus.func.jvp(lambda t: t.conj().imag, (x,), (x,))
    assert value.tolist() == tangent.tolist() == (-x.imag).tolist()


@pytest.mark.parametrize("call", ["x.conj().numpy()", "x.conj().imag.numpy()", "x.conj().view(m.float32)", "x.conj().imag.view(m.int32)", "m.view_as_real(x.conj())"])
def test_memory_access_to_conjugated_views_is_refused_as_in_pytorch(call):
    needs_torch()
    ours, theirs = (caught(eval, call, {"m": module, "x": tensor(module)}) for module in (gradus, torch))
    assert ours == theirs and ours is not None


def test_buffers_dlpack_and_wrong_dtypes_are_refused():
    x = tensor(gradus)
    assert caught(memoryview, x.conj())[0] == "BufferError" and caught(x.conj().__dlpack__)[0] == "BufferError"
    assert caught(gradus._conj, x.real)[0] == caught(gradus._neg_view, gradus.ones(2, dtype=gradus.int64))[0] == "RuntimeError"
    assert caught(gradus.view_as_complex, gradus._neg_view(gradus.ones(2, 2)))[0] == "RuntimeError"
    assert np.array_equal(x.conj().numpy(force=True), X.conj()) and np.array_equal(x.conj().imag.numpy(force=True), -X.imag)


def test_copies_and_files_of_conjugated_views_have_the_elements(tmp_path):
    x = tensor(gradus)
    for t in (x.conj(), x.conj().imag):
        gradus.save(t, tmp_path / "t.pt")
        for made in (copy.deepcopy(t), copy.copy(t), pickle.loads(pickle.dumps(t))):
            assert made.tolist() == t.tolist() and not made.is_conj() and not made.is_neg()
        loaded = gradus.load(tmp_path / "t.pt")
        assert loaded.tolist() == t.tolist() and loaded.is_conj() == t.is_conj() and loaded.is_neg() == t.is_neg()
        assert bytes(memoryview(t.untyped_storage())) == bytes(memoryview(x.untyped_storage()))
    y = gradus.zeros(2, 3, dtype=gradus.complex64)
    y.data = x.conj()
    assert y.is_conj() and y.tolist() == x.conj().tolist()


def test_files_of_conjugated_views_are_exchanged_with_pytorch(tmp_path):
    needs_torch()
    x = tensor(torch)
    for theirs, ours in ((x.conj(), tensor(gradus).conj()), (x.conj().imag, tensor(gradus).conj().imag)):
        torch.save(theirs, tmp_path / "theirs.pt")
        gradus.save(ours, tmp_path / "ours.pt")
        for loaded in (gradus.load(tmp_path / "theirs.pt"), torch.load(tmp_path / "ours.pt")):
            assert loaded.tolist() == theirs.tolist() and loaded.is_conj() == theirs.is_conj() and loaded.is_neg() == theirs.is_neg()


def test_printing_conjugated_views():
    needs_torch()
    assert without_tensors(str(tensor(gradus).conj())) == without_tensors(str(tensor(torch).conj()))
    assert str(tensor(gradus).conj().imag) == str(tensor(torch).conj().imag)
    assert tensor(gradus).conj()[0, 0].item() == 1 - 2j and f"{tensor(gradus).conj().imag[0, 0].item()}" == "-2.0"
