"""Trains a convolutional network that reads handwritten digits, which are upsampled to the size of MNIST's images."""
import csv
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, 1)
        self.conv2 = nn.Conv2d(16, 32, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(4608, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = self.dropout2(x)
        return F.log_softmax(self.fc2(x), dim=1)


def load(path):
    with open(path) as file:
        rows = torch.tensor([[float(value) for value in row] for row in csv.reader(file)])
    images = rows[:, :64].view(-1, 1, 8, 8) / 16
    images = F.interpolate(images, size=(28, 28), mode="bilinear", align_corners=False)
    return TensorDataset((images - 0.3) / 0.35, rows[:, 64].long())


def train(model, device, loader, optimizer, epoch):
    model.train()
    for batch, (data, target) in enumerate(loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if batch % 2 == 0:
            print(f"epoch {epoch} batch {batch} loss {loss.item():.4f}")


def test(model, device, loader):
    model.eval()
    loss, correct = 0.0, 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data.to(device))
            loss += F.nll_loss(output, target.to(device), reduction="sum").item()
            correct += output.argmax(dim=1, keepdim=True).eq(target.view_as(output.argmax(dim=1, keepdim=True))).sum().item()
    print(f"average loss {loss / len(loader.dataset):.4f}, accuracy {correct}/{len(loader.dataset)}")


def main():
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = load(sys.argv[1])
    train_set, test_set, _ = torch.utils.data.random_split(data, [320, 128, len(data) - 448])
    model = Net().to(device)
    print(model)
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(1, 3):
        train(model, device, DataLoader(train_set, batch_size=32, shuffle=True), optimizer, epoch)
        test(model, device, DataLoader(test_set, batch_size=64))
        scheduler.step()
    print(sum(p.numel() for p in model.parameters()), "parameters;", ", ".join(model.state_dict()))


if __name__ == "__main__":
    main()
