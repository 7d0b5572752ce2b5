"""Implements NestedTensor, which holds sequences of different lengths as one tensor.

The class is a subclass of Tensor and not a layout of the C library, because one of its sizes is not a number. Its elements are the values of all
sequences, one after another, so that gradients, hooks and kernels see an ordinary tensor. __torch_function__ passes every call with a nested tensor
to gradus.nested._functions, where the nested tensor is treated as the tensor of its values.
"""
import math

import gradus
from gradus import _utils
from gradus._C import DisableTorchFunctionSubclass, Tensor

from ._size import ragged_size

__all__ = ["Jagged", "NestedTensor", "nested"]


class Jagged:
    """Describes how a dimension is divided into sequences. Sequence b starts at row offsets[b] and has lengths[b] rows. If `lengths` is None,
    sequence b ends before row offsets[b + 1]."""

    __slots__ = ("offsets", "lengths", "size", "_shortest", "_longest", "_spans")

    def __init__(self, offsets, lengths=None, shortest=None, longest=None):
        if offsets.dim() != 1:
            raise AssertionError(f"offsets must be 1D, but got {offsets.dim()}D")
        if lengths is not None and lengths.shape[0] != offsets.shape[0] - 1:
            raise AssertionError(f"offsets and lengths batch sizes must match: offsets.shape[0] - 1 = {offsets.shape[0] - 1}, lengths.shape[0] = {lengths.shape[0]}")
        self.offsets, self.lengths, self._shortest, self._longest = offsets, lengths, shortest, longest
        self.size = ragged_size(offsets if lengths is None else lengths)
        self._spans = None

    def __len__(self):
        return self.offsets.shape[0] - 1

    @property
    def spans(self):
        """Returns a list with (first row, length) of every sequence."""
        if self._spans is None:
            starts = self.offsets.tolist()
            lengths = [end - start for start, end in zip(starts, starts[1:])] if self.lengths is None else self.lengths.tolist()
            self._spans = list(zip(starts, lengths))
        return self._spans

    @property
    def longest(self):
        if self._longest is None:
            self._longest = max((length for _, length in self.spans), default=0)
        return self._longest

    @property
    def shortest(self):
        if self._shortest is None:
            self._shortest = min((length for _, length in self.spans), default=0)
        return self._shortest

    def to(self, device):
        """Returns a Jagged on `device` with the same offsets and lengths."""
        if self.offsets.device == device:
            return self
        return Jagged(self.offsets.to(device), None if self.lengths is None else self.lengths.to(device), self._shortest, self._longest)


