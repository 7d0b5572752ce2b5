"""Checks that values, gradients, order, texts and errors of padded and packed sequences (nn.utils.rnn), and of ctc_loss over them, are PyTorch's."""
import random

import numpy
import pytest

import gradus
from beside_torch import check
from oracle import needs_torch, torch

X = "P = torch.nn.utils.rnn; T = torch.tensor; A = torch.arange(24.0).view(4, 3, 2); S = [T([1.0, 2.0]), T([3.0, 4.0, 5.0]), T([6.0])]; "


@pytest.mark.parametrize("expression", [
    "P.pack_padded_sequence(A, [4, 2, 1])", "P.pack_padded_sequence(A, (3, 2, 2, 1), True)", "P.pack_padded_sequence(A, T([1, 2, 4]), enforce_sorted=False)", "P.pack_padded_sequence(A, T([4.0, 2, 1]))",
    "P.pack_padded_sequence(A, T([2, 2, 2], dtype=torch.int32))", "P.pack_padded_sequence(A, T([1, 2, 4]))", "P.pack_padded_sequence(A, [4, 2, 0])", "P.pack_padded_sequence(A, [4, 2])",
    "P.pack_padded_sequence(A, 4)", "P.pack_padded_sequence(A[:0], [4, 2, 1])", "P.pack_padded_sequence(A[:, 0, 0], [4])", "torch._pack_padded_sequence(A, T([4, 2, 1]).int(), False)",
    "P.pad_packed_sequence(P.pack_padded_sequence(A, [4, 2, 1]), True, -1.0, 6)", "P.pad_packed_sequence(P.pack_padded_sequence(A, [1, 3, 2], enforce_sorted=False))",
    "P.pad_packed_sequence(P.pack_padded_sequence(A, [4, 2, 1]), total_length=2)", "P.pad_packed_sequence(P.pack_padded_sequence(A.long(), [4, 2, 1]), padding_value=0.5)",
    "P.pad_packed_sequence(P.pack_padded_sequence(A, [4, 2, 1]), True)[0].stride()", "torch._pad_packed_sequence(A, T([2, 2]).int(), False, 0, 0)", "torch._pad_packed_sequence(A, T([[2, 2]]), False, 0, 0)",
    "torch._pad_packed_sequence(A, T([]).long(), False, 0, 0)",
    "P.pad_sequence(S)", "P.pad_sequence(S, True, float('nan'), 'left')", "P.pad_sequence(tuple(S)).stride()", "P.pad_sequence(S, True).stride()", "P.pad_sequence(s for s in S)", "P.pad_sequence(A[:2, :, 0])",
    "P.pad_sequence([])", "P.pad_sequence(3)", "P.pad_sequence(S, padding_side='x')", "P.pad_sequence([A, A[:, :2]])", "P.pad_sequence([T([1]), T([2.5, 3.5])])", "P.pad_sequence([[1, 2]])",
    "P.unpad_sequence(A, T([4, 1, 2]))", "P.unpad_sequence(A, T([3, 1, 2, 1]), True)", "P.pack_sequence(S)", "P.pack_sequence(S, enforce_sorted=False)", "P.pack_sequence([])",
    "P.unpack_sequence(P.pack_sequence(S, False))", "P.invert_permutation(None)", "P.invert_permutation(T([2, 0, 1]))", "P.PackedSequence(A)", "P.PackedSequence((A, T([2, 2])))", "P.PackedSequence(A, T([2, 2]), T([1, 0]))",
    "p = P.pack_sequence(S, False); p.to(torch.float32) is p", "P.pack_sequence(S, False).double()", "P.pack_sequence(S, False).long().data", "P.pack_sequence(S, False).half().data.dtype", "P.pack_sequence(S, False).is_cuda",
    "P.pack_sequence(S, False).to('cpu', torch.int64)", "P.pack_sequence(S, False).byte().data.dtype, P.pack_sequence(S, False).char().data.dtype, P.pack_sequence(S, False).short().data.dtype",
    "P.PackedSequence._fields", "P.pack_sequence(S, False).cpu().int().data", "data, *rest = P.pack_sequence(S, False); data"])
def test_repr_and_errors_of_packing_functions(expression):
    check(X + expression)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("first", [False, True])
def test_recurrent_networks_on_packed_sequences(name, first):
    needs_torch()

    def run(t):
        t.manual_seed(2)
        network, x, utils = getattr(t.nn, name)(3, 4, 2, bidirectional=True, batch_first=first), t.randn(5, 5, 3, requires_grad=True), t.nn.utils.rnn
        packed, state = network(utils.pack_padded_sequence(x, [3, 5, 1, 1, 4], batch_first=first, enforce_sorted=False))
        padded, lengths = utils.pad_packed_sequence(packed, batch_first=first, padding_value=2.0, total_length=7)
        again, _ = network(packed._replace(data=x.reshape(-1, 3)[:14]), state)
        found = [padded, again.data, *(state if isinstance(state, tuple) else [state])]
        sum((f * f).sum() for f in found).backward()
        return [lengths.numpy(), x.grad.numpy(), *(f.detach().numpy() for f in found), *(p.grad.numpy() for p in network.parameters())]

    for mine, wanted in zip(run(gradus), run(torch), strict=True):
        numpy.testing.assert_allclose(mine, wanted, rtol=1e-4, atol=1e-5)


