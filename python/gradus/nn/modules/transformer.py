"""The transformer of "Attention Is All You Need" (Vaswani et al., 2017): encoder, decoder, their layers, and Transformer, which combines encoder and
decoder."""
from __future__ import annotations

import copy
import warnings

import gradus
from gradus.backends import mha

from .. import functional as F
from .. import init
from ..functional._attention import _canonical_mask, _none_or_dtype
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = ["Transformer", "TransformerEncoder", "TransformerDecoder", "TransformerEncoderLayer", "TransformerDecoderLayer"]


class _Layer(Module):
    """Base of encoder and decoder layers, with the self attention block."""

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        """Returns the result of self attention for `x` as queries, keys and values, with dropout."""
        return self.dropout1(self.self_attn(x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False)[0])


def _get_activation_fn(activation):
    """Returns F.relu for "relu", F.gelu for "gelu", and a function unchanged. Raises RuntimeError for another string."""
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return F.relu if activation == "relu" else F.gelu


class TransformerEncoderLayer(_Layer):
    """One layer of the encoder: self attention and a feed-forward network, each with dropout, a residual connection and a LayerNorm.

    src and the output have the shape (S, N, d_model). With batch_first the shape is (N, S, d_model). Without a batch the shape is (S, d_model). A
    bool mask is true where a key is not attended to; a floating-point mask is added to the scores. dim_feedforward: the hidden size of the
    feed-forward network. norm_first: applies the LayerNorm before self attention and before the feed-forward network, not after them.
    activation: "relu", "gelu" or a function. Raises RuntimeError if `activation` is another string.

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
        self.activation_relu_or_gelu = _relu_or_gelu(self.activation)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        src_key_padding_mask = _canonical_mask(src_key_padding_mask, "src_key_padding_mask", _none_or_dtype(src_mask), "src_mask", src.dtype)
        src_mask = _canonical_mask(src_mask, "src_mask", None, "", src.dtype, check_other=False)
        if self.norm_first:
            x = src + self._sa_block(self.norm1(src), src_mask, src_key_padding_mask, is_causal=is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(src + self._sa_block(src, src_mask, src_key_padding_mask, is_causal=is_causal))
        return self.norm2(x + self._ff_block(x))

    def _ff_block(self, x):
        """Returns the feed-forward network's result for `x`, with dropout."""
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(_Layer):
    """One layer of the decoder: self attention, attention to the encoder's output and a feed-forward network.

    Each of these three blocks has dropout, a residual connection and a LayerNorm. A call takes tgt (T, N, d_model) and memory (S, N, d_model),
    which is the encoder's output. It returns (T, N, d_model). batch_first: N is the first dimension. dim_feedforward: the hidden size of the
    feed-forward network. norm_first: applies the LayerNorm before each block, not after it. activation: "relu", "gelu" or a function.

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
        if self.norm_first:
            x = tgt + self._sa_block(self.norm1(tgt), tgt_mask, tgt_key_padding_mask, tgt_is_causal)
            x = x + self._mha_block(self.norm2(x), memory, memory_mask, memory_key_padding_mask, memory_is_causal)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(tgt + self._sa_block(tgt, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        x = self.norm2(x + self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
        """Returns the attention of `x` to the encoder's output `mem`, with dropout."""
        return self.dropout2(self.multihead_attn(x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal,
                                                 need_weights=False)[0])

    def _ff_block(self, x):
        """Returns the feed-forward network's result for `x`, with dropout."""
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


def _relu_or_gelu(activation):
    """Returns 1 for relu, 2 for gelu and 0 for other activations. activation: a function or a module."""
    kind = getattr(activation, "__name__", type(activation).__name__.lower())
    return {"relu": 1, "gelu": 2}.get(kind, 0) if activation in (F.relu, F.gelu) or isinstance(activation, Module) else 0


