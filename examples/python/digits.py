"""Trains a two-layer network to read handwritten digits. The program is written as for PyTorch. With `import torch` instead of gradus it prints the
same losses.

    python examples/python/digits.py [examples/data/digits.csv] [--epochs 40] [--seed 0]
"""
import argparse
import sys
import time

import gradus as torch
from gradus import nn
from gradus.utils.data import DataLoader, Dataset, random_split


class Digits(Dataset):
    """Images and labels from a file whose lines have 64 pixels, from 0 to 16, followed by the digit."""

    def __init__(self, path):
        with open(path) as file:
            rows = torch.tensor([[int(value) for value in line.split(",")] for line in file])
        self.images = rows[:, :64] / 16
        self.labels = rows[:, 64]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


def show_progress(epoch, epochs, loss, rate):
    """Overwrites the progress line on standard error."""
    filled = 30 * epoch // epochs
    print(f"\r[{'#' * filled}{'.' * (30 - filled)}] epoch {epoch}/{epochs}  loss {loss:.4f}  {rate:7.0f} images/s", end="", file=sys.stderr,
          flush=True)


def train_epoch(model, loader, loss_function, optimizer):
    """Trains for one epoch and returns a list with the loss of each batch."""
    model.train()
    losses = []
    for images, labels in loader:
        optimizer.zero_grad()
        loss = loss_function(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def accuracy(model, loader):
    """Returns the fraction of the loader's images that are read correctly."""
    model.eval()
    right = sum((model(images).argmax(1) == labels).sum().item() for images, labels in loader)
    return right / len(loader.dataset)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Trains a network to read handwritten digits.")
    parser.add_argument("data", nargs="?", default="examples/data/digits.csv")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)

    torch.manual_seed(options.seed)
    digits = Digits(options.data)
    test_count = len(digits) // 3
    train_set, test_set = random_split(digits, [len(digits) - test_count, test_count])
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True, drop_last=True)
    test_loader = DataLoader(test_set, batch_size=256)

    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    loss_function = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    print(model)

    for epoch in range(1, options.epochs + 1):
        start = time.perf_counter()
        losses = train_epoch(model, train_loader, loss_function, optimizer)
        mean = sum(losses) / len(losses)
        show_progress(epoch, options.epochs, mean, 32 * len(losses) / (time.perf_counter() - start))
        if epoch % 5 == 0 or epoch == options.epochs:
            print(f"\repoch {epoch:2d}: loss {mean:.4f}")
    print(f"test accuracy: {accuracy(model, test_loader):.4f}")


if __name__ == "__main__":
    main()
