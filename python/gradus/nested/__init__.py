"""Nested tensors, which hold sequences of different lengths as one tensor of layout gradus.jagged.

    >>> import gradus as torch
    >>> nt = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)], layout=torch.jagged)
    >>> nt.values().shape, nt.offsets()
    (torch.Size([5, 4]), tensor([0, 2, 5]))
    >>> torch.nn.functional.linear(nt, torch.ones(6, 4)).to_padded_tensor(0.0).shape
    torch.Size([2, 3, 6])

PyTorch's default layout for nested tensors, strided, is not supported, so pass layout=torch.jagged.
"""
import gradus
from gradus._C import Tensor

from . import _functions
from ._tensor import Jagged, NestedTensor, nested

__all__ = ["as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged", "to_padded_tensor"]


def _check_layout(function, layout):
    if layout is None or layout is gradus.strided:
        raise NotImplementedError(f"{function}(): only layout=torch.jagged is supported, not the default, torch.strided")
    if layout is not gradus.jagged:
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")


def _from_list(tensors, dtype, device):
    """Returns a nested tensor whose sequences are copies of the given tensors. RuntimeError: the list is empty, or dtypes, devices or numbers of
    dimensions differ."""
    if not tensors:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    for what, facts in (("have the same dtype", {t.dtype for t in tensors}), ("be on the same device", {t.device for t in tensors}), ("have the same dim", {t.dim() for t in tensors})):
        if len(facts) > 1:
            raise RuntimeError(f"When constructing a nested tensor, all tensors in list must {what}")
    if tensors[0].dim() == 0:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    ragged = [d for d, sizes in enumerate(zip(*(t.shape for t in tensors))) if len(set(sizes)) > 1] or [0]
    if len(ragged) > 1:
        raise RuntimeError("Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout only allows for a single ragged "
                           "dimension. For example: (B, *, D_0, D_1, ..., D_N), with ragged * dim.")
    lengths = [t.shape[ragged[0]] for t in tensors]
    values = gradus.cat(tensors, ragged[0]).to(device=device, dtype=dtype)
    offsets = gradus.tensor([0, *lengths], device=values.device).cumsum(0)
    return nested(values, Jagged(offsets, None, min(lengths), max(lengths)), ragged[0] + 1)