def _get_clones(module, count):
    """Returns a ModuleList of `count` deep copies of `module`."""
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _causal(mask, is_causal):
    """Returns is_causal as a bool. If it is None, returns True if `mask` is the causal mask."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    if mask.dim() != 2 or mask.size(0) != mask.size(1) or not mask.is_floating_point():
        return False
    return mask.equal(Transformer.generate_square_subsequent_mask(mask.size(0), mask.device, mask.dtype))


def _why_not_nested(layer):
    """Returns the reason why PyTorch would not use nested tensors for this layer, or "" if PyTorch would use them.

    If PyTorch uses nested tensors, its results at padded positions are 0.
    """
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    checks = ((layer.norm_first, "encoder_layer.norm_first was True"),
              (not attention.batch_first, "encoder_layer.self_attn.batch_first was not True(use batch_first for better inference performance)"),
              (not attention._qkv_same_embed_dim, "encoder_layer.self_attn._qkv_same_embed_dim was not True"),
              (attention.in_proj_bias is None, "encoder_layer.self_attn was passed bias=False"),
              (not layer.activation_relu_or_gelu, "encoder_layer.activation_relu_or_gelu was not True"),
              (layer.norm1.eps != layer.norm2.eps, "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps"),
              (attention.num_heads % 2 == 1, "encoder_layer.self_attn.num_heads is odd"))
    return next((text for wrong, text in checks if wrong), "")


class TransformerEncoder(Module):
    """A stack of num_layers copies of encoder_layer, followed by an optional normalization `norm`.

    enable_nested_tensor: in evaluation mode without gradients, sets the last layer's output to 0 at padded positions, as PyTorch does. mask_check:
    if true, the output is set to 0 only if all padding is at the ends of the sequences. is_causal: True if `mask` is the causal mask. When None,
    a call compares `mask` with the causal mask.

    >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True), num_layers=2)
    >>> tuple(encoder(gradus.randn(3, 5, 8)).shape)
    (3, 5, 8)
    """

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        why_not = _why_not_nested(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and not why_not
        self.mask_check = mask_check
        if enable_nested_tensor and why_not:
            warnings.warn(f"enable_nested_tensor is True, but self.use_nested_tensor is False because {why_not}", stacklevel=2)

    def _padded(self, src, mask, key_padding_mask):
        """Returns the bool mask (N, S) of the padded positions at which the last layer's output must be set to 0. Returns None if the output stays
        unchanged."""
        if key_padding_mask is None or mask is not None or not self.use_nested_tensor or not mha.get_fastpath_enabled() or src.dim() != 3 or self.layers[0].training:
            return None
        if gradus.is_grad_enabled() and (src.requires_grad or any(p.requires_grad for p in self.layers.parameters())):
            return None
        padded = key_padding_mask != 0
        return None if self.mask_check and (padded[:, :-1] & ~padded[:, 1:]).any() else padded

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        src_key_padding_mask = _canonical_mask(src_key_padding_mask, "src_key_padding_mask", _none_or_dtype(mask), "mask", src.dtype)
        mask = _canonical_mask(mask, "mask", None, "", src.dtype, check_other=False)
        padded = self._padded(src, mask, src_key_padding_mask)
        is_causal = _causal(mask, is_causal)
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=is_causal, src_key_padding_mask=src_key_padding_mask)
        src = src if padded is None else src.masked_fill(padded.unsqueeze(-1), 0)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """A stack of num_layers copies of decoder_layer, followed by an optional normalization `norm`.

    tgt_is_causal: True if tgt_mask is the causal mask. When None, a call compares tgt_mask with the causal mask.
    """

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
                tgt_is_causal=None, memory_is_causal=False):
        tgt_is_causal = _causal(tgt_mask, tgt_is_causal)
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                        memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """A transformer with an encoder and a decoder. A call takes src (S, N, d_model) and tgt (T, N, d_model) and returns (T, N, d_model).

    batch_first: N is the first dimension. Raises RuntimeError if the batch sizes differ or the last sizes are not d_model.

    >>> net = nn.Transformer(8, 2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16, batch_first=True)
    >>> tuple(net(gradus.randn(3, 5, 8), gradus.randn(3, 4, 8)).shape)
    (3, 4, 8)
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
        """Returns the causal mask (sz, sz), which is -inf above the diagonal and 0 elsewhere.

        >>> nn.Transformer.generate_square_subsequent_mask(2).tolist()
        [[0.0, -inf], [0.0, 0.0]]
        """
        return gradus.full((sz, sz), float("-inf"), dtype=dtype, device=device).triu(1)
