"""Sequences of different lengths for recurrent networks: padded to one length, or packed into one tensor ordered by time step."""
from __future__ import annotations

from typing import NamedTuple

import gradus
from gradus import _C

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pad_packed_sequence", "pad_sequence", "unpad_sequence", "pack_sequence",
           "unpack_sequence"]


class PackedSequence_(NamedTuple):
    """The fields of a PackedSequence, as a named tuple."""

    data: gradus.Tensor
    batch_sizes: gradus.Tensor
    sorted_indices: gradus.Tensor | None
    unsorted_indices: gradus.Tensor | None


class PackedSequence(PackedSequence_):
    """Sequences packed by pack_padded_sequence or pack_sequence: `data` has the first steps of all sequences, then all second steps, and so on.

    batch_sizes: a tensor on the CPU; batch_sizes[t] is the number of sequences with more than t steps. sorted_indices: the permutation that sorts
    the sequences by decreasing length. unsorted_indices: the inverse of sorted_indices. Both index tensors are None if the sequences were sorted
    already.

    >>> nn.utils.rnn.pack_sequence([gradus.tensor([1, 2, 3]), gradus.tensor([4, 5])]).data
    tensor([1, 4, 2, 5, 3])
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        return super().__new__(cls, *_fields(data, batch_sizes, sorted_indices, unsorted_indices))

    def pin_memory(self):
        """Returns a copy whose data and indices are in pinned memory."""
        return type(self)(self.data.pin_memory(), self.batch_sizes, *(_of_both(self, lambda indices: indices.pin_memory())))

    def to(self, *args, **kwargs):
        """Returns a copy with data and indices on the given device. The dtype applies to data only. Returns self if data needs no conversion."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        options = {name: value for name, value in kwargs.items() if name not in ("device", "dtype")}
        return type(self)(data, self.batch_sizes, *_of_both(self, lambda indices: indices.to(data.device, **options)))

    def cuda(self, *args, **kwargs):
        """Returns a copy on the device cuda. Raises RuntimeError if there is no such device."""
        return self.to(*args, **{"device": "cuda", **kwargs}) if not args else self.to(*args, **kwargs)

    def cpu(self, *args, **kwargs):
        """Returns a copy on the device cpu."""
        return self.to(*args, **{"device": "cpu", **kwargs}) if not args else self.to(*args, **kwargs)

    def double(self):
        """Returns a copy whose data is float64."""
        return self.to(dtype=gradus.double)

    def float(self):
        """Returns a copy whose data is float32."""
        return self.to(dtype=gradus.float)

    def half(self):
        """Returns a copy whose data is float16."""
        return self.to(dtype=gradus.half)

    def long(self):
        """Returns a copy whose data is int64."""
        return self.to(dtype=gradus.long)

    def int(self):
        """Returns a copy whose data is int32."""
        return self.to(dtype=gradus.int)

    def short(self):
        """Returns a copy whose data is int16."""
        return self.to(dtype=gradus.short)

    def char(self):
        """Returns a copy whose data is int8."""
        return self.to(dtype=gradus.int8)

    def byte(self):
        """Returns a copy whose data is uint8."""
        return self.to(dtype=gradus.uint8)

    @property
    def is_cuda(self):
        return self.data.is_cuda

    def is_pinned(self):
        """Returns True if the data is in pinned memory."""
        return self.data.is_pinned()


def _of_both(sequence, function):
    """Returns [function(sorted_indices), function(unsorted_indices)] of a PackedSequence; None stays None."""
    return [None if indices is None else function(indices) for indices in (sequence.sorted_indices, sequence.unsorted_indices)]


def _fields(data, batch_sizes, sorted_indices, unsorted_indices):
    """Returns the four fields of a PackedSequence. If unsorted_indices is None, it is computed from sorted_indices.

    In the deprecated form `data` is the pair (data, batch_sizes). Raises ValueError if batch_sizes is not on the CPU.
    """
    if unsorted_indices is None:
        unsorted_indices = invert_permutation(sorted_indices)
    if batch_sizes is None:
        if not isinstance(data, (list, tuple)) or len(data) != 2:
            raise AssertionError("Expected data to be a list or tuple of length 2")
        data, batch_sizes = data
    elif batch_sizes.device.type != "cpu":
        raise ValueError(f"batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. They should be "
                         f"instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn. Got batch_sizes on {batch_sizes.device}")
    return data, batch_sizes, sorted_indices, unsorted_indices