class NestedTensor(Tensor):
    """Sequences of different lengths as one tensor of layout gradus.jagged. nested_tensor() and other functions in gradus.nested create one.

    >>> nt = gradus.nested.nested_tensor([gradus.ones(2, 4), gradus.ones(3, 4)], layout=gradus.jagged)
    >>> nt.is_nested, nt.dim(), nt.values().shape, nt.sum().item()
    (True, 3, torch.Size([5, 4]), 20.0)
    """

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with DisableTorchFunctionSubclass():
            return _functions.call(func, args, kwargs or {})

    # ---- Values, offsets and lengths ---------------------------------------------------------------------------------------------

    def values(self):
        """Returns a view of the elements as an ordinary tensor, in which the sequences follow one another along the ragged dimension."""
        return self.as_subclass(Tensor)

    def offsets(self):
        """Returns an int tensor of B + 1 offsets for B sequences. offsets[b] is the first row of sequence b in values(). The last element,
        offsets[B], is the row after the last sequence."""
        return self._jagged.offsets

    def lengths(self):
        """Returns the tensor of sequence lengths if values() may have gaps between the sequences. Returns None if each sequence b
        ends where sequence b + 1 begins."""
        return self._jagged.lengths

    def _get_max_seqlen(self):
        return self._jagged.longest

    def _get_min_seqlen(self):
        return self._jagged.shortest

    # ---- Methods that do not call __torch_function__ ------------------------------------------------------------------------------

    def dim(self):
        """Returns the number of dimensions, including the batch dimension 0 and the ragged dimension."""
        return Tensor.dim(self) + 1

    ndimension = dim

    def numel(self):
        """Returns the number of elements of all sequences."""
        if self._jagged.lengths is None:
            return Tensor.numel(self)
        rows = sum(length for _, length in self._jagged.spans)
        return rows * math.prod(size for size in self.shape[1:] if isinstance(size, int))

    nelement = numel

    def __len__(self):
        return len(self._jagged)

    def view(self, *size):
        """Returns a view with other sizes. The sizes up to and including the ragged dimension must stay unchanged or be -1."""
        return self._reshaped(Tensor.view, *size)

    def reshape(self, *shape):
        """Returns a view with other sizes, or a copy if the strides do not allow a view. The sizes up to and including the ragged
        dimension must stay unchanged or be -1."""
        return self._reshaped(Tensor.reshape, *shape)

    def expand(self, *sizes):
        """Returns a view in which dimensions of size 1 after the ragged dimension are expanded. The sizes up to and including the
        ragged dimension must stay unchanged or be -1."""
        return self._reshaped(Tensor.expand, *sizes)

    def _reshaped(self, function, *sizes):
        with DisableTorchFunctionSubclass():
            return _functions.view(function, self, *sizes)

    def __reversed__(self):
        return reversed(self.unbind())

    def tolist(self):
        """Raises RuntimeError. Instead, call tolist() on each tensor that unbind() returns."""
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got NestedTensor")

    def numpy(self, *, force=False):
        """Raises RuntimeError. Call values().numpy() instead."""
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def to_padded_tensor(self, padding, output_size=None):
        """Returns gradus.nested.to_padded_tensor(self, padding, output_size)."""
        return _functions.to_padded_tensor(self, padding, output_size)

    def register_hook(self, hook):
        """Registers a hook that receives the gradient as a nested tensor. Returns the hook's handle."""
        jagged, ragged_idx = self._jagged, self._ragged_idx
        return Tensor.register_hook(self, lambda grad: hook(nested(grad, jagged, ragged_idx)))

    def __repr__(self, *, tensor_contents=None):
        history = f", grad_fn={self.grad_fn}" if self.grad_fn else ", requires_grad=True" if self.requires_grad else ""
        return f"NestedTensor(size={tuple(self.shape)}, offsets={self._jagged.offsets}{history}, contiguous={self.is_contiguous()})"

    # ---- Copies -------------------------------------------------------------------------------------------------------------------

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.")
        jagged = self._jagged
        copy = Jagged(jagged.offsets.clone(), None if jagged.lengths is None else jagged.lengths.clone(), jagged._shortest, jagged._longest)
        result = memo[id(self)] = nested(self.values().detach().clone(), copy, self._ragged_idx).requires_grad_(self.requires_grad)
        if self.grad is not None:
            result.grad = nested(self.grad.values().detach().clone(), copy, self._ragged_idx)
        return result

    def __reduce_ex__(self, protocol):
        facts = {"values": self.values().detach(), "offsets": self._jagged.offsets, "lengths": self._jagged.lengths, "_ragged_idx": self._ragged_idx,
                 "_metadata_cache": {}, "requires_grad": self.requires_grad}
        return _utils._rebuild_from_type_v2, (_rebuild_njt, NestedTensor, (facts,), {})


def nested(values, jagged, ragged_idx):
    """Changes the class of the tensor `values` to NestedTensor, in place, and returns `values`. The caller must hold the only reference to `values`.
    A nested tensor is returned unchanged."""
    if type(values) is Tensor:
        values.__class__ = NestedTensor
        values._jagged, values._ragged_idx = jagged, ragged_idx
    return values


def _rebuild_njt(facts):
    """Returns a nested tensor rebuilt from `facts`, the dict in which a pickle stores it. PyTorch stores nested tensors as dicts with the same
    keys."""
    nt = gradus.nested.nested_tensor_from_jagged(facts["values"], facts["offsets"], facts["lengths"], facts["_ragged_idx"])
    return nt.detach().requires_grad_(facts["requires_grad"])


from . import _functions  # noqa: E402  (it needs the class)
