"""Checks that values, gradients, strides, random numbers and errors of scaled_dot_product_attention, multi_head_attention_forward and nn.attention
are PyTorch's."""
import math
import random

import gradus
import pytest
from nn_programs import attempt, same


def cases(seed, count):
    """Yields random sizes and options of scaled_dot_product_attention: (batch, L, S, E, Ev, kind of mask, dropout, scale). The query has
    the shape (*batch, L, E), the key (*batch, S, E) and the value (*batch, S, Ev)."""
    draw = random.Random(seed)
    for _ in range(count):
        batch = [draw.choice([1, 2, 3]) for _ in range(draw.choice([0, 1, 2, 2, 3]))]
        length, width = draw.choice([1, 2, 17, 33]), draw.choice([1, 2, 8, 16, 33])
        yield (batch, length, draw.choice([length, 1, 3, 64, 150]), width, draw.choice([width, 3, 16]),
               draw.choice(["none", "bool", "narrow bool", "float", "narrow float", "learned", "causal", "causal"]), draw.choice([0, 0, 0.3, 1.0]), draw.choice([None, 0.3, -0.2]))


def mask_of(t, kind, batch, rows, keys):
    narrow = [size if i % 2 else 1 for i, size in enumerate(batch)]
    if kind in ("none", "causal"):
        return None
    if kind == "bool":
        return t.rand(*batch, rows, keys) < 0.6
    if kind == "narrow bool":
        return t.rand(*narrow, 1, keys) < 0.6
    if kind == "narrow float":
        return t.randn(rows, 1)
    mask = t.randn(*batch, rows, keys)
    return mask.requires_grad_() if kind == "learned" else mask.masked_fill(mask > 1, -math.inf)


@pytest.mark.parametrize("seed", range(4))
def test_random_calls_give_values_and_gradients_of_pytorch(seed):
    @same(tolerance=1e-4)
    def program(t):
        for batch, rows, keys, width, value_width, kind, dropout, scale in cases(seed, 15):
            if kind == "causal" and scale is not None:
                scale = abs(scale)  # PyTorch's kernel returns NaN for a negative scale
            query, key, value = (t.randn(*batch, *sizes).requires_grad_() for sizes in ((rows, width), (keys, width), (keys, value_width)))
            if len(batch) > 1 and width % 2:
                key = key.transpose(-2, -3).contiguous().transpose(-2, -3)
            mask = mask_of(t, kind, batch, rows, keys)
            output = t.nn.functional.scaled_dot_product_attention(query, key, value, mask, dropout, kind == "causal", scale=scale)
            leaves = [query, key, value] + ([mask] if kind == "learned" else [])
            loss = (output * t.linspace(-1, 1, output.numel()).view(output.shape)).sum()
            yield (batch, rows, keys, width, value_width, kind, dropout, scale), output, t.autograd.grad(loss, leaves)
    program()


@same(tolerance=1e-4)
def test_grouped_query_attention(t):
    attention = t.nn.functional.scaled_dot_product_attention
    for heads, key_heads, value_heads, rows in ((6, 3, 3, 5), (6, 1, 1, 5), (6, 2, 3, 4), (8, 2, 2, 1), (4, 4, 4, 3)):
        leaves = [t.randn(2, n, length, 8, requires_grad=True) for n, length in ((heads, rows), (key_heads, 7), (value_heads, 7))]
        for mask in (None, t.rand(rows, 7) < 0.7, t.randn(2, 1, rows, 7), t.randn(2, heads, rows, 7)):
            output = attention(*leaves, attn_mask=mask, enable_gqa=True)
            yield output, t.autograd.grad((output * output.detach()).sum(), leaves)
        yield attention(*leaves, is_causal=True, enable_gqa=True), attention(*[x[0] for x in leaves], enable_gqa=True)
    x = t.randn(2, 6, 4, 8)
    yield attempt(attention, x, x[:, :4], x[:, :4], enable_gqa=True), attempt(attention, x[:, :3], x, x, enable_gqa=True)
    yield attempt(attention, x[0, 0], x[0, 0], x[0, 0], enable_gqa=True), attempt(attention, x, x[:, :3], x[:, :3])