def nested_tensor(tensor_list, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Returns a new nested tensor, a leaf. Each of its sequences is a copy of one of the given tensors. The tensors must have equal dtypes and
    numbers of dimensions, and their sizes may differ in at most one dimension.

    Items that are not tensors are converted. NotImplementedError: `layout` is missing or torch.strided; it must be torch.jagged. RuntimeError: the
    list is empty, or the tensors break these rules.

    >>> gradus.nested.nested_tensor([gradus.ones(1), gradus.ones(2)], layout=gradus.jagged).offsets()
    tensor([0, 1, 3])
    """
    _check_layout("nested_tensor", layout)
    with gradus.no_grad():
        nt = _from_list([t if isinstance(t, Tensor) else gradus.as_tensor(t) for t in tensor_list], dtype, device)
    return nt.requires_grad_(requires_grad)


def as_nested_tensor(ts, dtype=None, device=None, layout=None):
    """Returns a nested tensor with the autograd history of `ts`. `ts` is a list of tensors, which are copied, or a tensor of shape (B, L, ...), which
    becomes B sequences of equal length.

    If `ts` is a nested tensor it is only converted to `dtype` and `device`. TypeError: `ts` is anything else. RuntimeError: the list is empty, or its
    tensors cannot form a nested tensor (see nested_tensor). NotImplementedError: `layout` is missing or torch.strided.

    >>> a, b = gradus.ones(2, requires_grad=True), gradus.ones(3, requires_grad=True)
    >>> (gradus.nested.as_nested_tensor([a, b], layout=gradus.jagged) * 2).sum().backward()
    >>> a.grad
    tensor([2., 2.])
    """
    is_list = isinstance(ts, (list, tuple)) and all(isinstance(t, Tensor) for t in ts)
    if not isinstance(ts, Tensor) and not is_list:
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors ")
    if not is_list and ts.dim() < 2:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    if not is_list and ts.is_nested:
        if layout is not gradus.jagged:
            raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
        return ts.to(device=device, dtype=dtype)
    _check_layout("as_nested_tensor", layout)
    if is_list:
        return _from_list(list(ts), dtype, device)
    values = ts.contiguous().flatten(0, 1).to(device=device, dtype=dtype)
    sequences, length = ts.shape[:2]
    offsets = gradus.arange(sequences + 1, device=values.device) * length
    return nested(values, Jagged(offsets, None, length, length), 1)


def nested_tensor_from_jagged(values, offsets=None, lengths=None, jagged_dim=None, min_seqlen=None, max_seqlen=None):
    """Returns a view of `values` as a nested tensor. Sequence b is values[offsets[b]:offsets[b + 1]] along dimension jagged_dim - 1 of `values`.

    `offsets` defaults to the cumulative sums of `lengths`, starting with 0. If both are given, sequence b consists of lengths[b] rows from row
    offsets[b], and some rows may belong to no sequence. `jagged_dim` is the ragged dimension of the result and defaults to 1. `min_seqlen` and
    `max_seqlen` are the smallest and largest length, if known. RuntimeError: neither offsets nor lengths are given. AssertionError: `offsets` is not
    a vector, the number of lengths is wrong, or devices differ. ValueError: jagged_dim < 1.

    >>> nt = gradus.nested.nested_tensor_from_jagged(gradus.arange(6.0), gradus.tensor([0, 2, 6]))
    >>> [t.tolist() for t in nt.unbind()]
    [[0.0, 1.0], [2.0, 3.0, 4.0, 5.0]]
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets, lengths = gradus.nn.functional.pad(lengths.cumsum(0), (1, 0)), None
    if jagged_dim is None:
        jagged_dim = 1
    elif jagged_dim < 1:
        raise ValueError(f"Expected jagged_dim >=1, but got {jagged_dim}.")
    if isinstance(values, NestedTensor):
        raise AssertionError("values must not be a NestedTensor")
    if values.device != offsets.device:
        raise AssertionError(f"values and offsets must be on the same device, but got values.device={values.device} and offsets.device={offsets.device}")
    if jagged_dim > values.dim():
        raise IndexError(f"Dimension out of range (expected to be in range of [1, {values.dim()}], but got {jagged_dim})")
    return nested(values.as_subclass(Tensor), Jagged(offsets, lengths, min_seqlen, max_seqlen), jagged_dim)


def narrow(tensor, dim, start, length, layout=gradus.strided):
    """Returns a nested tensor that is a view of `tensor`. Sequence b is tensor[b, start[b]:start[b] + length[b]].

    `tensor` has the shape (B, L, ...). `dim` must be 1, and `layout` must be gradus.jagged. `start` and `length` are ints, or tensors that broadcast
    to the size (B). RuntimeError: `dim` is not 1, or `start` or `length` has another type or does not broadcast.

    >>> nt = gradus.nested.narrow(gradus.arange(8.0).reshape(2, 4), 1, gradus.tensor([0, 1]), gradus.tensor([1, 3]), layout=gradus.jagged)
    >>> [t.tolist() for t in nt.unbind()]
    [[0.0], [5.0, 6.0, 7.0]]
    """
    for name, value in (("start", start), ("length", length)):
        if not isinstance(value, (int, Tensor)):
            raise RuntimeError(f"{name} must be an integer or a tensor")
    _check_layout("narrow", layout)
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    if tensor.dim() < 2:
        raise AssertionError("tensor must at least be 2D for the nested narrow op to work")
    sequences, rows = tensor.shape[:2]
    try:
        starts, lengths = (gradus.as_tensor(t, device=tensor.device).reshape(-1).expand(sequences) for t in (start, length))
    except RuntimeError:
        raise RuntimeError("When constructing a jagged nested tensor using narrow(), your start and length must be Tensors that broadcast to input.shape[0]") from None
    starts = starts + gradus.arange(sequences, device=tensor.device) * rows
    return nested(tensor.view(-1, *tensor.shape[2:]), Jagged(gradus.cat([starts, starts[-1:] + lengths[-1:]]), lengths), 1)


def masked_select(tensor, mask):
    """Returns a nested tensor with one sequence for each row of `tensor` along its last dimension. The sequence contains the elements of the row
    where `mask` is True. `mask` must be broadcastable to the shape of `tensor`.

    >>> nt = gradus.nested.masked_select(gradus.tensor([[1, 2], [3, 4]]), gradus.tensor([[True, False], [True, True]]))
    >>> [t.tolist() for t in nt.unbind()]
    [[1], [3, 4]]
    """
    lengths = mask.expand(tensor.shape).sum(tensor.dim() - 1).view(-1)
    return nested_tensor_from_jagged(tensor.masked_select(mask), lengths=lengths)


def to_padded_tensor(input, padding, output_size=None, out=None):
    """Returns the sequences of a nested tensor as an ordinary tensor, padded with `padding` to the length of the longest sequence.

    `output_size` gives the sizes of the result. Only the size of the ragged dimension may differ from the default. Sequences longer than this size
    are truncated. RuntimeError: another size differs, or the `lengths` of the nested tensor leave gaps between sequences. NotImplementedError:
    `input` is not nested, or `out` is given.

    >>> nt = gradus.nested.nested_tensor([gradus.ones(1), gradus.ones(2)], layout=gradus.jagged)
    >>> gradus.nested.to_padded_tensor(nt, -1.0)
    tensor([[ 1., -1.],
            [ 1.,  1.]])
    """
    if out is not None:
        raise NotImplementedError("to_padded_tensor(): out= is not supported")
    if not input.is_nested:
        raise NotImplementedError("to_padded_tensor(): only nested tensors can be padded")
    return input.to_padded_tensor(padding, output_size)
