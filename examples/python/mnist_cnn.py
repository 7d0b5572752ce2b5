"""Trains a convolutional network to read handwritten digits, as PyTorch's MNIST example does. With `import torch` instead of gradus it prints the
same losses.

    python examples/python/mnist_cnn.py [examples/data/digits.csv] [--epochs 6] [--seed 0] [--log folder] [--save model.pt]

The digits of 8 by 8 pixels are scaled up to 24 by 24. --log writes curves and the filters of the first layer for TensorBoard.
"""
import argparse
import contextlib
import sys
import time

import gradus as torch
import gradus.nn as nn
import gradus.nn.functional as F
from gradus.utils.data import DataLoader, TensorDataset, random_split


class Net(nn.Module):
    """A network of two convolutions with batch norm, followed by two linear layers."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, kernel_size=5, padding=2)
        self.norm1 = nn.BatchNorm2d(12)
        self.conv2 = nn.Conv2d(12, 24, kernel_size=3, padding=1)
        self.norm2 = nn.BatchNorm2d(24)
        self.pool = nn.MaxPool2d(3)
        self.dropout = nn.Dropout(0.3)
        self.fc1 = nn.Linear(24 * 2 * 2, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.norm1(self.conv1(x))))
        x = self.pool(F.relu(self.norm2(self.conv2(x))))
        x = self.dropout(torch.flatten(x, 1))
        return self.fc2(F.relu(self.fc1(x)))


def load(path):
    """Returns a data set of images (1, 24, 24), normalised to mean 0 and variance about 1, with their labels."""
    with open(path) as file:
        rows = torch.tensor([[int(value) for value in line.split(",")] for line in file])
    images = (rows[:, :64].reshape(-1, 1, 8, 8) / 16).repeat_interleave(3, 2).repeat_interleave(3, 3)
    return TensorDataset((images - 0.305) / 0.376, rows[:, 64])


def show_progress(epoch, batch, batches, loss, start):
    """Overwrites the progress line on standard error."""
    filled = 30 * (batch + 1) // batches
    rate = 32 * (batch + 1) / (time.perf_counter() - start)
    print(f"\r[{'#' * filled}{'.' * (30 - filled)}] epoch {epoch}  loss {loss:.4f}  {rate:7.0f} images/s", end="", file=sys.stderr, flush=True)


def train_epoch(model, loader, optimizer, epoch):
    """Trains for one epoch and returns a list with the loss of each batch."""
    model.train()
    losses, start = [], time.perf_counter()
    for batch, (images, labels) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        show_progress(epoch, batch, len(loader), losses[-1], start)
    return losses


@torch.no_grad()
def test(model, loader):
    """Returns the mean loss, and a list with the image, label and prediction of each misread digit."""
    model.eval()
    total, wrong = 0.0, []
    for images, labels in loader:
        scores = model(images)
        total += F.cross_entropy(scores, labels, reduction="sum").item()
        read = scores.argmax(1)
        wrong += [(images[i, 0], labels[i].item(), read[i].item()) for i in torch.nonzero(read != labels).flatten().tolist()]
    return total / len(loader.dataset), wrong


def draw(image):
    """Returns the image as lines of text, with two characters for each of its original 8 by 8 pixels."""
    shades = (image[::3, ::3] * 0.376 + 0.305).mul(8).long().clamp(0, 8).tolist()
    return "\n".join("    " + "".join(" .:-=+*#@"[shade] * 2 for shade in row) for row in shades)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Trains a convolutional network to read handwritten digits.")
    parser.add_argument("data", nargs="?", default="examples/data/digits.csv")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", help="folder for TensorBoard")
    parser.add_argument("--save", help="file for the trained parameters")
    options = parser.parse_args(arguments)

    torch.manual_seed(options.seed)
    digits = load(options.data)
    train_set, test_set = random_split(digits, [len(digits) - len(digits) // 4, len(digits) // 4])
    train_loader, test_loader = DataLoader(train_set, batch_size=32, shuffle=True), DataLoader(test_set, batch_size=256)
    model = Net()
    print(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)

    with contextlib.ExitStack() as stack:
        writer = None
        if options.log:
            from gradus.utils.tensorboard import SummaryWriter

            writer = stack.enter_context(SummaryWriter(options.log))
        for epoch in range(1, options.epochs + 1):
            losses = train_epoch(model, train_loader, optimizer, epoch)
            loss, wrong = test(model, test_loader)
            accuracy = 1 - len(wrong) / len(test_set)
            scheduler.step()
            print(f"\repoch {epoch}: training loss {sum(losses) / len(losses):.4f}, test loss {loss:.4f}, test accuracy {accuracy:.4f}")
            if writer:
                writer.add_scalars("loss", {"training": sum(losses) / len(losses), "test": loss}, epoch)
                writer.add_scalar("accuracy", accuracy, epoch)
                writer.add_images("filters", model.conv1.weight.detach().sigmoid(), epoch)
    for image, digit, read in wrong[:3]:
        print(f"\nread as {read}, is {digit}:\n{draw(image)}")
    if options.save:
        torch.save(model.state_dict(), options.save)


if __name__ == "__main__":
    main()