def invert_permutation(permutation):
    """Returns the inverse of a permutation, or None if `permutation` is None.

    >>> nn.utils.rnn.invert_permutation(gradus.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    order = gradus.arange(0, permutation.numel(), device=permutation.device)
    return gradus.empty_like(permutation).scatter_(0, permutation, order)


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Returns the PackedSequence of padded sequences (steps, sequences, ...), or (sequences, steps, ...) if batch_first.

    lengths: the number of steps of each sequence, without padding. enforce_sorted: requires sequences in order of decreasing length; if false, they
    are sorted first.

    >>> nn.utils.rnn.pack_padded_sequence(gradus.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True).data
    tensor([1, 3, 2])
    """
    lengths = lengths.to(dtype=gradus.int64) if isinstance(lengths, gradus.Tensor) else gradus.as_tensor(lengths, dtype=gradus.int64, device="cpu")
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = gradus.sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    data, batch_sizes = gradus._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, sorted_indices)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """Returns (padded sequences, lengths), in the order of the sequences before packing. Inverts pack_padded_sequence.

    total_length: the length to pad to; the length of the longest sequence when None. Raises ValueError if total_length is less than the longest
    sequence's length.

    >>> nn.utils.rnn.pad_packed_sequence(nn.utils.rnn.pack_sequence([gradus.tensor([1, 2]), gradus.tensor([3])]), batch_first=True)
    (tensor([[1, 2],
            [3, 0]]), tensor([2, 1]))
    """
    longest = sequence.batch_sizes.size(0)
    if total_length is not None and total_length < longest:
        raise ValueError(f"Expected total_length to be at least the length of the longest sequence in input, but got total_length={total_length} and max "
                         f"sequence length being {longest}")
    padded, lengths = gradus._pad_packed_sequence(sequence.data, sequence.batch_sizes, batch_first, padding_value, total_length or longest)
    unsorted_indices = sequence.unsorted_indices
    if unsorted_indices is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, unsorted_indices), lengths[unsorted_indices.cpu()]


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Returns sequences (steps, ...) of different lengths as one tensor (steps, sequences, ...), or (sequences, steps, ...) if batch_first.

    padding_side: "right" or "left", the end at which padding_value is added. Raises RuntimeError if `sequences` is not iterable.

    >>> nn.utils.rnn.pad_sequence([gradus.tensor([1, 2, 3]), gradus.tensor([4])], batch_first=True, padding_side="left")
    tensor([[1, 2, 3],
            [0, 0, 4]])
    """
    if not isinstance(sequences, (list, tuple)):
        try:
            sequences = tuple(sequences)
        except TypeError:
            raise RuntimeError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}") from None
    return _C.nn.pad_sequence(sequences, batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """Returns the list of sequences that pad_sequence padded. lengths: the number of steps of each sequence.

    >>> nn.utils.rnn.unpad_sequence(gradus.tensor([[1, 2], [3, 0]]), gradus.tensor([2, 1]), batch_first=True)
    [tensor([1, 2]), tensor([3])]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    steps = gradus.arange(padded_sequences.shape[1], device=lengths.device)
    return [sequence[steps < length] for sequence, length in zip(padded_sequences, lengths)]


def pack_sequence(sequences, enforce_sorted=True):
    """Returns the PackedSequence of a list of sequences (steps, ...).

    enforce_sorted: requires sequences in order of decreasing length; if false, they are sorted first.

    >>> nn.utils.rnn.pack_sequence([gradus.tensor([1]), gradus.tensor([2, 3])], enforce_sorted=False).sorted_indices
    tensor([1, 0])
    """
    lengths = gradus.as_tensor([sequence.size(0) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """Returns the list of sequences that pack_sequence packed.

    >>> nn.utils.rnn.unpack_sequence(nn.utils.rnn.pack_sequence([gradus.tensor([1, 2]), gradus.tensor([3])]))
    [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
