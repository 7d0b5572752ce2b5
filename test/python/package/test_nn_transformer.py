"""Checks that parameters, results and gradients of MultiheadAttention and the transformer modules are PyTorch's."""
import pytest
from nn_programs import attempt, same


def gradients(module, *values):
    """Returns [results of module(), gradients of `values`] for a loss that depends on all results."""
    result = module()
    outputs = [value for value in (result if isinstance(result, tuple) else [result]) if value is not None]
    sum((output * (output.detach() + 0.5)).sum() for output in outputs).backward()
    found = [value.grad for value in values]
    for value in values:
        value.grad = None
    return [result, found]


@same(tolerance=1e-4)
def test_multihead_attention(t):
    nn = t.nn
    for kwargs in ({}, {"batch_first": True}, {"bias": False}, {"add_bias_kv": True, "add_zero_attn": True}, {"kdim": 4, "vdim": 3},
                   {"dropout": 0.4}):
        attention = nn.MultiheadAttention(6, 2, **kwargs)
        q, k, v = (t.randn(5, 5, width, requires_grad=True) for width in (6, kwargs.get("kdim", 6), kwargs.get("vdim", 6)))
        yield repr(attention), attention.state_dict()
        padding, blocked = t.zeros(5, 5, dtype=t.bool), t.ones(5, 5, dtype=t.bool).triu(1)
        padding[2, 3:] = True
        for given in ({}, {"need_weights": False}, {"average_attn_weights": False}, {"key_padding_mask": padding}, {"attn_mask": blocked},
                      {"attn_mask": t.randn(10, 5, 5)}, {"attn_mask": blocked, "is_causal": True, "need_weights": False},
                      {"key_padding_mask": padding, "attn_mask": blocked, "need_weights": False}):
            yield gradients(lambda: attention(q, k, v, **given), q, k, v, *attention.parameters())
        yield attention.eval()(q[0], k[0], v[0])


@same
def test_errors_of_multihead_attention(t):
    nn = t.nn
    yield attempt(nn.MultiheadAttention, 6, 4), attempt(nn.MultiheadAttention, 0, 4)
    attention, x = nn.MultiheadAttention(6, 2), t.ones(3, 2, 6)
    yield attempt(attention, x, x, x, is_causal=True), attempt(attention, x[0, 0], x, x), attempt(attention, x, x[0], x)
    yield attempt(attention, x[0], x, x), attempt(attention, t.ones(3, 2, 4), x, x)
    yield attempt(attention, x, x, x, attn_mask=t.ones(2, 3)), attempt(attention, x, x, x, attn_mask=t.ones(3, 3, 3))
    yield attempt(attention, x, x, x, attn_mask=t.ones(3))
    yield attempt(attention, x, x, x, attn_mask=t.ones(3, 3, dtype=t.int64)), attempt(attention, x, x, x, key_padding_mask=t.ones(1, 3))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@same(tolerance=1e-4)
def test_transformer_modules(t):
    nn = t.nn
    source, target = t.randn(4, 3, 6, requires_grad=True), t.randn(4, 3, 6, requires_grad=True)
    causal = nn.Transformer.generate_square_subsequent_mask(4)
    yield causal
    for kwargs in ({}, {"norm_first": True}, {"activation": "gelu", "bias": False}, {"dropout": 0.0, "activation": t.tanh}):
        layer = nn.TransformerEncoderLayer(6, 2, 8, **kwargs)
        yield repr(layer), gradients(lambda: layer(source, causal), source, *layer.parameters())
        layer = nn.TransformerDecoderLayer(6, 2, 8, **kwargs)
        yield repr(layer), gradients(lambda: layer(target, source, causal), source, target, *layer.parameters())
    for kwargs in ({}, {"norm_first": True, "batch_first": True}):
        net = nn.Transformer(6, 2, 2, 2, 8, **kwargs)
        yield repr(net), net.state_dict(), gradients(lambda: net(source, target), source, target, *net.parameters())
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True), 2, enable_nested_tensor=False)
    padding = t.zeros(4, 3, dtype=t.bool)
    padding[1, 2] = True
    yield encoder(source, src_key_padding_mask=padding)
    yield attempt(net, source, t.ones(2, 3, 6)), attempt(net, source, t.ones(4, 3, 5)), attempt(nn.TransformerEncoderLayer, 6, 2, activation="x")


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@same(tolerance=1e-4)
def test_encoder_with_padding_masks(t):
    nn = t.nn
    layer = nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(6)).eval()
    x, at_end = t.randn(3, 5, 6), t.zeros(3, 5, dtype=t.bool)
    at_end[1, 3:] = at_end[2, 4:] = True
    in_front = at_end.clone()
    in_front[0, 0] = True
    with t.no_grad():
        for mask in (at_end, in_front, t.zeros(3, 5).masked_fill(at_end, -float("inf"))):
            yield encoder(x, src_key_padding_mask=mask), encoder(x, mask=t.zeros(5, 5, dtype=mask.dtype), src_key_padding_mask=mask)
        yield layer.eval()(x, src_key_padding_mask=at_end)
    yield encoder(x, src_key_padding_mask=at_end)
    yield encoder.requires_grad_(False)(x, src_key_padding_mask=at_end)


@same
def test_warnings_of_transformer_encoder(t):
    nn = t.nn
    for kwargs in ({}, {"batch_first": True}, {"batch_first": True, "norm_first": True}, {"batch_first": True, "bias": False}, {"batch_first": True, "activation": t.tanh}):
        for heads in (2, 3):
            for nested in (True, False):
                made = attempt(nn.TransformerEncoder, nn.TransformerEncoderLayer(6, heads, 8, **kwargs), 1, enable_nested_tensor=nested)
                encoder = made[0] if isinstance(made, tuple) else made
                yield isinstance(made, tuple), encoder.use_nested_tensor, encoder.mask_check, encoder.layers[0].activation_relu_or_gelu


@same(tolerance=1e-4)
def test_causal_masks_of_encoder_and_decoder(t):
    nn = t.nn
    x, causal = t.randn(3, 5, 6), nn.Transformer.generate_square_subsequent_mask(5)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, batch_first=True), 2).eval()
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8, batch_first=True), 2).eval()
    for is_causal in (None, True, False):
        yield encoder(x, mask=causal, is_causal=is_causal), decoder(x, x, tgt_mask=causal, tgt_is_causal=is_causal)
    yield encoder(x, mask=t.ones(5, 5, dtype=t.bool).triu(1)), attempt(encoder, x, is_causal=True)
    yield attempt(encoder, x, mask=t.ones(5, 5, dtype=t.int64)), attempt(encoder, x, src_key_padding_mask=t.ones(3, 5, dtype=t.int64))
