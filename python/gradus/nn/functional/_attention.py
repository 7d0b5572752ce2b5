"""The function multi_head_attention_forward: projections, masks and shape checks around the operator scaled_dot_product_attention."""
from __future__ import annotations

import math
import warnings

import gradus
from gradus import _C

__all__ = ["multi_head_attention_forward"]

_nn = _C.nn


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """Returns `mask` as a floating-point mask to add to the scores: a bool mask becomes -inf where it is True, 0 elsewhere. None stays None.

    other_type: the dtype of a second mask named `other_name`, or None if there is no second mask. Warns if other_type is not the dtype of `mask`.
    """
    if mask is None:
        return None
    floating = mask.is_floating_point()
    if mask.dtype is not gradus.bool and not floating:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype is not other_type:
        warnings.warn(f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.", stacklevel=2)
    return mask if floating else gradus.zeros_like(mask, dtype=target_type).masked_fill_(mask, -math.inf)


def _none_or_dtype(x):
    return None if x is None else x.dtype


def _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Returns True if `query` has a batch dimension (3 dimensions), False if it has 2 dimensions. Raises AssertionError if the numbers of dimensions
    of the other arguments do not match."""
    if query.dim() not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor")
    batched = query.dim() == 3
    kind, n = ("batched (3-D)", 3) if batched else ("unbatched (2-D)", 2)
    if key.dim() != n or value.dim() != n:
        raise AssertionError(f"For {kind} `query`, expected `key` and `value` to be {n}-D but found {key.dim()}-D and {value.dim()}-D tensors respectively")
    if key_padding_mask is not None and key_padding_mask.dim() != n - 1:
        raise AssertionError(f"For {kind} `query`, expected `key_padding_mask` to be `None` or {n - 1}-D but found {key_padding_mask.dim()}-D tensor instead")
    if attn_mask is None:
        return batched
    if attn_mask.dim() not in (2, 3):
        raise AssertionError(f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor instead")
    if not batched and attn_mask.dim() == 3 and tuple(attn_mask.shape) != (num_heads, query.shape[0], key.shape[0]):
        raise AssertionError(f"Expected `attn_mask` shape to be {(num_heads, query.shape[0], key.shape[0])} but got {attn_mask.shape}")
    return batched


def _projected(query, key, value, weights, bias):
    """Returns the linear projections of query, key and value. Operands that are the same tensor share one matrix product.

    weights: a list of one matrix (the three projections stacked along dimension 0) or of three matrices.
    """
    if len(weights) == 1:
        weight, = weights
        if query is key and key is value:
            return _nn.linear(query, weight, bias).chunk(3, -1)
        if key is value:
            rows = query.size(-1)
            own, shared = (None, None) if bias is None else bias.split([rows, 2 * rows])
            own_weight, shared_weight = weight.split([rows, 2 * rows])
            return _nn.linear(query, own_weight, own), *_nn.linear(key, shared_weight, shared).chunk(2, -1)
        weights = weight.chunk(3)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return [_nn.linear(x, weight, b) for x, weight, b in zip((query, key, value), weights, biases)]


def _one_more(x, last, dim):
    """Returns `x` with the element `last` appended along `dim`, the dimension of keys. `last` is broadcast to the other dimensions of `x`."""
    sizes = list(x.shape)
    sizes[dim] = 1
    return gradus.cat([x, last.expand(sizes)], dim)


def _joined_mask(attn_mask, key_padding_mask, batch, heads, rows, given, keys):
    """Returns the sum of attn_mask and key_padding_mask, to be added to the scores (batch, heads, rows, keys), or None if both masks are None.

    given: the number of keys before bias_k and a key of zeros are appended. keys: the number of keys afterwards. All queries attend to the appended
    keys.
    """
    if attn_mask is not None:
        wanted = (rows, given) if attn_mask.dim() == 2 else (batch * heads, rows, given)
        if tuple(attn_mask.shape) != wanted:
            raise RuntimeError(f"The shape of the {attn_mask.dim()}D attn_mask is {attn_mask.shape}, but should be {wanted}.")
        attn_mask = attn_mask if attn_mask.dim() == 2 else attn_mask.view(batch, heads, rows, given)
    if key_padding_mask is not None:
        for dim, size in enumerate((batch, given)):
            if key_padding_mask.shape[dim] != size:
                raise AssertionError(f"Expected key_padded_mask.shape[{dim}] to be {size}, but got {key_padding_mask.shape[dim]}")
        key_padding_mask = key_padding_mask.view(batch, 1, 1, given)
    masks = [mask for mask in (attn_mask, key_padding_mask) if mask is not None]
    if not masks:
        return None
    mask = sum(masks[1:], masks[0])
    return mask if keys == given else _nn.pad(mask, (0, keys - given))


def _attend(q, k, v, mask, dropout_p, is_causal, need_weights):
    """Returns (output, weights) of attention on heads of shape (batch, heads, length, width); weights is None unless `need_weights`."""
    if not need_weights:
        return _nn.scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal), None
    dropout_p = dropout_p if dropout_p > 0.0 else 0.0  # the comparison raises TypeError, as in PyTorch, if dropout_p is not a number
    return _C._attention_of_heads(q, k, v, mask, dropout_p, math.sqrt(1.0 / q.size(-1)))


def _static(x, batch, heads, width, name):
    """Returns static_k or static_v, (batch * heads, length, width), as (batch, heads, length, width). Raises AssertionError for other sizes."""
    if x.size(0) != batch * heads:
        raise AssertionError(f"expecting {name}.size(0) of {batch * heads}, but got {x.size(0)}")
    if x.size(2) != width:
        raise AssertionError(f"expecting {name}.size(2) of {width}, but got {x.size(2)}")
    return x.unflatten(0, (batch, heads))


def _of_batches(query, key, value, num_heads, weights, in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training,
                key_padding_mask, need_weights, attn_mask, static_k, static_v, average_attn_weights, is_causal, batch_dim):
    """Returns (output, weights) of multi_head_attention_forward, for batched operands and floating-point masks.

    batch_dim: 0 if query, key and value are (N, length, width), 1 if they are (length, N, width).
    """
    along, width = 1 - batch_dim, query.size(-1) // num_heads
    batch, given = query.size(batch_dim), key.size(along)
    q, k, v = _projected(query, key, value, weights, in_proj_bias)
    if (bias_k is None) != (bias_v is None):
        raise AssertionError("bias_k and bias_v must be given together")
    if bias_k is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError(f"bias cannot be added to static {'key' if static_k is not None else 'value'}.")
        k, v = _one_more(k, bias_k, along), _one_more(v, bias_v, along)
    order = (0, 2, 1, 3) if batch_dim == 0 else (1, 2, 0, 3)
    q, k, v = (x.unflatten(-1, (num_heads, width)).permute(order) for x in (q, k, v))
    k = k if static_k is None else _static(static_k, batch, num_heads, width, "static_k")
    v = v if static_v is None else _static(static_v, batch, num_heads, width, "static_v")
    if add_zero_attn:
        zero = k.new_zeros(1)
        k, v = _one_more(k, zero, 2), _one_more(v, zero, 2)
    mask = _joined_mask(attn_mask, key_padding_mask, batch, num_heads, query.size(along), given, k.size(2))
    heads, weights = _attend(q, k, v, mask, dropout_p, is_causal, need_weights)
    batch_first = batch_dim == 0 and not training
    output = _nn.linear(heads.permute((0, 2, 1, 3) if batch_first else (2, 0, 1, 3)).flatten(-2), out_proj_weight, out_proj_bias)
    # Gives `output` the strides that it has in PyTorch. With other strides, a later dropout would zero other elements than in PyTorch.
    if batch_dim == 0 and training:
        output = output.transpose(0, 1)
    return output, weights.mean(1) if weights is not None and average_attn_weights else weights


def _check_widths(query, key, value, embed_dim, num_heads, separate, in_proj_weight, others):
    """Raises AssertionError if sizes of query, key and value do not match each other or embed_dim, if num_heads does not divide embed_dim, or if a
    projection weight is None."""
    if query.shape[-1] != embed_dim:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim}, but got {query.shape[-1]}")
    if embed_dim % num_heads:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if separate and key.shape[:2] != value.shape[:2]:
        raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
    if not separate and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    for name, weight in others.items() if separate else [("in_proj_weight", in_proj_weight)]:
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is {separate} but {name} is None")


def _multi_head_attention(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p, out_proj_weight,
                          out_proj_bias, training, key_padding_mask, need_weights, attn_mask, separate, others, static_k, static_v, average_attn_weights, is_causal,
                          batch_dim):
    """Returns (output, weights) of multi_head_attention_forward, for inputs with the batch in dimension `batch_dim`.

    separate: True if query, key and value have separate projection weights instead of in_proj_weight. others: {name: weight} for these three weights.
    """
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same_key, same_value = key is query, value is key
        query = query.unsqueeze(batch_dim)
        key = query if same_key else key.unsqueeze(batch_dim)
        value = key if same_value else value.unsqueeze(batch_dim)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    key_padding_mask = _canonical_mask(key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint. You may use the Transformer module method `generate_square_subsequent_mask` to create "
                           "this mask.")
    by_rule = is_causal and key_padding_mask is None and not need_weights
    attn_mask = None if by_rule else _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
    _check_widths(query, key, value, embed_dim_to_check, num_heads, separate, in_proj_weight, others)
    output, weights = _of_batches(query, key, value, num_heads, list(others.values()) if separate else [in_proj_weight], in_proj_bias, bias_k, bias_v, add_zero_attn,
                                  dropout_p if training else 0.0, out_proj_weight, out_proj_bias, training, key_padding_mask, need_weights, attn_mask, static_k, static_v,
                                  average_attn_weights, by_rule, batch_dim)
    if not batched:
        output, weights = output.squeeze(batch_dim), None if weights is None else weights.squeeze(0)
    return output, weights


def multi_head_attention_forward(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p,
                                 out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True, attn_mask=None,
                                 use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None,
                                 average_attn_weights=True, is_causal=False):
    """Returns (output, weights) of multi-head attention with the given parameters, as nn.MultiheadAttention computes it (Vaswani et al., 2017).

    query (L, N, E), key (S, N, kdim) and value (S, N, vdim) give the output (L, N, E). weights is None if need_weights is false. in_proj_weight has
    the shape (3 * E, E). If use_separate_proj_weight is true, q_proj_weight, k_proj_weight and v_proj_weight replace in_proj_weight. bias_k and
    bias_v are a key and a value that are appended to the sequence. static_k and static_v, both (N * num_heads, S, E / num_heads), replace the
    projected key and value. key_padding_mask is (N, S); attn_mask is (L, S) or (N * num_heads, L, S). A bool mask is true where a key is not attended
    to. A floating-point mask is added to the scores. Raises AssertionError or RuntimeError for sizes that do not match.

    >>> x, weight = gradus.randn(5, 3, 8), gradus.randn(24, 8)
    >>> output, weights = F.multi_head_attention_forward(x, x, x, 8, 2, weight, None, None, None, False, 0.0, gradus.eye(8), None)
    >>> tuple(output.shape), tuple(weights.shape)
    ((5, 3, 8), (3, 5, 5))
    """
    others = {"q_proj_weight": q_proj_weight, "k_proj_weight": k_proj_weight, "v_proj_weight": v_proj_weight}
    return _multi_head_attention(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p,
                                 out_proj_weight, out_proj_bias, training, key_padding_mask, need_weights, attn_mask, use_separate_proj_weight, others, static_k,
                                 static_v, average_attn_weights, is_causal, 1)
