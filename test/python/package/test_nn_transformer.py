"""MultiheadAttention and the transformer: parameters, results and gradients are PyTorch's."""
from nn_programs import attempt, same


def gradients(module, *values):
    """What calling gave, and the gradients it leads to."""
    result = module()
    outputs = [value for value in (result if isinstance(result, tuple) else [result]) if value is not None]
    sum((output * (output.detach() + 0.5)).sum() for output in outputs).backward()
    found = [value.grad for value in values]
    for value in values:
        value.grad = None
    return [result, found]


@same(tolerance=1e-4)
def test_attention(t):
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
def test_wrong_attention(t):
    nn = t.nn
    yield attempt(nn.MultiheadAttention, 6, 4), attempt(nn.MultiheadAttention, 0, 4)
    attention, x = nn.MultiheadAttention(6, 2), t.ones(3, 2, 6)
    yield attempt(attention, x, x, x, is_causal=True), attempt(attention, x[0, 0], x, x), attempt(attention, x, x[0], x)
    yield attempt(attention, x[0], x, x), attempt(attention, t.ones(3, 2, 4), x, x)
    yield attempt(attention, x, x, x, attn_mask=t.ones(2, 3)), attempt(attention, x, x, x, attn_mask=t.ones(3, 3, 3))
    yield attempt(attention, x, x, x, attn_mask=t.ones(3))
    yield attempt(attention, x, x, x, attn_mask=t.ones(3, 3, dtype=t.int64)), attempt(attention, x, x, x, key_padding_mask=t.ones(1, 3))


@same(tolerance=1e-4)
def test_transformers(t):
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
