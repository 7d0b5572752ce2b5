"""Runs typical transformer programs with PyTorch and with Gradus. The printed losses and samples must be the same for the same seed."""
import pytest
from nn_programs import same


def language_model(torch):
    """A GPT with tied weights. One projection computes query, key and value. A cache of keys and values is used to generate text."""
    nn, F = torch.nn, torch.nn.functional

    class CausalSelfAttention(nn.Module):
        def __init__(self, width, heads, dropout):
            super().__init__()
            self.heads, self.dropout = heads, dropout
            self.c_attn = nn.Linear(width, 3 * width)
            self.c_proj = nn.Linear(width, width)
            self.resid_dropout = nn.Dropout(dropout)

        def forward(self, x, cache=None):
            B, T, C = x.shape
            q, k, v = (part.view(B, T, self.heads, C // self.heads).transpose(1, 2) for part in self.c_attn(x).split(C, dim=2))
            if cache is not None:
                if cache:
                    k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
                cache[:] = [k, v]
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0, is_causal=T > 1)
            return self.resid_dropout(self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C)))

    class Block(nn.Module):
        def __init__(self, width, heads, dropout):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attn = CausalSelfAttention(width, heads, dropout)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width), nn.Dropout(dropout))

        def forward(self, x, cache=None):
            x = x + self.attn(self.ln_1(x), cache)
            return x + self.mlp(self.ln_2(x))

    class GPT(nn.Module):
        def __init__(self, vocabulary, length, width=32, heads=4, layers=2, dropout=0.1):
            super().__init__()
            self.length = length
            self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
            self.ln_f = nn.LayerNorm(width)
            self.lm_head = nn.Linear(width, vocabulary, bias=False)
            self.apply(self._init_weights)
            self.wte.weight = self.lm_head.weight

        @staticmethod
        def _init_weights(module):
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, mean=0.0, std=0.02)
                if getattr(module, "bias", None) is not None:
                    nn.init.zeros_(module.bias)

        def forward(self, idx, targets=None, caches=None):
            start = caches[0][0].shape[2] if caches and caches[0] else 0
            x = self.wte(idx) + self.wpe(torch.arange(start, start + idx.shape[1]))
            for i, block in enumerate(self.blocks):
                x = block(x, None if caches is None else caches[i])
            logits = self.lm_head(self.ln_f(x))
            return logits, None if targets is None else F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))

        @torch.no_grad()
        def generate(self, idx, count, temperature=1.0, top_k=None, cached=True):
            caches = [[] for _ in self.blocks] if cached else None
            for _ in range(count):
                step = idx[:, -1:] if caches and caches[0] else idx
                logits = self(step, caches=caches)[0][:, -1] / temperature
                if top_k is not None:
                    logits[logits < torch.topk(logits, top_k).values[:, [-1]]] = -float("inf")
                idx = torch.cat([idx, torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)], dim=1)
            return idx

    text = "the quick brown fox jumps over the lazy dog. " * 8
    letters = sorted(set(text))
    data = torch.tensor([letters.index(c) for c in text])
    model = GPT(len(letters), 32)
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=3e-3, betas=(0.9, 0.95))
    yield sum(p.numel() for p in model.parameters()), list(model.state_dict())
    for _ in range(25):
        at = torch.randint(len(data) - 17, (8,))
        x, y = torch.stack([data[i:i + 16] for i in at]), torch.stack([data[i + 1:i + 17] for i in at])
        _, loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield loss.item(), norm.item()
    model.eval()
    for cached in (True, False):
        torch.manual_seed(3)
        yield "".join(letters[i] for i in model.generate(data[:4].unsqueeze(0), 24, temperature=0.8, top_k=5, cached=cached)[0].tolist())


