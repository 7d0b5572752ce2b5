"""Defines BlockMask, a mask for flex_attention that lists which blocks of the score matrix are computed, and functions that build masks."""
from __future__ import annotations

import inspect
import math

import gradus
from gradus import _C

_BLOCK = 128
_CHUNK = 1 << 24  # number of mask elements that are evaluated at a time; it bounds memory (2^24 bool elements are 16 MiB)


def noop_mask(batch, head, token_q, token_kv):
    """A mask function that is true for every query and key."""
    return batch.new_ones(size=(), dtype=gradus.bool, device=batch.device)


def _sliced_mask_mod_error(batch, head, token_q, token_kv):
    """The mask_mod of a BlockMask that was indexed. Raises RuntimeError, because the original function would receive the wrong indices."""
    raise RuntimeError("Cannot use mask_mod from a sliced BlockMask. When you slice a BlockMask using [], the mask_mod attribute is reset. You must set it from the "
                       "original BlockMask's mask_mod.")


def _check_callable(mask_mods):
    """Raises RuntimeError unless all arguments are callable."""
    if not all(callable(mod) for mod in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")


def and_masks(*mask_mods):
    """Returns a mask function that is true where all of the given mask functions are true."""
    _check_callable(mask_mods)

    def and_mask(b, h, q_idx, kv_idx):
        result = b.new_ones((), dtype=gradus.bool)
        for mod in mask_mods:
            result = result & mod(b, h, q_idx, kv_idx)
        return result
    return and_mask


def or_masks(*mask_mods):
    """Returns a mask function that is true where at least one of the given mask functions is true."""
    _check_callable(mask_mods)

    def or_mask(b, h, q_idx, kv_idx):
        result = b.new_zeros((), dtype=gradus.bool)
        for mod in mask_mods:
            result = result | mod(b, h, q_idx, kv_idx)
        return result
    return or_mask


def call_mod(mod, batches, heads, queries, keys, score=None):
    """Returns mod(b, h, q, kv), or mod(score, b, h, q, kv) if `score` is given, for all combinations of indices, as (B, H, L, S).

    batches, heads, queries, keys: 1-D index tensors of lengths B, H, L and S. score: (B, H, L, S). vmap maps `mod` over b, h and q only. Inside
    `mod`, kv and score are therefore 1-D tensors with one element for each key.
    """
    sizes = len(batches), len(heads), len(queries)
    b, h, q = (index.view([-1 if d == place else 1 for d in range(3)]).expand(sizes).reshape(-1) for place, index in enumerate((batches, heads, queries)))
    if score is None:
        rows = gradus.vmap(mod, in_dims=(0, 0, 0, None), randomness="different")(b, h, q, keys)
    else:
        rows = gradus.vmap(mod, in_dims=(0, 0, 0, 0, None), randomness="different")(score.reshape(-1, len(keys)), b, h, q, keys)
    if rows.dim() == 1:  # `mod` does not use the key index and returned one value per query
        rows = rows.unsqueeze(1)
    return rows.expand(-1, len(keys)).reshape(*sizes, len(keys))


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None):
    """Returns the bool mask (B, H, Q_LEN, KV_LEN) that `mod_fn` defines. `mod_fn` is a mask function of (b, h, q, kv) or a score function of (score,
    b, h, q, kv).

    For a score function the mask is False where the function turns a score of 0 into -inf, True elsewhere. B and H count as 1 if they are None.

    >>> create_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 3)
    tensor([[[[ True, False, False],
              [ True,  True, False]]]])
    """
    return _mask_rows(mod_fn, 1 if B is None else B, 1 if H is None else H, 0, Q_LEN, KV_LEN, device)


def _mask_rows(mod_fn, batch, heads, first, past, keys, device):
    """Returns the bool mask (batch, heads, past - first, keys) of a mask or score function, for queries `first` to `past` - 1."""
    indices = (gradus.arange(batch, device=device), gradus.arange(heads, device=device), gradus.arange(first, past, device=device), gradus.arange(keys, device=device))
    given = _positional(mod_fn)
    if given not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {given}")
    if given == 4:
        return call_mod(mod_fn, *indices).to(gradus.bool)
    score = call_mod(mod_fn, *indices, score=gradus.zeros(batch, heads, past - first, keys, device=device))
    return score != -math.inf


def _positional(function):
    """Returns the number of positional parameters without default values."""
    parameters = inspect.signature(function).parameters.values()
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters)


