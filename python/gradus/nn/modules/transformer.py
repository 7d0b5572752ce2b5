"""The transformer of "Attention Is All You Need" (Vaswani et al., 2017): encoder, decoder, their layers and both together."""
from __future__ import annotations

import copy

import gradus

from .. import functional as F
from .. import init
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = ["Transformer", "TransformerEncoder", "TransformerDecoder", "TransformerEncoderLayer", "TransformerDecoderLayer"]


class _Layer(Module):
    """What both layers share: self attention, and a network of two Linear; norms come before each part with norm_first, after it otherwise."""

    def _feed_forward(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _attend(self, attention, x, memory, attn_mask, key_padding_mask, is_causal):
        return attention(x, memory, memory, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=False, is_causal=is_causal)[0]

    def _residual(self, x, norm, dropout, part):
        """x + dropout(part(x)), normalized before or after."""
        return x + dropout(part(norm(x))) if self.norm_first else norm(x + dropout(part(x)))


def _get_activation_fn(activation):
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return F.relu if activation == "relu" else F.gelu


class TransformerEncoderLayer(_Layer):
    """Self attention and a network of width dim_feedforward, each with dropout, a residual connection and a LayerNorm.

    src (S, N, d_model), (N, S, d_model) with batch_first or (S, d_model) gives the same shape. Masks are those of MultiheadAttention.
    activation: "relu", "gelu" or a function. RuntimeError: another word.

    >>> layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)
    >>> tuple(layer(gradus.randn(3, 5, 8)).shape)
    (3, 5, 8)
    """

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation=F.relu, layer_norm_eps=1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True, device=None, dtype=None):
        super().__init__()
        made = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **made)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **made)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _get_activation_fn(activation)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        x = self._residual(src, self.norm1, self.dropout1,
                           lambda x: self._attend(self.self_attn, x, x, src_mask, src_key_padding_mask, is_causal))
        return self._residual(x, self.norm2, self.dropout2, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Self attention, attention to memory and a network of width dim_feedforward, each with dropout, a residual connection and a LayerNorm.

    tgt (T, N, d_model) and memory (S, N, d_model) give (T, N, d_model); N comes first with batch_first.

    >>> layer = nn.TransformerDecoderLayer(8, 2, dim_feedforward=16)
    >>> tuple(layer(gradus.randn(5, 3, 8), gradus.randn(7, 3, 8)).shape)
    (5, 3, 8)
    """

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation=F.relu, layer_norm_eps=1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True, device=None, dtype=None):
        super().__init__()
        made = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **made)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **made)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **made)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _get_activation_fn(activation)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
                tgt_is_causal=False, memory_is_causal=False):
        x = self._residual(tgt, self.norm1, self.dropout1,
                           lambda x: self._attend(self.self_attn, x, x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        x = self._residual(x, self.norm2, self.dropout2,
                           lambda x: self._attend(self.multihead_attn, x, memory, memory_mask, memory_key_padding_mask, memory_is_causal))
        return self._residual(x, self.norm3, self.dropout3, self._feed_forward)


def _get_clones(module, count):
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


class TransformerEncoder(Module):
    """num_layers copies of a TransformerEncoderLayer, one after the other, and a norm at the end.

    enable_nested_tensor and mask_check are taken as PyTorch does and make no difference.

    >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, dim_feedforward=16), num_layers=2)
    >>> tuple(encoder(gradus.randn(5, 3, 8)).shape)
    (5, 3, 8)
    """

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """num_layers copies of a TransformerDecoderLayer, one after the other, and a norm at the end."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
                tgt_is_causal=None, memory_is_causal=False):
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                        memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=bool(tgt_is_causal), memory_is_causal=memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Encoder and decoder. src (S, N, d_model) and tgt (T, N, d_model) give (T, N, d_model); N comes first with batch_first.

    RuntimeError: the batch sizes differ, or the widths are not d_model.

    >>> net = nn.Transformer(8, 2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16)
    >>> tuple(net(gradus.randn(5, 3, 8), gradus.randn(4, 3, 8)).shape)
    (4, 3, 8)
    """

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6, dim_feedforward: int = 2048,
                 dropout: float = 0.1, activation=F.relu, custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device=None, dtype=None):
        super().__init__()
        layer = {"d_model": d_model, "nhead": nhead, "dim_feedforward": dim_feedforward, "dropout": dropout, "activation": activation,
                 "layer_norm_eps": layer_norm_eps, "batch_first": batch_first, "norm_first": norm_first, "bias": bias, "device": device,
                 "dtype": dtype}
        norm = {"eps": layer_norm_eps, "bias": bias, "device": device, "dtype": dtype}
        if custom_encoder is None:
            custom_encoder = TransformerEncoder(TransformerEncoderLayer(**layer), num_encoder_layers, LayerNorm(d_model, **norm))
        self.encoder = custom_encoder
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(TransformerDecoderLayer(**layer), num_decoder_layers, LayerNorm(d_model, **norm))
        self.decoder = custom_decoder
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None, memory_is_causal=False):
        batch_dim = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch_dim) != tgt.size(batch_dim):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """The causal mask: (sz, sz), -inf above the diagonal and 0 elsewhere.

        >>> nn.Transformer.generate_square_subsequent_mask(2).tolist()
        [[0.0, -inf], [0.0, 0.0]]
        """
        return gradus.full((sz, sz), float("-inf"), dtype=dtype, device=device).triu(1)
