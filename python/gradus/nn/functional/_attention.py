"""Attention."""
from __future__ import annotations

import math

import gradus
from gradus._C.nn import dropout

from ._arguments import require

__all__ = ["scaled_dot_product_attention"]


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """softmax(query @ key^T * scale + mask) @ value over the last two dimensions, with dropout of the weights.

    query (…, L, E), key (…, S, E), value (…, S, V) give (…, L, V). attn_mask: broadcasts to (…, L, S); bool, true where a position may be
    looked at, or numbers that are added. is_causal: position i looks at positions up to i. scale: 1 / sqrt(E) when None. enable_gqa: query
    has a multiple of the heads (dimension -3) of key and value, which are repeated. RuntimeError: attn_mask and is_causal together.

    >>> q = gradus.randn(2, 5, 8)
    >>> tuple(F.scaled_dot_product_attention(q, q, q, is_causal=True).shape)
    (2, 5, 8)
    """
    name = "scaled_dot_product_attention"
    require(name, "Tensor", query=query, key=key, value=value, **({} if attn_mask is None else {"attn_mask": attn_mask}))
    require(name, "float", dropout_p=dropout_p, **({} if scale is None else {"scale": scale}))
    require(name, "bool", is_causal=is_causal, enable_gqa=enable_gqa)
    if min(query.dim(), key.dim(), value.dim()) < 2:
        raise RuntimeError(f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {query.dim()} key.dim: {key.dim()} and "
                           f"value.dim: {value.dim()} instead.")
    if is_causal and attn_mask is not None:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if enable_gqa:
        repeats = query.size(-3) // key.size(-3)
        key, value = (tensor.unsqueeze(-3).expand(*tensor.shape[:-2], repeats, *tensor.shape[-2:]).flatten(-4, -3) for tensor in (key, value))
    scale = 1 / math.sqrt(query.size(-1)) if scale is None else float(scale)
    root = math.sqrt(abs(scale))
    scores = (query * root) @ (key * math.copysign(root, scale)).transpose(-2, -1)
    if is_causal:
        attn_mask = gradus.ones(query.size(-2), key.size(-2), dtype=gradus.bool, device=query.device).tril()
    if attn_mask is not None:
        scores = scores.masked_fill(attn_mask.logical_not(), -math.inf) if attn_mask.dtype == gradus.bool else scores + attn_mask
    weights = scores.softmax(-1)
    if attn_mask is not None:
        weights = weights.masked_fill((scores == -math.inf).all(-1, keepdim=True), 0)  # a row that may look at nothing
    return dropout(weights, dropout_p) @ value
