"""Trains a siamese network. One convolutional network embeds two digits and predicts whether they are equal."""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, path, n, generator):
        with open(path) as file:
            rows = torch.tensor([[int(v) for v in line.split(",")] for line in file])
        self.images, self.labels = rows[:, :64].float().view(-1, 1, 8, 8) / 16, rows[:, 64]
        self.groups = [torch.nonzero(self.labels == digit).squeeze(1) for digit in range(10)]
        self.first = torch.randint(len(rows), (n,), generator=generator)
        self.same = torch.rand(n, generator=generator) < 0.5
        self.other = torch.randint(1 << 20, (n, 2), generator=generator)

    def __len__(self):
        return len(self.first)

    def __getitem__(self, i):
        digit = int(self.labels[self.first[i]])
        other = digit if self.same[i] else (digit + 1 + int(self.other[i, 1]) % 9) % 10
        group = self.groups[other]
        return self.images[self.first[i]], self.images[group[int(self.other[i, 0]) % len(group)]], self.same[i].float()


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                                      nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1)))
        self.fc = nn.Sequential(nn.Linear(64, 32), nn.ReLU(inplace=True), nn.Linear(32, 1))
        self.fc.apply(self.init_weights)

    def init_weights(self, m):
        if isinstance(m, nn.Linear):
            torch.nn.init.xavier_uniform_(m.weight)
            m.bias.data.fill_(0.01)

    def forward_once(self, x):
        output = self.features(x)
        return output.view(output.size()[0], -1)

    def forward(self, input1, input2):
        output = torch.cat((self.forward_once(input1), self.forward_once(input2)), 1)
        return torch.sigmoid(self.fc(output))


def contrastive(a, b, same, margin=1.0):
    distance = F.pairwise_distance(a, b)
    return (same * distance.pow(2) + (1 - same) * F.relu(margin - distance).pow(2)).mean()


def main():
    torch.manual_seed(5)
    loader = DataLoader(Pairs(sys.argv[1], 192, torch.Generator().manual_seed(11)), batch_size=32, shuffle=True)
    model = Siamese()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=0.5)
    criterion = nn.BCELoss()
    for epoch in range(2):
        for batch, (left, right, same) in enumerate(loader):
            optimizer.zero_grad()
            loss = criterion(model(left, right).squeeze(), same)
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} batch {batch} loss {loss.item():.4f}")
    embedding = nn.Sequential(model.features, nn.Flatten())
    optimizer = torch.optim.SGD(embedding.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    triplet = nn.TripletMarginLoss(margin=0.5)
    for batch, (left, right, same) in enumerate(loader):
        a, b = embedding(left), embedding(right)
        loss = contrastive(a, b, same) + triplet(a, b, b.roll(1, 0)) + F.cosine_embedding_loss(a, b, same * 2 - 1, margin=0.2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"contrastive {batch} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
