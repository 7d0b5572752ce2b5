"""Compares attention with PyTorch, forward and with gradients. The cases, each causal or not, are long sequences, batches of short sequences,
decoding with a cache of keys, and complete encoder layers.

    build/venv/bin/python bench/attention.py --threads 2
"""
import functools

from beside import compare

# For each name the sizes of a case: batch size, heads of queries, heads of keys, number of queries, number of keys, width of a head, and whether
# attention is causal.
SIZES = {"causal 1x8x1024x64": (1, 8, 8, 1024, 1024, 64, True), "1x8x1024x64": (1, 8, 8, 1024, 1024, 64, False), "causal 1x16x2048x128": (1, 16, 16, 2048, 2048, 128, True),
         "causal 12x6x256x64": (12, 6, 6, 256, 256, 64, True), "16x8x64x32": (16, 8, 8, 64, 64, 32, False), "causal 16x8x64x32": (16, 8, 8, 64, 64, 32, True),
         "32x4x32x16": (32, 4, 4, 32, 32, 16, False), "1x2x8x8": (1, 2, 2, 8, 8, 8, False), "decode 1x8 of 1x8x512x64": (1, 8, 8, 1, 512, 64, False),
         "decode 1x32 of 1x8x2048x64": (1, 32, 8, 1, 2048, 64, False)}


def cases(torch, layout):
    attention = torch.nn.functional.scaled_dot_product_attention
    found = {}
    for name, (batch, heads, key_heads, rows, keys, width, causal) in SIZES.items():
        given = [torch.randn(batch, n, length, width) for n, length in ((heads, rows), (key_heads, keys), (key_heads, keys))]
        leaves = [x.clone().requires_grad_() for x in given]
        call = functools.partial(attention, is_causal=causal, enable_gqa=heads != key_heads)
        gradient = torch.randn(batch, heads, rows, width)
        found[name] = functools.partial(call, *given)
        found[f"{name}, with gradients"] = lambda call=call, leaves=leaves, gradient=gradient: torch.autograd.grad(call(*leaves), leaves, gradient)
    mask, query = torch.rand(4, 1, 256, 256) < 0.9, torch.randn(4, 8, 256, 64)
    found["4x8x256x64 with a mask"] = lambda: attention(query, query, query, attn_mask=mask)
    found["4x8x256x64 with dropout"] = lambda: attention(query, query, query, dropout_p=0.1)
    layer, x = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval(), torch.randn(4, 10, 32)

    def forward():
        with torch.no_grad():
            layer(x)
    found["encoder layer 4x10x32"] = forward
    found["encoder layer 4x10x32, with gradients"] = lambda: layer(x).sum().backward()
    return found


if __name__ == "__main__":
    compare(cases, __doc__)
