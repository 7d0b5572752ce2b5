"""Checks that flex_attention and block masks give PyTorch's results, and that blocks that a mask excludes are not computed."""
import math
import pickle

import gradus
import pytest
from nn_programs import attempt, same

from gradus.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:flex_attention called without", "ignore::DeprecationWarning")


def flex(t):
    """Returns the flex_attention module of a framework."""
    import importlib

    return importlib.import_module(f"{t.__name__}.nn.attention.flex_attention")


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def sliding(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx < 40)


def by_head(b, h, q_idx, kv_idx):
    return (h > 0) | (kv_idx < 70) & (b >= 0)


def nothing_in_row_five(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx != 5)


@same
def test_block_masks(t):
    f = flex(t)
    for mask_mod, sizes, given in ((causal, (None, None, 300, 300), {}), (sliding, (1, 1, 1000, 700), {"BLOCK_SIZE": 64}), (by_head, (2, 3, 200, 180), {"BLOCK_SIZE": (64, 32)}),
                                   (causal, (None, 2, 128 * 45, 128 * 45), {}), (f.noop_mask, (None, None, 256, 128), {}), (sliding, (None, None, 500, 500), {"separate_full_blocks": False})):
        mask = f.create_block_mask(mask_mod, *sizes, device="cpu", **given)
        yield repr(mask), str(mask), mask.shape, mask.numel(), mask.sparsity(), mask.seq_lengths, mask.BLOCK_SIZE, mask.to_dense(), mask.to_string(grid_size=5, limit=1)
        yield [part if part is None or isinstance(part, int) else t.as_tensor(part) for part in mask.as_tuple()[:-3]]
        yield repr(mask[0, 0]), mask[0].kv_indices, mask[:, :, :1].shape, mask[:, -1].shape
        yield repr(mask.to("cpu"))


@same
def test_create_mask_and_combined_mask_functions(t):
    f = flex(t)
    docs = t.arange(60) // 20

    def document(b, h, q_idx, kv_idx):
        return docs[q_idx] == docs[kv_idx]

    for mask_mod in (causal, by_head, document, f.and_masks(causal, document), f.or_masks(causal, document), f.noop_mask, f.and_masks(), f.or_masks()):
        yield f.create_mask(mask_mod, 2, 3, 60, 50, device="cpu")
    yield f.create_mask(lambda score, b, h, q, k: t.where(q > k, score, -float("inf")), 1, 2, 4, 5, device="cpu")
    yield attempt(f.and_masks, 1), attempt(f.or_masks, causal, None)
    yield attempt(f.create_block_mask, lambda a: a, None, None, 10, 10, device="cpu")
    one = t.tensor(1)
    yield attempt(f.create_block_mask(causal, None, None, 200, 200, device="cpu")[0].mask_mod, one, one, one, one)[0]


def scores_of(t, name, heads):
    """Returns (the score_mod function for `name`, [tensors that the function reads]). The tests compute the gradients of these tensors."""
    slopes, table = t.rand(heads), t.randn(200)
    return {"none": (None, []), "alibi": (lambda score, b, h, q, k: score + slopes[h] * (k - q), [slopes]),
            "soft cap": (lambda score, b, h, q, k: 5 * t.tanh(score / 5), []), "table": (lambda score, b, h, q, k: score + table[(q - k).abs()], [table]),
            "causal": (lambda score, b, h, q, k: t.where(q >= k, score, -float("inf")), [])}[name]


CASES = (("none", None, False), ("none", causal, False), ("alibi", None, False), ("alibi", sliding, True), ("soft cap", by_head, False), ("table", causal, True),
         ("causal", None, False), ("none", nothing_in_row_five, True), ("none", by_head, True), ("soft cap", nothing_in_row_five, False))


def operands(t, name, mask_mod, grouped):
    """Returns the query, key and value of a case, the score function with the tensors that it reads, and the block mask."""
    query, key, value = t.randn(2, 4, 150, 8), *(t.randn(2, 2 if grouped else 4, 190, 8) for _ in range(2))
    sizes = (2, 4) if mask_mod is by_head else (None, None)
    mask = None if mask_mod is None else flex(t).create_block_mask(mask_mod, *sizes, 150, 190, device="cpu", BLOCK_SIZE=64)
    return query, key, value, *scores_of(t, name, 4), mask


@same(tolerance=1e-4)
def test_flex_attention_agrees_with_pytorch(t):
    f = flex(t)
    for name, mask_mod, grouped in CASES:
        query, key, value, score_mod, _, mask = operands(t, name, mask_mod, grouped)
        output, aux = f.flex_attention(query, key, value, score_mod=score_mod, block_mask=mask, scale=0.3, enable_gqa=grouped, return_aux=f.AuxRequest(lse=True))
        yield name, output, aux.lse


