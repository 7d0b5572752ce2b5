"""Reads first names letter by letter and predicts which language they are from. The program is written as for PyTorch. With `import torch` instead
of gradus it prints the same losses.

    python examples/python/lstm_names.py [names.txt] [--epochs 20] [--seed 0] [--read NAME ...]

Names of different lengths are packed, so that the bidirectional LSTM stops at the end of each name. The final states of its two directions are
classified. Every seventh name is held out for the test.
"""
import argparse
import sys
import time
from pathlib import Path

import gradus as torch
import gradus.nn as nn
import gradus.nn.functional as F
from gradus.nn.utils.rnn import pack_sequence


class NameReader(nn.Module):
    """Maps a list of names, each a vector of letter numbers, to scores of shape (names, languages)."""

    def __init__(self, letters, languages, width=32, hidden=48):
        super().__init__()
        self.letters = nn.Embedding(letters, width)
        self.lstm = nn.LSTM(width, hidden, bidirectional=True)
        self.dropout = nn.Dropout(0.3)
        self.scores = nn.Linear(2 * hidden, languages)

    def forward(self, names):
        packed = pack_sequence(names, enforce_sorted=False)
        _, (ends, _) = self.lstm(packed._replace(data=self.letters(packed.data)))
        return self.scores(self.dropout(torch.cat([ends[0], ends[1]], dim=1)))


def read_names(path):
    """Returns {language: list of names} from a file with lines such as "German: Heinrich Uwe"."""
    lines = [line.split(":") for line in Path(path).read_text(encoding="utf-8").splitlines() if ":" in line]
    return {language: names.split() for language, names in lines}


def show_progress(epoch, epochs, loss, start):
    """Overwrites the progress line on standard error."""
    filled = 30 * epoch // epochs
    print(f"\r[{'#' * filled}{'.' * (30 - filled)}] epoch {epoch}/{epochs}  loss {loss:.4f}  {epoch / (time.perf_counter() - start):5.1f} epochs/s",
          end="" if epoch < epochs else "\n", file=sys.stderr, flush=True)


def train(model, names, labels, epochs, size=25):
    """Trains the model and returns the mean loss of each epoch."""
    optimizer, losses, start = torch.optim.Adam(model.parameters(), lr=5e-3), [], time.perf_counter()
    for epoch in range(1, epochs + 1):
        model.train()
        batches = torch.randperm(len(names)).split(size)
        total = 0.0
        for chosen in batches:
            loss = F.cross_entropy(model([names[i] for i in chosen.tolist()]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        losses.append(total / len(batches))
        show_progress(epoch, epochs, losses[-1], start)
    return losses


@torch.no_grad()
def probabilities(model, names):
    model.eval()
    return F.softmax(model(names), dim=1)


def show(name, shares, languages):
    """Prints a name with bars for the probabilities of its three most likely languages."""
    likely = sorted(zip(shares, languages), reverse=True)[:3]
    print(f"  {name:<14}" + "  ".join(f"{language:<9}{'#' * round(10 * share):<10}" for share, language in likely))


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Learns from what language a given name is.")
    parser.add_argument("names", nargs="?", default=Path(__file__).resolve().parent.parent / "data/names.txt")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--read", nargs="*", default=["Giacomina", "Hideko", "Svyatoslav", "Waldtraut", "Aristophanes", "Abdulkarim"], help="names to read at the end")
    options = parser.parse_args(arguments)

    try:
        found = read_names(options.names)
    except OSError:
        parser.error(f"{options.names}: no such file")
    languages = list(found)
    pairs = [(name, i) for i, language in enumerate(languages) for name in found[language]]
    alphabet = sorted({letter for name, _ in pairs for letter in name.lower()})
    number = {letter: i + 1 for i, letter in enumerate(alphabet)}  # number 0 is for letters that no name in the file has

    def letters_of(name):
        return torch.tensor([number.get(letter, 0) for letter in name.lower()])

    torch.manual_seed(options.seed)
    known, kept = [pair for i, pair in enumerate(pairs) if i % 7 != 6], pairs[6::7]
    model = NameReader(len(alphabet) + 1, len(languages))
    print(f"{len(known)} names of {len(languages)} languages to learn from, {len(kept)} to be tested on; {sum(p.numel() for p in model.parameters())} parameters")
    train(model, [letters_of(name) for name, _ in known], torch.tensor([label for _, label in known]), options.epochs)

    read = probabilities(model, [letters_of(name) for name, _ in kept]).argmax(1)
    wrong = [(name, languages[label], languages[i]) for (name, label), i in zip(kept, read.tolist()) if label != i]
    for name, language, guess in wrong[:5]:
        print(f"  {name} is {language}, and was read as {guess}")
    print(f"right: {1 - len(wrong) / len(kept):.2f}")
    for name, shares in zip(options.read, probabilities(model, [letters_of(name) for name in options.read]).tolist()):
        show(name, shares, languages)


if __name__ == "__main__":
    main()