@same
def test_dropout_draws_the_numbers_of_pytorch(t):
    for dtype in (t.float32, t.float64, t.bfloat16):
        for sizes in ((3, 4), (2, 3, 17, 4)):
            x = t.randn(*sizes).to(dtype)
            t.manual_seed(7)
            zeros = t.nn.functional.scaled_dot_product_attention(x, x, t.ones_like(x), dropout_p=0.9) == 0  # with dropout_p=0.9 some rows lose all weights
            yield zeros, t.rand(2)


@same(tolerance=0)
def test_strides_of_attention_results_and_gradients(t):
    attention = t.nn.functional.scaled_dot_product_attention
    joined = t.randn(2, 6, 36)
    query, key, value = (part.view(2, 6, 3, 4).transpose(1, 2) for part in joined.split(12, dim=2))
    for part in (query, query.contiguous(), query.transpose(-1, -2).contiguous().transpose(-1, -2), t.randn(1, 3, 6, 4).expand(2, 3, 6, 4)):
        yield attention(part, key, value).stride(), attention(part, key, value, is_causal=True).stride(), attention(part[0], key[0], value[0]).stride()
    yield attention(query, key, value, dropout_p=0.5).stride(), attention(query, key, value[..., :3]).stride()
    leaves = [x.detach().requires_grad_() for x in (query, key, value)]
    yield [x.stride() for x in t.autograd.grad(attention(*leaves).sum(), leaves)]
    yield attention(query.to("meta"), key.to("meta"), value.to("meta")).shape


@same
def test_rows_whose_keys_are_all_masked(t):
    x, mask = t.randn(4, 5, requires_grad=True), t.ones(4, 4, dtype=t.bool)
    mask[1] = False
    for seen in (mask, t.zeros(4, 4).masked_fill(~mask, -math.inf), mask & False):
        output = t.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=seen)
        yield output, t.autograd.grad(output.sum(), x)
    x = t.randn(2, 3, 4, 5)
    yield [t.nn.functional.scaled_dot_product_attention(x, x[:, :, :n], x[:, :, :n]) for n in (0, 1)]
    yield t.nn.functional.scaled_dot_product_attention(x[..., :0], x[..., :0], x), t.nn.functional.scaled_dot_product_attention(x[:, :, :0], x, x)


@same
def test_arguments_that_do_not_fit_are_refused(t):
    attention, x = t.nn.functional.scaled_dot_product_attention, t.randn(2, 3, 4, 5)
    yield attempt(attention, x[0, 0, 0], x, x), attempt(attention, x, x.double(), x), attempt(attention, x.int(), x.int(), x.int()), attempt(attention, x > 0, x > 0, x > 0)
    yield attempt(attention, *[t.complex(x, x)] * 3), attempt(attention, x, t.randn(3, 3, 4, 5), x), attempt(attention, x, t.randn(2, 3, 4, 6), x)
    yield attempt(attention, x[0, 0], t.randn(6, 7), x[0, 0]), attempt(attention, x[0, 0], t.randn(6, 5), x[0, 0]), attempt(attention, x[0], x[0], t.randn(3, 7, 5))
    for mask in (t.ones(4, 4, dtype=t.int64), t.ones(4, 4, dtype=t.float64), t.ones(4, 3), t.ones(4), t.ones(2, 1, 1, 4, 4)):
        yield attempt(attention, x, x, x, attn_mask=mask)
    yield attempt(attention, x[0], x[0], x[0], attn_mask=t.ones(2, 1, 4, 4)), attempt(attention, x, x, x, dropout_p=1.5)
    causal = t.ones(4, 4, dtype=t.bool)
    yield attempt(attention, x[0], x[0], x[0], attn_mask=causal, is_causal=True), attempt(attention, x, x, x, attn_mask=causal, is_causal=True)
    yield attempt(attention, None, x, x), attempt(attention, x, x, x, attn_mask="a")


