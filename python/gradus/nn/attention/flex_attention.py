"""flex_attention: attention with a function that modifies scores and a BlockMask that selects keys.

Blocks outside the mask are not computed. At most one row of blocks of the score matrix is in memory at a time.
"""
from __future__ import annotations

import math
from typing import NamedTuple, Optional

import gradus
from gradus import _C
from gradus._C import Tensor

from ._block_mask import BlockMask, and_masks, call_mod, create_block_mask, create_mask, noop_mask, or_masks

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask", "flex_attention", "noop_mask", "or_masks"]

_ROWS = 128  # number of queries whose scores are in memory at a time if there is a score_mod and no BlockMask


class FlexKernelOptions(dict):
    """Options of PyTorch's kernels. They are accepted and have no effect."""


class AuxRequest(NamedTuple):
    """The optional results that flex_attention is to return besides its output."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The optional results that an AuxRequest selected. Results that were not selected are None."""

    lse: Optional[Tensor] = None
    max_scores: Optional[Tensor] = None


def _check(query, key, value, enable_gqa):
    """Raises NotImplementedError unless query, key and value have four dimensions, ValueError if their last sizes or numbers of heads do not
    match."""
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.size(-1) != key.size(-1):
        raise ValueError(f"Expect query and key/value to have the same embedding dimension but got E={query.size(-1)} and E={key.size(-1)}.")
    heads, key_heads = query.size(1), key.size(1)
    if not enable_gqa and heads != key_heads:
        raise ValueError(f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={key_heads}. "
                         "Try setting enable_gqa=True for GQA.")
    if enable_gqa and (key_heads == 0 or heads % key_heads):
        raise ValueError(f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={key_heads}.")


def _check_block_mask(block_mask, query, key):
    """Raises ValueError if the BlockMask was created for other lengths than those of query and key."""
    lengths, given = (query.size(2), key.size(2)), block_mask.seq_lengths
    if tuple(given) == lengths:
        return
    start = f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={lengths[0]} and kv_len={lengths[1]}. "
    if given[0] >= lengths[0] and given[1] >= lengths[1]:
        raise ValueError(start + "As the block mask was created for a larger length than you're using it for, you can either 1. create a new block mask with the "
                         "correct length, or 2. 'adjust' the existing block mask to the correct length by calling block_mask._adjust(q_len, kv_len). This "
                         "essentially 'crops' the block mask to the upper left corner, which does not work for all mask_mods!")
    raise ValueError(start + "As the block mask was created for a smaller length than you're using it for, you likely need to create a new block mask.")


class _Parts(NamedTuple):
    """The operands of one flex_attention call. key and value have as many heads as query; with grouped queries their heads are repeated."""

    query: Tensor
    key: Tensor
    value: Tensor
    score_mod: Optional[object]
    mask_mod: Optional[object]
    scale: float


def _slices(columns, size, length):
    """Returns the ranges of keys [(first, past), ...] that the blocks in `columns` cover. Adjacent blocks are merged into one range.

    size: the number of keys in a block. length: the number of all keys. No range extends beyond it.
    """
    found = []
    for column in columns:
        first, past = column * size, min((column + 1) * size, length)
        if found and found[-1][1] == first:
            found[-1] = (found[-1][0], past)
        else:
            found.append((first, past))
    return found


def _chosen(x, slices):
    """Returns the elements of `x` along dimension 2 in the ranges `slices`: a view if there is one range, otherwise a copy."""
    parts = [x[:, :, first:past] for first, past in slices]
    return parts[0] if len(parts) == 1 else gradus.cat(parts, 2)


def _attend(parts, batches, heads, rows, slices):
    """Returns the output and the log-sum-exp of scores, for the queries in the slice `rows` and the keys in the ranges `slices`.

    batches and heads: slices along dimensions 0 and 1. parts.mask_mod is the function that hides keys, or None if no key in the ranges is hidden.
    """
    query = parts.query[batches, heads, rows]
    if not slices:
        sizes = query.shape[:-1]
        return query.new_zeros(*sizes, parts.value.size(-1)), gradus.full(sizes, -math.inf, dtype=_lse_dtype(query), device=query.device)
    key, value = (_chosen(x[batches, heads], slices) for x in (parts.key, parts.value))
    indices = None
    if parts.score_mod is not None or parts.mask_mod is not None:
        device = query.device
        indices = (gradus.arange(parts.query.size(0), device=device)[batches], gradus.arange(parts.query.size(1), device=device)[heads],
                   gradus.arange(parts.query.size(2), device=device)[rows], gradus.cat([gradus.arange(first, past, device=device) for first, past in slices]))
    mask = None if parts.mask_mod is None else call_mod(parts.mask_mod, *indices).to(gradus.bool)
    if parts.score_mod is None:
        return _C.nn._attention(query, key, value, None, mask, None, 0.0, False, parts.scale, query.size(-1) == value.size(-1))
    score = call_mod(parts.score_mod, *indices, score=_C.nn._attention_scores(query, key, None, None, False, parts.scale).to(_lse_dtype(query)))
    return _C._attention_of_scores(score, mask, value)


def _lse_dtype(query):
    """Returns the dtype of the log-sum-exp: float64 for float64 queries, otherwise float32."""
    return gradus.float64 if query.dtype == gradus.float64 else gradus.float32


def _columns(block_mask):
    """Returns nested lists indexed by [batch][head][row of blocks]. Each item is a pair: the list of column indices of the computed blocks, and True
    if mask_mod must be applied to some of these blocks."""
    dense = block_mask.to_dense().tolist()
    asks = block_mask.kv_num_blocks.tolist()
    return [[[([c for c, there in enumerate(row) if there], ask > 0) for row, ask in zip(rows, counts)] for rows, counts in zip(*head)]
            for head in zip(dense, asks)]


def _by_blocks(parts, block_mask):
    """Returns the output and the log-sum-exp of attention with a BlockMask.

    Each row of blocks is computed separately. All batches are computed together if the mask has batch size 1, and all heads if the mask has one head.
    """
    rows, columns = block_mask.BLOCK_SIZE
    length, keys = block_mask.seq_lengths
    plan = _columns(block_mask)
    batches = [slice(None)] if len(plan) == 1 else [slice(b, b + 1) for b in range(len(plan))]
    heads = [slice(None)] if len(plan[0]) == 1 else [slice(h, h + 1) for h in range(len(plan[0]))]
    whole = parts._replace(mask_mod=None)

    def of_head(b, h):
        made = [_attend(parts if asks else whole, batches[b], heads[h], slice(r * rows, min((r + 1) * rows, length)), _slices(chosen, columns, keys))
                for r, (chosen, asks) in enumerate(plan[b][h])]
        return [gradus.cat(piece, 2) for piece in zip(*made)]

    by_batch = [[gradus.cat(piece, 1) for piece in zip(*(of_head(b, h) for h in range(len(heads))))] for b in range(len(batches))]
    return [gradus.cat(piece, 0) for piece in zip(*by_batch)]


def _by_rows(parts):
    """Returns the output and the log-sum-exp of attention without a BlockMask. With a score_mod, only the scores of _ROWS queries are in memory at a
    time."""
    every = slice(None)
    if parts.score_mod is None:
        return _attend(parts, every, every, every, [(0, parts.key.size(2))])
    made = [_attend(parts, every, every, slice(first, first + _ROWS), [(0, parts.key.size(2))]) for first in range(0, parts.query.size(2), _ROWS)]
    return [gradus.cat(piece, 2) for piece in zip(*made)]


def flex_attention(query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False, return_lse=False, kernel_options=None, *, return_aux=None):
    """Returns softmax(score_mod(query @ key^T * scale)) @ value, (B, Hq, L, Ev), over the keys that block_mask selects.

    query (B, Hq, L, E), key (B, Hkv, S, E), value (B, Hkv, S, Ev). score_mod(score, b, h, q, kv) returns a changed score; it may use tensors that
    require gradients. block_mask: a BlockMask, or None for all keys. scale: 1 / sqrt(E) when None. enable_gqa: allows Hq to be a multiple of Hkv.
    return_lse: also returns the log-sum-exp of scores, (B, Hq, L). return_aux: an AuxRequest. If given, also returns an AuxOutput with the results
    that the AuxRequest selects. Raises ValueError for sizes that do not match.

    >>> x = gradus.randn(1, 2, 200, 8)
    >>> causal = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 200, 200)
    >>> tuple(flex_attention(x, x, x, score_mod=lambda score, b, h, q, kv: score - (q - kv), block_mask=causal).shape)
    (1, 2, 200, 8)
    """
    _check(query, key, value, enable_gqa)
    if return_aux is not None and return_aux.max_scores:
        raise NotImplementedError("Returning max scores is not supported on CPU/MPS.")
    if block_mask is not None:
        _check_block_mask(block_mask, query, key)
    if not query.is_floating_point():
        raise NotImplementedError(f"flex_attention is not implemented for {query.dtype}")
    batch, times = max(query.size(0), key.size(0)), query.size(1) // max(key.size(1), 1)
    query, key, value = (x.expand(batch, -1, -1, -1) for x in (query, key, value))
    if times > 1:
        key, value = (x.unsqueeze(2).expand(-1, -1, times, -1, -1).flatten(1, 2) for x in (key, value))
    scale = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    parts = _Parts(query, key, value, score_mod, None if block_mask is None else block_mask.mask_mod, scale)
    output, lse = _by_rows(parts) if block_mask is None else _by_blocks(parts, block_mask)
    if return_aux is not None:
        return output, AuxOutput(lse=lse if return_aux.lse else None)
    return (output, lse) if return_lse else output
