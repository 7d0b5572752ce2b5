"""Causal attention biases for different numbers of queries and keys, aligned to the upper left or the lower right corner."""
from __future__ import annotations

import enum
import warnings

import gradus
from gradus import _stand_ins
from gradus.nn import functional as F

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """The alignment of the diagonal: UPPER_LEFT lets query 0 attend to key 0 only, LOWER_RIGHT lets the last query attend to all keys."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(gradus.Tensor):
    """A causal attn_mask for scaled_dot_product_attention. The tensor itself is empty; its elements are computed only when they are needed."""

    def __new__(cls, variant, seq_len_q, seq_len_kv):
        return super().__new__(cls, 0)

    def __init__(self, variant, seq_len_q, seq_len_kv):
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant)}")
        self.variant = variant
        self.seq_len_q = seq_len_q
        self.seq_len_kv = seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn("Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=2)

    def _materialize(self, device=None):
        """Returns the bias as a bool tensor (seq_len_q, seq_len_kv), true where a query may attend to a key."""
        offset = self.seq_len_kv - self.seq_len_q if self.variant == CausalVariant.LOWER_RIGHT else 0
        return gradus.ones(self.seq_len_q, self.seq_len_kv, dtype=gradus.bool, device=device).tril(diagonal=offset)

    @staticmethod
    def _dispatch(query, key, value, attn_mask, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        """Implements scaled_dot_product_attention for a CausalBias as attn_mask. Passes is_causal=True instead of a mask if both select the same
        keys."""
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        rest = {"dropout_p": dropout_p, "scale": scale, "enable_gqa": enable_gqa}
        if attn_mask.variant == CausalVariant.UPPER_LEFT or attn_mask.seq_len_q == attn_mask.seq_len_kv:
            return F.scaled_dot_product_attention(query, key, value, is_causal=True, **rest)
        return F.scaled_dot_product_attention(query, key, value, attn_mask._materialize(query.device), **rest)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = {} if kwargs is None else kwargs
        if func is F.scaled_dot_product_attention:
            return cls._dispatch(*args, **kwargs)
        return super().__torch_function__(func, types, args, kwargs)

    def __repr__(self):
        return repr(self._materialize())


def causal_upper_left(*size):
    """Returns a CausalBias (queries, keys) in which query i attends to keys 0 to i. Raises AssertionError unless there are two sizes.

    >>> causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size):
    """Returns a CausalBias (queries, keys) in which the last query attends to all keys. Each earlier query attends to one key fewer than the
    query after it.

    Raises AssertionError unless there are two sizes.

    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)


__getattr__ = _stand_ins.of_module(__name__)