def dense(query, key, value, score_mod, mask_mod, scale):
    """Returns the attention of `query` to `key` and `value`, computed with the complete matrix of scores."""
    key, value = (x.repeat_interleave(query.size(1) // x.size(1), 1) for x in (key, value))
    score = query @ key.transpose(-2, -1) * scale
    b, h, q, k = (gradus.arange(n).view([-1 if d == i else 1 for d in range(4)]) for i, n in enumerate(score.shape))
    score = score if score_mod is None else score_mod(score, b, h, q, k)
    score = score if mask_mod is None else gradus.where(mask_mod(b, h, q, k), score, -math.inf)
    weights = gradus.where((score == -math.inf).all(-1, keepdim=True), 0, score.softmax(-1))
    return weights @ value


@pytest.mark.parametrize("name, mask_mod, grouped", [case for case in CASES if case[1] is not nothing_in_row_five])
def test_gradients_of_flex_attention(name, mask_mod, grouped):
    """Gradients are compared with those of attention with the complete matrix of scores, because PyTorch has no gradient of flex_attention on the
    CPU."""
    query, key, value, score_mod, read, mask = operands(gradus, name, mask_mod, grouped)
    leaves = [x.requires_grad_() for x in (query, key, value, *read)]
    output, wanted = flex_attention(query, key, value, score_mod, mask, 0.3, grouped), dense(query, key, value, score_mod, mask_mod, 0.3)
    assert gradus.allclose(output, wanted, atol=1e-5)
    weights = gradus.linspace(-1, 1, output.numel()).view(output.shape)
    for got, right in zip(gradus.autograd.grad((output * weights).sum(), leaves), gradus.autograd.grad((wanted * weights).sum(), leaves)):
        assert gradus.allclose(got, right, atol=0.02, rtol=1e-3)


@same
def test_arguments_that_do_not_fit_are_refused(t):
    f, x = flex(t), t.randn(1, 2, 200, 8)
    call = f.flex_attention
    yield attempt(call, x[0], x[0], x[0]), attempt(call, x, x[:, :1], x[:, :1]), attempt(call, x, x[..., :4], x)
    for length in (300, 100):
        yield attempt(call, x, x, x, block_mask=f.create_block_mask(causal, None, None, length, length, device="cpu"))
    yield attempt(call, x, x, x, return_aux=f.AuxRequest(max_scores=True))


def test_masked_blocks_are_not_computed():
    mask = create_block_mask(sliding, None, None, 512, 512, BLOCK_SIZE=64)
    query = gradus.randn(1, 2, 512, 8)
    bad = query.clone()
    bad[:, :, 448:] = math.nan  # only the queries from 448 on attend to these keys
    output = flex_attention(query, bad, bad, block_mask=mask)
    assert not output[:, :, :448].isnan().any() and output[:, :, 448:].isnan().all()
    asked = []

    def counting(score, b, h, q_idx, kv_idx):
        asked.append(kv_idx.numel())
        return score

    flex_attention(query, query, query, score_mod=counting, block_mask=mask)
    assert sum(asked) == int(mask.to_dense().sum()) * 64


def test_flex_attention_in_other_dtypes_and_of_no_queries():
    x = gradus.randn(1, 2, 70, 8)
    plain = gradus.nn.functional.scaled_dot_product_attention(x, x, x)
    for dtype in (gradus.float16, gradus.bfloat16, gradus.float64):
        output, lse = flex_attention(*[x.to(dtype)] * 3, return_lse=True)
        assert output.dtype is dtype and lse.dtype is (gradus.float64 if dtype is gradus.float64 else gradus.float32)
        assert gradus.allclose(output.to(gradus.float32), plain, atol=0.03)
    assert flex_attention(x[:, :, :0], x, x).shape == (1, 2, 0, 8)
    assert attempt(flex_attention, x.int(), x.int(), x.int())[0] == "NotImplementedError"


def test_block_mask_from_kv_blocks():
    mask = BlockMask.from_kv_blocks(gradus.tensor([[[1, 2]]]), gradus.tensor([[[[1, 0], [0, 1]]]]), BLOCK_SIZE=64)
    assert mask.shape == (1, 1, 128, 128) and mask.to_dense().tolist() == [[[[0, 1], [1, 1]]]]
    x = gradus.randn(1, 2, 128, 8)
    seen = gradus.ones(128, 128, dtype=gradus.bool)
    seen[:64, :64] = False
    wanted = gradus.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=seen)
    assert gradus.allclose(flex_attention(x, x, x, block_mask=mask), wanted, atol=1e-5)
    assert repr(pickle.loads(pickle.dumps(mask))) == repr(mask)