def test_half_types_are_computed_in_float32():
    for dtype in (gradus.float16, gradus.bfloat16):
        query, key, value = (gradus.randn(2, 2, 40, 8).to(dtype).requires_grad_() for _ in range(3))
        output = gradus.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        wide = gradus.nn.functional.scaled_dot_product_attention(query.float(), key.float(), value.float(), is_causal=True)
        assert output.dtype is dtype and gradus.equal(output, wide.to(dtype))
        assert all(x.dtype is dtype for x in gradus.autograd.grad(output.sum(), (query, key, value)))
        biased = gradus.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=gradus.randn(40, 40))
        assert biased.dtype is dtype


def test_results_do_not_depend_on_the_number_of_threads():
    given = [gradus.randn(3, 2, 200, 16).requires_grad_() for _ in range(3)]
    before = gradus.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 5):
            gradus.set_num_threads(threads)
            output = gradus.nn.functional.scaled_dot_product_attention(*given, is_causal=True)
            found.append([output, *gradus.autograd.grad(output.square().sum(), given)])
    finally:
        gradus.set_num_threads(before)
    assert all(gradus.equal(a, b) for one in found[1:] for a, b in zip(found[0], one))


def test_gradcheck_gradgradcheck_and_vmap_of_attention():
    given = [gradus.randn(2, 3, 4, dtype=gradus.float64).requires_grad_() for _ in range(3)]
    mask = gradus.randn(3, 3, dtype=gradus.float64).requires_grad_()

    def attention(query, key, value, mask):
        return gradus.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)

    assert gradus.autograd.gradcheck(attention, (*given, mask), check_forward_ad=True)
    assert gradus.autograd.gradgradcheck(attention, (*given, mask))
    by_batch = gradus.vmap(attention, in_dims=(0, 0, 0, None))(*given, mask)
    assert gradus.allclose(by_batch, attention(*given, mask))


@same(tolerance=1e-4)
def test_multi_head_attention_forward(t):
    attention, x = t.nn.functional.multi_head_attention_forward, t.randn(5, 3, 8, requires_grad=True)
    weight, bias, out, out_bias = (t.randn(24, 8) / 4).requires_grad_(), t.randn(24), t.randn(8, 8), t.randn(8)
    key, one = t.randn(7, 3, 8), t.randn(1, 1, 8)
    padding = t.zeros(3, 7, dtype=t.bool)
    padding[1, 4:] = True
    for given in ({}, {"need_weights": False}, {"average_attn_weights": False}, {"key_padding_mask": padding}, {"attn_mask": t.randn(5, 7)}, {"attn_mask": t.randn(6, 5, 7)},
                  {"attn_mask": t.zeros(5, 7, dtype=t.bool), "key_padding_mask": padding, "need_weights": False}, {"training": False}):
        for extra in ((None, None, False), (one, -one, True)):
            output, weights = attention(x, key, key, 8, 2, weight, bias, *extra, 0.3, out, out_bias, **given)
            yield output, weights, t.autograd.grad(output.square().sum(), (x, weight))
    yield attention(x[:, 0], x[:, 0], x[:, 0], 8, 2, weight, None, None, None, False, 0.0, out, None)
    split = {"use_separate_proj_weight": True, "q_proj_weight": weight[:8], "k_proj_weight": weight[8:16, :4], "v_proj_weight": weight[16:, :3]}
    yield attention(x, key[..., :4], key[..., :3], 8, 2, None, bias, None, None, False, 0.0, out, out_bias, **split)
    yield attention(x, key, key, 8, 2, weight, bias, None, None, False, 0.0, out, out_bias, static_k=t.randn(6, 9, 4), static_v=t.randn(6, 9, 4))
    rest = (8, 2, weight, bias, None, None, False, 0.0, out, out_bias)
    yield attempt(attention, x, key, x, *rest), attempt(attention, x[0, 0], key, key, *rest), attempt(attention, x, key, key, 6, *rest[1:])
    yield attempt(attention, x, key, key, 8, 3, *rest[2:]), attempt(attention, x, key, key, *rest, attn_mask=t.ones(5, 5)), attempt(attention, x, key, key, *rest, attn_mask=t.ones(5))
    yield attempt(attention, x, key, key, *rest, key_padding_mask=t.ones(3, 7, dtype=t.int64)), attempt(attention, x, key, key, *rest, is_causal=True)