# ---- ctc_loss -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_ctc_loss(seed):
    needs_torch()
    draw, numbers = random.Random(seed), numpy.random.default_rng(seed)
    steps, rows, classes, most = draw.randint(1, 12), draw.randint(1, 5), draw.randint(2, 6), draw.randint(0, 5)
    blank, unbatched = draw.randrange(classes), rows == 1 and draw.random() < 0.5
    target_lengths = [draw.randint(0, most) for _ in range(rows)]
    input_lengths = [draw.randint(0, steps) for _ in range(rows)]
    labels = numpy.array([label for label in range(classes) if label != blank])[numbers.integers(0, classes - 1, (rows, max(1, most)))]
    if draw.random() < 0.5:
        labels = numpy.concatenate([row[:n] for row, n in zip(labels, target_lengths)])
    scores = numbers.normal(0, 2, (steps, rows, classes))
    options = {"blank": blank, "reduction": draw.choice(["none", "mean", "sum"]), "zero_infinity": draw.random() < 0.7}
    as_tensors, dtype = draw.random() < 0.5, draw.choice(["float64", "float32"])

    def run(t):
        x = t.tensor(scores[:, 0] if unbatched else scores, dtype=getattr(t, dtype), requires_grad=True)
        lengths = [t.tensor(n) if as_tensors else n for n in (input_lengths, target_lengths)]
        loss = t.nn.CTCLoss(**options)(x.log_softmax(-1), t.tensor(labels), *lengths)
        (loss * t.arange(1, 1 + loss.numel(), dtype=loss.dtype).view(loss.shape)).sum().backward()
        return loss.detach().numpy(), x.grad.numpy()

    for mine, wanted in zip(run(gradus), run(torch), strict=True):
        assert mine.shape == wanted.shape and mine.dtype == wanted.dtype
        numpy.testing.assert_allclose(mine, wanted, rtol=1e-9 if dtype == "float64" else 2e-4, atol=1e-9 if dtype == "float64" else 2e-5)


C = "F = torch.nn.functional; T = torch.tensor; x = torch.arange(90.0).view(6, 3, 5).sin().log_softmax(-1); y = T([[1, 2], [3, 3], [4, 0]]); i, n = [6, 6, 5], [2, 2, 1]; "


@pytest.mark.parametrize("expression", [
    "F.ctc_loss(x, y, i, n)", "F.ctc_loss(x, y, T(i), T(n).int())", "F.ctc_loss(x, y.float(), i, n)", "F.ctc_loss(x, y.int(), tuple(i), n, reduction='none')", "F.ctc_loss(x, T([1, 2, 3, 3, 4]), i, n, 0, 'sum', True)",
    "F.ctc_loss(x, y, T(i).float(), T(n))", "F.ctc_loss(x, y, i, n, blank=5)", "F.ctc_loss(x, y, i, n, blank=-1)", "F.ctc_loss(x, y, i[:2], n)", "F.ctc_loss(x, y, i, n[:2])", "F.ctc_loss(x, y, [7, 6, 6], n)",
    "F.ctc_loss(x, y, [6, -1, 6], n)", "F.ctc_loss(x, y, i, [3, 2, 1])", "F.ctc_loss(x, y, i, [-1, 2, 1])", "F.ctc_loss(x.half(), y, i, n)", "F.ctc_loss(x, y[0], i, n)", "F.ctc_loss(x, y[None], i, n)",
    "F.ctc_loss(x, y[:2], i, n)", "F.ctc_loss(x[:, 0], y[0], T(6), T(2), reduction='none')", "F.ctc_loss(x[:, 0], y[0], [6], [2])", "F.ctc_loss(x, y, [1, 1, 1], n, reduction='none', zero_infinity=True)",
    "F.ctc_loss(x, y, [0, 0, 0], [0, 0, 1], reduction='none')", "F.ctc_loss(x[:, :0], y[:0], [], [])", "torch.nn.CTCLoss(reduction='sum')(x, y, T(i), T(n))", "torch.nn.CTCLoss(1, 'sum', True)",
    "F.ctc_loss(x.requires_grad_(), y, i, n, reduction='none').grad_fn"])
def test_results_and_errors_of_ctc_loss(expression):
    check(C + expression)


@pytest.mark.parametrize("library", [gradus, torch], ids=["gradus", "torch"])
def test_ctc_loss_has_no_second_derivative(library):
    needs_torch()
    x = library.zeros(4, 1, 3, requires_grad=True)
    loss = library.nn.functional.ctc_loss(x.log_softmax(-1), library.tensor([[1]]), [4], [1])
    slope, = library.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(RuntimeError, match="derivative for aten::_?ctc_loss_backward is not implemented"):
        library.autograd.grad(slope.sum(), x)


def test_ctc_loss_refuses_labels_out_of_range():
    x = gradus.zeros(4, 1, 3).log_softmax(-1)
    with pytest.raises(IndexError, match="Target 7 is out of bounds."):
        gradus.nn.functional.ctc_loss(x, gradus.tensor([[7]]), [4], [1])
    assert gradus.nn.functional.ctc_loss(x, gradus.tensor([[1, 7]]), [4], [1]).isfinite()


def test_vmap_of_ctc_loss():
    x, y = gradus.randn(3, 6, 2, 4).log_softmax(-1), gradus.tensor([[1, 2], [3, 1]])
    losses = gradus.vmap(lambda x: gradus.nn.functional.ctc_loss(x, y, [6, 6], [2, 2]))(x)
    gradus.testing.assert_close(losses, gradus.stack([gradus.nn.functional.ctc_loss(one, y, [6, 6], [2, 2]) for one in x]))
