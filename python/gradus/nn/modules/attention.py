"""MultiheadAttention."""
from __future__ import annotations

import math

import gradus

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention of num_heads heads: each is scaled_dot_product_attention of its own projections, and a last Linear joins them.

    embed_dim: the width of queries and of the result, a multiple of num_heads. dropout: of the weights, while training. add_bias_kv: one more
    key and value that are learned; add_zero_attn: one more of zeros. kdim and vdim: the widths of keys and values, embed_dim when None.

    query (L, N, E), key (S, N, kdim), value (S, N, vdim) give (L, N, E); N comes first with batch_first, and may be left out. The result is a
    pair: the second are the weights (N, L, S), or (N, num_heads, L, S) without average_attn_weights, or None without need_weights.

    key_padding_mask (N, S) and attn_mask (L, S) or (N * num_heads, L, S): bool, true where a position must not be looked at, or numbers that
    are added to the scores. is_causal says that attn_mask is the causal one, which may then go unread.

    >>> attention = nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = gradus.randn(3, 5, 8)
    >>> result, weights = attention(x, x, x)
    >>> tuple(result.shape), tuple(weights.shape)
    ((3, 5, 8), (3, 5, 5))
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
                 add_zero_attn: bool = False, kdim=None, vdim=None, batch_first: bool = False, device=None, dtype=None):
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead")
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self.add_zero_attn = add_zero_attn

        def parameter(wanted, *sizes):
            return Parameter(gradus.empty(sizes, device=device, dtype=dtype)) if wanted else None

        same = self._qkv_same_embed_dim
        self.register_parameter("q_proj_weight", parameter(not same, embed_dim, embed_dim))
        self.register_parameter("k_proj_weight", parameter(not same, embed_dim, self.kdim))
        self.register_parameter("v_proj_weight", parameter(not same, embed_dim, self.vdim))
        self.register_parameter("in_proj_weight", parameter(same, 3 * embed_dim, embed_dim))
        self.register_parameter("in_proj_bias", parameter(bias, 3 * embed_dim))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.register_parameter("bias_k", parameter(add_bias_kv, 1, 1, embed_dim))
        self.register_parameter("bias_v", parameter(add_bias_kv, 1, 1, embed_dim))
        self._reset_parameters()

    def _reset_parameters(self):
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True, is_causal=False):
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
                               "`generate_square_subsequent_mask` to create this mask.")
        if query.dim() not in (2, 3):
            raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor")
        batched = query.dim() == 3
        if key.dim() != query.dim() or value.dim() != query.dim():
            raise AssertionError(f"For {'batched (3-D)' if batched else 'unbatched (2-D)'} `query`, expected `key` and `value` to be "
                                 f"{query.dim()}-D but found {key.dim()}-D and {value.dim()}-D tensors respectively")
        if not batched:
            query, key, value = query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0)
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1)
        if query.shape[-1] != self.embed_dim:
            raise AssertionError(f"was expecting embedding dimension of {self.embed_dim}, but got {query.shape[-1]}")
        q, k, v = (self._heads(x) for x in self._extended(*self._projected(query, key, value)))
        mask = self._mask(key_padding_mask, attn_mask, query, key.shape[1], k.shape[2], batched)

        dropout = self.dropout if self.training else 0.0
        if need_weights:
            scores = (q * math.sqrt(1.0 / self.head_dim)) @ k.transpose(-2, -1)
            weights = F.dropout((scores if mask is None else scores + mask).softmax(-1), dropout)
            heads = weights @ v
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            by_rule = is_causal and key_padding_mask is None
            heads = F.scaled_dot_product_attention(q, k, v, None if by_rule else mask, dropout, is_causal=by_rule)
            weights = None
        result = self.out_proj(heads.permute(2, 0, 1, 3).flatten(2))  # (L, N, E)
        if not batched:
            return result.squeeze(1), None if weights is None else weights.squeeze(0)
        return result.transpose(0, 1) if self.batch_first else result, weights

    def _projected(self, query, key, value):
        """(N, L, E) for each."""
        if self._qkv_same_embed_dim:
            weights = self.in_proj_weight.chunk(3)
        else:
            weights = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        return [F.linear(x, weight, bias) for x, weight, bias in zip((query, key, value), weights, biases)]

    def _extended(self, q, k, v):
        """The learned key and value and those of zeros put after the others."""
        batch = k.shape[0]
        if self.bias_k is not None:
            k = gradus.cat([k, self.bias_k.expand(batch, 1, self.embed_dim)], 1)
            v = gradus.cat([v, self.bias_v.expand(batch, 1, self.embed_dim)], 1)
        if self.add_zero_attn:
            zeros = gradus.zeros(batch, 1, self.embed_dim, dtype=k.dtype, device=k.device)
            k, v = gradus.cat([k, zeros], 1), gradus.cat([v, zeros], 1)
        return q, k, v

    def _heads(self, x):
        """(N, L, E) as (N, num_heads, L, head_dim)."""
        return x.unflatten(2, (self.num_heads, self.head_dim)).transpose(1, 2)

    def _mask(self, key_padding_mask, attn_mask, query, given, keys, batched):
        """What is added to the scores (N, num_heads, L, keys); keys beyond those given are never masked. None: nothing."""
        batch, length = query.shape[:2]
        masks = []
        if attn_mask is not None:
            sizes = {2: (length, given), 3: (batch * self.num_heads, length, given)}
            if attn_mask.dim() not in sizes:
                raise AssertionError(f"For {'batched (3-D)' if batched else 'unbatched (2-D)'} `query`, expected `attn_mask` to be `None`, 2-D or "
                                     f"3-D but found {attn_mask.dim()}-D tensor instead")
            if tuple(attn_mask.shape) != sizes[attn_mask.dim()]:
                raise RuntimeError(f"The shape of the {attn_mask.dim()}D attn_mask is {attn_mask.shape}, but should be "
                                   f"{sizes[attn_mask.dim()]}.")
            attn_mask = _additive(attn_mask, "attn_mask", query)
            masks.append(attn_mask if attn_mask.dim() == 2 else attn_mask.view(batch, self.num_heads, length, given))
        if key_padding_mask is not None:
            for dim, size in enumerate((batch, given)):
                if key_padding_mask.shape[dim] != size:
                    raise AssertionError(f"Expected key_padded_mask.shape[{dim}] to be {size}, but got {key_padding_mask.shape[dim]}")
            masks.append(_additive(key_padding_mask, "key_padding_mask", query).view(batch, 1, 1, given))
        if not masks:
            return None
        mask = sum(masks[1:], masks[0])
        if keys > given:
            mask = gradus.cat([mask, gradus.zeros(*mask.shape[:-1], keys - given, dtype=mask.dtype, device=mask.device)], -1)
        return mask


def _additive(mask, name, like):
    """A mask of numbers: -inf where a bool mask is true."""
    if mask.is_floating_point():
        return mask
    if mask.dtype != gradus.bool:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    return gradus.zeros(mask.shape, dtype=like.dtype, device=mask.device).masked_fill(mask, -math.inf)
