"""The module MultiheadAttention."""
from __future__ import annotations

import gradus

from .. import init
from ..functional._attention import _multi_head_attention
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Multi-head attention (Vaswani et al., 2017): for each head, scaled_dot_product_attention of linear projections of the inputs. A linear layer
    combines the heads.

    embed_dim: the size of queries and of the output, a multiple of num_heads. dropout: the probability with which attention weights are zeroed in
    training mode. add_bias_kv: appends a trained key and value. add_zero_attn: appends a key and a value of zeros. kdim and vdim: the sizes of keys
    and values; embed_dim when None.

    query (L, N, E), key (S, N, kdim) and value (S, N, vdim) give (L, N, E). With batch_first N is the first dimension; unbatched inputs lack N. The
    result is a pair (output, weights). The weights are (N, L, S), or (N, num_heads, L, S) without average_attn_weights, or None without need_weights.

    key_padding_mask is (N, S); attn_mask is (L, S) or (N * num_heads, L, S). A bool mask is true where a key is not attended to. A floating-point
    mask is added to the scores. is_causal: a hint that attn_mask is causal; the mask may then be ignored. Raises ValueError for sizes that are not
    positive, AssertionError if embed_dim is not divisible by num_heads.

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
        """Initializes projection matrices by xavier_uniform_, biases by zeros, and bias_k and bias_v by xavier_normal_."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def merge_masks(self, attn_mask, key_padding_mask, query):
        """Returns the pair (mask, mask type) that PyTorch's fast path takes. attn_mask and key_padding_mask are floating-point or None.

        If attn_mask is given, the mask type is 2. The mask (N, num_heads, L, L) is then attn_mask, plus key_padding_mask if that is given as well.
        If only key_padding_mask is given, returns (key_padding_mask, 1). If both are None, returns (None, None).
        """
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        rows, length, _ = query.shape
        if attn_mask.dim() == 3:
            merged = attn_mask.view(rows, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length).expand(rows, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(rows, 1, 1, length).expand(-1, self.num_heads, -1, -1)
        return merged, 2

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True, is_causal=False):
        others = {"q_proj_weight": self.q_proj_weight, "k_proj_weight": self.k_proj_weight, "v_proj_weight": self.v_proj_weight}
        return _multi_head_attention(query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v,
                                     self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask, need_weights,
                                     attn_mask, not self._qkv_same_embed_dim, others, None, None, average_attn_weights, is_causal, 0 if self.batch_first else 1)