def translation(torch):
    """The encoder and decoder of nn.Transformer learn to reverse sequences, with padding and causal masks and greedy decoding."""
    nn = torch.nn
    PAD, BOS, EOS = 0, 1, 2

    class PositionalEncoding(nn.Module):
        def __init__(self, width, longest=64):
            super().__init__()
            position = torch.arange(longest).unsqueeze(1)
            rate = torch.exp(torch.arange(0, width, 2) * (-9.21 / width))
            table = torch.zeros(longest, width)
            table[:, 0::2], table[:, 1::2] = torch.sin(position * rate), torch.cos(position * rate)
            self.register_buffer("table", table)

        def forward(self, x):
            return x + self.table[:x.size(1)]

    class Seq2Seq(nn.Module):
        def __init__(self, words, width=32):
            super().__init__()
            self.src_embed, self.tgt_embed = nn.Embedding(words, width, padding_idx=PAD), nn.Embedding(words, width, padding_idx=PAD)
            self.position = PositionalEncoding(width)
            self.transformer = nn.Transformer(width, 4, 2, 2, 64, dropout=0.1, batch_first=True, norm_first=False)
            self.out = nn.Linear(width, words)

        def forward(self, src, tgt):
            causal = nn.Transformer.generate_square_subsequent_mask(tgt.size(1))
            padding = torch.zeros(src.shape).masked_fill(src == PAD, float("-inf"))
            y = self.transformer(self.position(self.src_embed(src)), self.position(self.tgt_embed(tgt)), tgt_mask=causal, src_key_padding_mask=padding,
                                 tgt_key_padding_mask=torch.zeros(tgt.shape).masked_fill(tgt == PAD, float("-inf")), memory_key_padding_mask=padding)
            return self.out(y)

    def batch(size=16):
        src, tgt = torch.full((size, 8), PAD), torch.full((size, 10), PAD)
        for i in range(size):
            n = int(torch.randint(3, 8, (1,)))
            words = torch.randint(3, 12, (n,))
            src[i, :n], tgt[i, :n + 2] = words, torch.cat([torch.tensor([BOS]), words.flip(0), torch.tensor([EOS])])
        return src, tgt

    model = Seq2Seq(12)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98), eps=1e-9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10))
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
    for _ in range(20):
        src, tgt = batch()
        loss = criterion(model(src, tgt[:, :-1]).reshape(-1, 12), tgt[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        yield loss.item(), scheduler.get_last_lr()
    model.eval()
    with torch.no_grad():
        src, _ = batch(2)
        out = torch.full((2, 1), BOS)
        for _ in range(8):
            out = torch.cat([out, model(src, out)[:, -1].argmax(-1, keepdim=True)], dim=1)
        yield out


def masked_model(torch):
    """A BERT with learned positions and segments, an encoder with padding, and prediction of masked words."""
    nn, F = torch.nn, torch.nn.functional
    PAD, MASK, FIRST, words = 0, 1, 2, 30

    class Bert(nn.Module):
        def __init__(self, width=32, layers=2, heads=4):
            super().__init__()
            self.tokens, self.positions, self.segments = nn.Embedding(words, width, padding_idx=PAD), nn.Embedding(20, width), nn.Embedding(2, width)
            self.norm, self.dropout = nn.LayerNorm(width, eps=1e-12), nn.Dropout(0.1)
            layer = nn.TransformerEncoderLayer(width, heads, 4 * width, activation="gelu", batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, layers)
            self.pooler = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2))
            self.transform = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))
            self.bias = nn.Parameter(torch.zeros(words))

        def forward(self, tokens, segments):
            x = self.tokens(tokens) + self.positions(torch.arange(tokens.size(1))) + self.segments(segments)
            x = self.encoder(self.dropout(self.norm(x)), src_key_padding_mask=tokens == PAD)
            return F.linear(self.transform(x), self.tokens.weight, self.bias), self.pooler(x[:, 0])

    model = Bert()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(20):
        start = torch.randint(FIRST, words, (8, 1))
        tokens = FIRST + (start + torch.arange(16)) % (words - FIRST)
        tokens[torch.arange(16) >= torch.randint(8, 17, (8, 1))] = PAD
        segments = (torch.arange(16) >= 8).long().expand(8, -1)
        chosen = (torch.rand(tokens.shape) < 0.15) & (tokens != PAD)
        labels = tokens.masked_fill(~chosen, -100)
        guesses, following = model(tokens.masked_fill(chosen, MASK), segments)
        loss = F.cross_entropy(guesses.view(-1, words), labels.view(-1)) + F.cross_entropy(following, start.squeeze(1) % 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()
    model.eval()
    with torch.no_grad():
        guesses, following = model(tokens, segments)
    yield guesses.argmax(-1)[:2], following, F.cosine_similarity(guesses[0], guesses[1], dim=-1)


def llama(torch):
    """A decoder with grouped-query attention, rotary positions, RMSNorm and gated feed-forward networks."""
    nn, F = torch.nn, torch.nn.functional

    def rotate(x, start=0):
        half = x.size(-1) // 2
        angles = torch.arange(start, start + x.size(-2)).unsqueeze(1) * 10000.0 ** (-torch.arange(half) / half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], dim=-1)

    class Block(nn.Module):
        def __init__(self, width, heads, key_heads):
            super().__init__()
            self.heads, self.key_heads, self.size = heads, key_heads, width // heads
            self.q, self.k, self.v = (nn.Linear(width, n * self.size, bias=False) for n in (heads, key_heads, key_heads))
            self.o = nn.Linear(width, width, bias=False)
            self.gate, self.up, self.down = nn.Linear(width, 64, bias=False), nn.Linear(width, 64, bias=False), nn.Linear(64, width, bias=False)
            self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)

        def forward(self, x):
            h = self.norm1(x)
            q, k, v = (p(h).unflatten(-1, (-1, self.size)).transpose(1, 2) for p in (self.q, self.k, self.v))
            y = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True, enable_gqa=True)
            x = x + self.o(y.transpose(1, 2).flatten(2))
            h = self.norm2(x)
            return x + self.down(F.silu(self.gate(h)) * self.up(h))

    embed, blocks, head = nn.Embedding(20, 32), nn.Sequential(Block(32, 4, 2), Block(32, 4, 2)), nn.Linear(32, 20)
    parameters = [*embed.parameters(), *blocks.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=2e-3)
    data = torch.randint(20, (64,)).repeat(4)
    for step in range(15):
        x = torch.stack([data[i:i + 24] for i in range(step, step + 40, 8)])
        loss = F.cross_entropy(head(blocks(embed(x[:, :-1]))).flatten(0, 1), x[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors", "ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("program", [language_model, translation, masked_model, llama], ids=lambda program: program.__name__)
def test_a_transformer_program_gives_the_losses_of_pytorch(program):
    same(program, tolerance=2e-4)()