@same
def test_causal_biases(t):
    import importlib

    bias, attention = importlib.import_module(f"{t.__name__}.nn.attention.bias"), t.nn.functional.scaled_dot_product_attention
    query, key = t.randn(1, 2, 3, 8), t.randn(1, 2, 5, 8)
    for make in (bias.causal_upper_left, bias.causal_lower_right):
        made = make(3, 5)
        yield isinstance(made, t.Tensor), isinstance(made, bias.CausalBias), int(made.variant), made.seq_len_q, made.seq_len_kv, repr(made), made._materialize()
        yield attention(query, key, key, made), attention(query, key, key, attn_mask=made, scale=0.2), attempt(attention, query, key, key, made, is_causal=True)
        yield attempt(make, 1, 2, 3)[0], attention(key, key, key, attn_mask=make(5, 5))
    yield [int(variant) for variant in bias.CausalVariant]


@same
def test_sdpa_kernel_and_backend_flags(t):
    import importlib

    attention, cuda, x = importlib.import_module(f"{t.__name__}.nn.attention"), t.backends.cuda, t.randn(1, 2, 3, 4)
    for backends in (attention.SDPBackend.MATH, attention.SDPBackend.FLASH_ATTENTION, [attention.SDPBackend.MATH, attention.SDPBackend.FLASH_ATTENTION]):
        with attention.sdpa_kernel(backends):
            yield cuda.math_sdp_enabled(), cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(), cuda.cudnn_sdp_enabled()
            yield t.nn.functional.scaled_dot_product_attention(x, x, x)
    yield cuda.math_sdp_enabled(), cuda.flash_sdp_enabled(), attempt(attention.sdpa_kernel("x").__enter__), str(attention.SDPBackend.MATH), int(attention.SDPBackend.CUDNN_ATTENTION)
    for name in ("flash", "math", "mem_efficient", "cudnn"):
        getattr(cuda, f"enable_{name}_sdp")(False)
        yield getattr(cuda, f"{name}_sdp_enabled")()
        getattr(cuda, f"enable_{name}_sdp")(True)
    yield attention.sdpa_kernel(attention.SDPBackend.MATH)(cuda.flash_sdp_enabled)(), cuda.flash_sdp_enabled()


def test_dropout_under_vmap():
    x = gradus.randn(3, 4).expand(2, 3, 4)

    def attention(x):
        return gradus.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5)

    first, second = gradus.vmap(attention, randomness="same")(x)
    assert gradus.equal(first, second)
    first, second = gradus.vmap(attention, randomness="different")(x)
    assert not gradus.equal(first, second)
    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        gradus.vmap(attention)(x)


def test_sizes_that_exceed_memory_are_refused():
    attention, one = gradus.nn.functional.scaled_dot_product_attention, gradus.zeros(1, 1, 1)
    few, many = gradus.zeros(2, 20, 1), one.expand(2, 2**61, 1)
    assert attempt(attention, few, many, many) == ("RuntimeError", f"attention of 20 queries and {2**61} keys is too large")
    assert attempt(attention, many, few, few)[0] == "RuntimeError"
    assert attempt(attention, one.view(1, 1, 1, 1).expand(2**31, 1, 1, 1), one.view(1, 1, 1, 1).expand(1, 2**31, 1, 1), one)[0] == "RuntimeError"
