"""A small GPT on characters, which is trained on any text file, saved, resumed and sampled. The program is written as for PyTorch. With `import
torch` instead of gradus it prints the same losses.

    python examples/python/gpt.py train text.txt [--steps 1000] [--every 100] [--seed 0] [--file gpt.pt] [--resume]
    python examples/python/gpt.py sample [--file gpt.pt] [--prompt "Once"] [--length 300] [--temperature 0.8] [--top-k 20] [--seed 0]

Each block has causal self-attention over the previous characters, followed by a two-layer network that is applied at each position. The model
predicts the next character. While it samples, the keys and values of previous characters are cached, so that each step processes a single
character.
"""
import argparse
import sys
import time

import gradus as torch
import gradus.nn as nn
import gradus.nn.functional as F


class CausalSelfAttention(nn.Module):
    """Causal multi-head self-attention."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.p = heads, dropout
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, past=None):
        """Applies attention to x. `past` has the cached keys and values of the positions before x, or is None. Returns the output, and the cache with
        the keys and values of x appended."""
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for part in self.qkv(x).split(width, dim=2))
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p if self.training else 0.0, is_causal=k.shape[2] == length)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width)), (k, v)


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = CausalSelfAttention(width, heads, dropout)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout))

    def forward(self, x, past=None):
        mixed, past = self.attention(self.norm1(x), past)
        x = x + mixed
        return x + self.mlp(self.norm2(x)), past


class GPT(nn.Module):
    """Maps characters (batch, length), given as numbers, to scores (batch, length, vocabulary) of each possible next character."""

    def __init__(self, vocabulary, width=64, heads=4, layers=2, context=64, dropout=0.0):
        super().__init__()
        self.context = context
        self.characters = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads, dropout) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.scores = nn.Linear(width, vocabulary, bias=False)
        self.apply(self.init_weights)

    @staticmethod
    def init_weights(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, characters, pasts=None):
        """Returns the scores of the next characters. `pasts` has the cache of keys and values of each block, or is None. If it is given, the extended
        caches are returned with the scores."""
        start = pasts[0][0].shape[2] if pasts else 0
        x = self.characters(characters) + self.positions(torch.arange(start, start + characters.shape[1]))
        kept = []
        for i, block in enumerate(self.blocks):
            x, past = block(x, pasts[i] if pasts else None)
            kept.append(past)
        scores = self.scores(self.norm(x))
        return scores if pasts is None else (scores, kept)

    @torch.no_grad()
    def write(self, characters, count, temperature=1.0, top_k=None):
        """Returns `characters`, a tensor of shape (batch, length), with `count` characters appended. Each new character is drawn from the predicted
        distribution. If `top_k` is given, only the `top_k` most likely characters can be drawn."""
        self.eval()
        pasts = None
        for _ in range(count):
            if pasts is None or pasts[0][0].shape[2] == self.context:  # All positions are in use: start again with the last half of the context.
                recent = characters[:, -(self.context // 2 if pasts else self.context):]
                scores, pasts = self(recent, self.nothing(len(characters)))
            else:
                scores, pasts = self(characters[:, -1:], pasts)
            scores = scores[:, -1] / temperature
            if top_k is not None:
                least = torch.topk(scores, min(top_k, scores.shape[-1])).values[:, -1:]
                scores = scores.masked_fill(scores < least, float("-inf"))
            characters = torch.cat([characters, torch.multinomial(F.softmax(scores, dim=-1), 1)], dim=1)
        self.train()
        return characters

    def nothing(self, batch):
        """Returns an empty cache of keys and values for each block."""
        width = self.characters.embedding_dim
        return [(torch.zeros(batch, block.attention.heads, 0, width // block.attention.heads),) * 2 for block in self.blocks]


def show_progress(step, steps, loss, start, begun):
    """Overwrites the progress line on standard error."""
    filled = 30 * step // steps
    print(f"\r[{'#' * filled}{'.' * (30 - filled)}] step {step}/{steps}  loss {loss:.4f}  {(step - begun) / (time.perf_counter() - start):6.1f} steps/s",
          end="", file=sys.stderr, flush=True)


def batch(text, size, context):
    """Returns `size` random parts of the text, of `context` characters each, and as targets the same parts shifted by one character."""
    places = torch.randint(len(text) - context, (size,)).tolist()
    return torch.stack([text[i:i + context] for i in places]), torch.stack([text[i + 1:i + 1 + context] for i in places])


def train(model, optimizer, text, steps, every, begun=0, size=16, save=None):
    """Trains until step `steps`. After every `every` steps it prints their mean loss and calls save(step). Returns the loss of each step."""
    losses, start = [], time.perf_counter()
    for step in range(begun + 1, steps + 1):
        inputs, targets = batch(text, size, model.context)
        scores = model(inputs)
        loss = F.cross_entropy(scores.view(-1, scores.shape[-1]), targets.view(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        show_progress(step, steps, losses[-1], start, begun)
        if step % every == 0 or step == steps:
            recent = losses[-every:]
            print(f"\rstep {step}: loss {sum(recent) / len(recent):.4f}", flush=True)
            if save is not None:
                save(step)
    return losses


def new_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)


def train_command(options, parser):
    with open(options.text, encoding="utf-8") as file:
        content = file.read()
    torch.manual_seed(options.seed)
    saved = torch.load(options.file) if options.resume else None
    alphabet = saved["alphabet"] if saved else "".join(sorted(set(content)))
    number = {character: i for i, character in enumerate(alphabet)}
    if not set(content) <= set(alphabet):
        parser.error(f"{options.text} has characters that {options.file} does not know")
    model = GPT(len(alphabet))
    optimizer = new_optimizer(model)
    if len(content) <= model.context:
        parser.error(f"{options.text}: more than {model.context} characters are needed to learn from")
    if saved:
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"])
    begun = saved["step"] if saved else 0
    print(f"{len(content)} characters, {len(alphabet)} different; {sum(p.numel() for p in model.parameters())} parameters; begins after step {begun}")

    def save(step):
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state(), "step": step, "alphabet": alphabet}, options.file)

    train(model, optimizer, torch.tensor([number[character] for character in content]), options.steps, options.every, begun, save=save)


def sample_command(options, parser):
    saved = torch.load(options.file)
    alphabet = saved["alphabet"]
    unknown = sorted(set(options.prompt) - set(alphabet))
    if unknown:
        parser.error(f"{options.file} does not know the characters {''.join(unknown)!r}")
    model = GPT(len(alphabet))
    model.load_state_dict(saved["model"])
    torch.manual_seed(options.seed)
    prompt = torch.tensor([[alphabet.index(character) for character in options.prompt or alphabet[0]]])
    print("".join(alphabet[i] for i in model.write(prompt, options.length, options.temperature, options.top_k)[0].tolist()))


def main(arguments=None):
    parser = argparse.ArgumentParser(description="A small GPT of characters.")
    commands = parser.add_subparsers(dest="command", required=True)
    training = commands.add_parser("train", help="train on a text file")
    training.add_argument("text")
    training.add_argument("--steps", type=int, default=1000)
    training.add_argument("--every", type=int, default=100, help="print the loss and save every so many steps")
    training.add_argument("--seed", type=int, default=0)
    training.add_argument("--file", default="gpt.pt", help="where the model is saved")
    training.add_argument("--resume", action="store_true", help="go on with the saved model")
    sampling = commands.add_parser("sample", help="write text with a saved model")
    sampling.add_argument("--file", default="gpt.pt")
    sampling.add_argument("--prompt", default="")
    sampling.add_argument("--length", type=int, default=300, help="characters to write")
    sampling.add_argument("--temperature", type=float, default=0.8)
    sampling.add_argument("--top-k", type=int)
    sampling.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    {"train": train_command, "sample": sample_command}[options.command](options, parser)


if __name__ == "__main__":
    main()
