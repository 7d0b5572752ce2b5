"""A character-level transformer, trained on any text file, as a PyTorch user writes it. `import torch` instead gives the same losses.

    python examples/python/char_gpt.py text.txt [--steps 1000] [--every 100] [--seed 0] [--write 300]

Every block looks back over the characters before (attention) and then works on each by itself (a two-layer network). What it learns is the
next character; afterwards it writes some text of its own.
"""
import argparse
import math
import sys
import time

import gradus as torch
import gradus.nn as nn
import gradus.nn.functional as F


class CausalSelfAttention(nn.Module):
    """Each position takes a mean over itself and those before it, with weights that say how well its query fits their keys."""

    def __init__(self, width, heads, context, dropout):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("future", torch.ones(context, context).triu(1) > 0, persistent=False)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for part in self.qkv(x).split(width, dim=2))
        fit = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        fit = fit.masked_fill(self.future[:length, :length], float("-inf"))
        mixed = self.dropout(F.softmax(fit, dim=-1)) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads, context, dropout):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = CausalSelfAttention(width, heads, context, dropout)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class CharGPT(nn.Module):
    """(batch, length) of character numbers to (batch, length, vocabulary) of scores for the next one."""

    def __init__(self, vocabulary, width=64, heads=4, layers=2, context=64, dropout=0.0):
        super().__init__()
        self.context = context
        self.characters = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads, context, dropout) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.scores = nn.Linear(width, vocabulary, bias=False)
        self.apply(self.init_weights)

    @staticmethod
    def init_weights(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, characters):
        x = self.characters(characters) + self.positions(torch.arange(characters.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.scores(self.norm(x))

    @torch.no_grad()
    def write(self, characters, count):
        """Goes on after (batch, length) characters for count more, each drawn with the probability the model gives it."""
        self.eval()
        for _ in range(count):
            scores = self(characters[:, -self.context:])[:, -1]
            drawn = torch.multinomial(F.softmax(scores, dim=-1), 1)
            characters = torch.cat([characters, drawn], dim=1)
        self.train()
        return characters


def show_progress(step, steps, loss, start):
    """A line on the terminal, or wherever stderr goes, that is written over."""
    filled = 30 * step // steps
    print(f"\r[{'#' * filled}{'.' * (30 - filled)}] step {step}/{steps}  loss {loss:.4f}  {step / (time.perf_counter() - start):6.1f} steps/s",
          end="", file=sys.stderr, flush=True)


def batch(text, size, context):
    """Pieces of the text from random places, and the same moved by one character: what comes next."""
    places = torch.randint(len(text) - context, (size,)).tolist()
    return torch.stack([text[i:i + context] for i in places]), torch.stack([text[i + 1:i + 1 + context] for i in places])


def train(model, text, steps, every, size=16, lr=1e-3):
    """Prints the mean loss of every `every` steps; returns the loss of each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.1)
    losses, start = [], time.perf_counter()
    for step in range(1, steps + 1):
        inputs, targets = batch(text, size, model.context)
        scores = model(inputs)
        loss = F.cross_entropy(scores.view(-1, scores.shape[-1]), targets.view(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        show_progress(step, steps, losses[-1], start)
        if step % every == 0 or step == steps:
            recent = losses[-every:]
            print(f"\rstep {step}: loss {sum(recent) / len(recent):.4f}", flush=True)
    return losses


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Trains a character-level transformer on a text file.")
    parser.add_argument("text")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--every", type=int, default=100, help="print the loss every so many steps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=int, default=300, help="characters to write at the end")
    options = parser.parse_args(arguments)

    with open(options.text, encoding="utf-8") as file:
        content = file.read()
    alphabet = sorted(set(content))
    number = {character: i for i, character in enumerate(alphabet)}
    torch.manual_seed(options.seed)
    model = CharGPT(len(alphabet))
    if len(content) <= model.context:
        parser.error(f"{options.text}: more than {model.context} characters are needed to learn from")
    print(f"{len(content)} characters, {len(alphabet)} different; {sum(p.numel() for p in model.parameters())} parameters")

    train(model, torch.tensor([number[character] for character in content]), options.steps, options.every)
    first = torch.tensor([[number[content[0]]]])
    print("".join(alphabet[i] for i in model.write(first, options.write)[0].tolist()))


if __name__ == "__main__":
    main()