def _ceil_div(a, b):
    return -(-a // b)


def _ordered(dense):
    """Returns (counts, columns) for `dense` (..., rows, columns), which has a nonzero element for each block that is computed.

    counts: the number of nonzero elements in each row. columns: all column indices for each row; the indices of nonzero elements come first.
    """
    dense = dense.to(gradus.int32)
    return dense.sum(-1, dtype=gradus.int32), gradus.argsort(dense, dim=-1, descending=True, stable=True).to(gradus.int32)


def create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device=None, BLOCK_SIZE=_BLOCK, _compile=False, separate_full_blocks=True, compute_dq_write_order=False,
                      dq_kv_order=True):
    """Returns the BlockMask of the function mask_mod. mask_mod(b, h, q, kv) is true if query q may attend to key kv.

    B and H: None if the function does not depend on them. BLOCK_SIZE: the number of queries and of keys in a block, as one number or a pair (queries,
    keys).
    separate_full_blocks: if true, full_kv_indices lists the blocks in which the mask is true everywhere, and flex_attention does not call mask_mod
    for these blocks.

    >>> create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 256, 256).kv_num_blocks.tolist()
    [[[1, 1]]]
    """
    batch, heads = 1 if B is None else B, 1 if H is None else H
    rows, columns = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    chunk = max(1, _CHUNK // max(1, batch * heads * KV_LEN * rows)) * rows
    counts = []
    for first in range(0, Q_LEN, chunk):
        mask = _mask_rows(mask_mod, batch, heads, first, min(first + chunk, Q_LEN), KV_LEN, device)
        pad = gradus.nn.functional.pad(mask, (0, -KV_LEN % columns, 0, -mask.shape[2] % rows))
        blocks = pad.view(batch, heads, pad.shape[2] // rows, rows, pad.shape[3] // columns, columns)
        counts.append(blocks.sum(dim=(3, 5)))
    count = gradus.cat(counts, 2)
    partial, full = _C._blocks_by_count(count, rows * columns) if separate_full_blocks else (count > 0, None)
    full_blocks = (None, None) if full is None else _ordered(full)
    return BlockMask.from_kv_blocks(*_ordered(partial), *full_blocks, BLOCK_SIZE=(rows, columns), mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN))


class BlockMask:
    """A block-sparse attention mask. For each batch, head and row of blocks it lists the columns of the blocks that are computed.

    kv_num_blocks (B, H, rows): for each row, the number of blocks to which mask_mod is applied. kv_indices (B, H, rows, columns): the column indices
    of these blocks, followed by all other column indices. full_kv_num_blocks, full_kv_indices: None, or two tensors of the same form for the blocks
    in which the mask is true everywhere; mask_mod is not applied to them. q_num_blocks, q_indices, full_q_num_blocks, full_q_indices: the four
    tensors with rows and columns exchanged. BLOCK_SIZE: (queries, keys) in a block. Raises RuntimeError if kv_indices has less than two dimensions.
    """

    def __init__(self, seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, q_num_blocks, q_indices, full_q_num_blocks, full_q_indices,
                 BLOCK_SIZE=(_BLOCK, _BLOCK), mask_mod=noop_mask, *, dq_write_order=None, dq_write_order_full=None, dq_kv_order=None):
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        if (full_q_num_blocks is None) != (full_q_indices is None):
            raise AssertionError("full_q_num_blocks and full_q_indices must be both provided or omitted")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.dq_write_order, self.dq_write_order_full, self.dq_kv_order, self.dq_kv_order_spt = dq_write_order, dq_write_order_full, dq_kv_order, None
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(cls, kv_num_blocks, kv_indices, full_kv_num_blocks=None, full_kv_indices=None, BLOCK_SIZE=_BLOCK, mask_mod=None, seq_lengths=None,
                       compute_q_blocks=True, *, dq_write_order=None, dq_write_order_full=None, dq_kv_order=None):
        """Returns the BlockMask with the given lists of blocks for each row. Computes the lists of blocks for each column if compute_q_blocks is
        true.

        seq_lengths: the numbers of queries and keys. When None, they are the numbers of rows and columns of blocks times BLOCK_SIZE. Raises
        RuntimeError if kv_indices has less than two dimensions.
        """
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1]) if seq_lengths is None else seq_lengths
        by_column = [None] * 4
        if compute_q_blocks:
            by_column[:2] = _ordered(_C._dense_blocks(kv_num_blocks, kv_indices).transpose(-2, -1))
            if full_kv_num_blocks is not None:
                by_column[2:] = _ordered(_C._dense_blocks(full_kv_num_blocks, full_kv_indices).transpose(-2, -1))
        return cls(seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *by_column, BLOCK_SIZE=size,
                   mask_mod=noop_mask if mask_mod is None else mask_mod, dq_write_order=dq_write_order, dq_write_order_full=dq_write_order_full,
                   dq_kv_order=dq_kv_order)

    def _tensors(self):
        """Returns the eight tensors that list blocks (some may be None), in the order of the constructor's arguments."""
        return (self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices, self.q_num_blocks, self.q_indices, self.full_q_num_blocks,
                self.full_q_indices)

    def as_tuple(self, flatten=True):
        """Returns the mask's attributes as a tuple. If `flatten` is true, the two sequence lengths and the two block sizes are four separate items;
        otherwise each of the two pairs is one item."""
        sizes, lengths = (self.BLOCK_SIZE, self.seq_lengths) if flatten else ((self.BLOCK_SIZE,), (self.seq_lengths,))
        extra = self.dq_write_order, self.dq_write_order_full, self.dq_kv_order, self.dq_kv_order_spt
        return (*lengths, *self._tensors(), *extra, *sizes, self.mask_mod)

    @property
    def shape(self):
        """The shape (B, H, queries, keys) of the score matrix."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self):
        """Returns the number of elements of the score matrix."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    def sparsity(self):
        """Returns the percentage of scores that are not computed. The value can be negative, because blocks may extend beyond the score matrix."""
        blocks = self.kv_num_blocks.sum().item() + (0 if self.full_kv_num_blocks is None else self.full_kv_num_blocks.sum().item())
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self):
        """Returns an int32 tensor (B, H, rows, columns) with 1 for each block that is computed."""
        return _C._dense_blocks(*self._tensors()[:4])

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        index = tuple(slice(i % n, i % n + 1) if isinstance(i, int) else i for i, n in zip(index, self.kv_num_blocks.shape))
        rows = [None if t is None else t[index] for t in self._tensors()[:4]]
        return BlockMask.from_kv_blocks(*rows, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=_sliced_mask_mod_error, seq_lengths=self.seq_lengths,
                                        compute_q_blocks=self.q_indices is not None)

    def _adjust(self, new_q_len, new_kv_len):
        """Returns the mask for other numbers of queries and keys: cropped to its upper left corner, or extended by blocks that are not computed."""
        rows, columns = _ceil_div(new_q_len, self.BLOCK_SIZE[0]), _ceil_div(new_kv_len, self.BLOCK_SIZE[1])

        def cropped(counts, indices):
            dense = _C._dense_blocks(counts, indices)[..., :rows, :columns]
            return _ordered(gradus.nn.functional.pad(dense, (0, columns - dense.shape[-1], 0, rows - dense.shape[-2])))
        full = (None, None) if self.full_kv_indices is None else cropped(self.full_kv_num_blocks, self.full_kv_indices)
        return BlockMask.from_kv_blocks(*cropped(self.kv_num_blocks, self.kv_indices), *full, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod,
                                        seq_lengths=(new_q_len, new_kv_len), compute_q_blocks=self.q_indices is not None)

    def to(self, device):
        """Returns a copy of the mask with its tensors on `device`."""
        moved = [None if t is None else t.to(device) for t in self._tensors()]
        return BlockMask(self.seq_lengths, *moved, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod)

    def to_string(self, grid_size=(20, 20), limit=4):
        """Returns a string that draws the mask for up to `limit` batches and heads. A cell stands for one or more blocks and is drawn as computed,
        partly computed or empty.

        grid_size: the largest number of cells (rows, columns), or one number for both; -1 for one cell per block.
        """
        dense = self.to_dense()
        *outer, rows, columns = dense.shape
        height, width = (rows, columns) if grid_size == -1 else (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        row_step, column_step = max(1, _ceil_div(rows, height)), max(1, _ceil_div(columns, width))

        def cell(section):
            share = section.to(gradus.float32).mean().item()
            return "██" if share == 1 else "  " if share == 0 else "░░"
        pictures = []
        for place, matrix in enumerate(dense.reshape(-1, rows, columns)[:limit]):
            index = [0] * len(outer)
            for d in reversed(range(len(outer))):
                place, index[d] = divmod(place, outer[d])
            lines = ["".join(cell(matrix[r:r + row_step, c:c + column_step]) for c in range(0, columns, column_step)) for r in range(0, rows, row_step)]
            pictures.append("\n".join([str(tuple(index)), *lines, ""]))
        if dense.numel() > limit * rows * columns:
            pictures.append("...\nTo print out more, set BlockMask.to_string(limit=N)\nYou can also index (BlockMask[batch, head]) to choose a specific batch or head")
        return "\n".join(pictures)

    def __str__(self):
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self):
        names = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices")
        lines = [f"{name}={None if t is None else t.shape}" for name, t in zip(names, self._tensors())]
        lines += [f"BLOCK_SIZE={self.BLOCK_SIZE}", f"shape={self.shape}", f"sparsity={self.sparsity():.2f}%",
                  f"mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}"]
        return "BlockMask(\n" + ",\n".join("    " + line for line in lines) + "\n)"
