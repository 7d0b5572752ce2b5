"""Trains a variational autoencoder of handwritten digits (Kingma and Welling, 2013)."""
import sys

import torch
from torch import nn, optim
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 40)
        self.fc21 = nn.Linear(40, 5)
        self.fc22 = nn.Linear(40, 5)
        self.fc3 = nn.Linear(5, 40)
        self.fc4 = nn.Linear(40, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


class ConvVAE(nn.Module):
    """The autoencoder with convolutions in the encoder and transposed convolutions in the decoder."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.LeakyReLU(0.2), nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.LeakyReLU(0.2),
                                     nn.Flatten())
        self.mu, self.logvar = nn.Linear(64, 4), nn.Linear(64, 4)
        self.decoder = nn.Sequential(nn.Linear(4, 64), nn.Unflatten(1, (16, 2, 2)), nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.ReLU(True),
                                     nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Sigmoid())

    def forward(self, x):
        hidden = self.encoder(x)
        mu, logvar = self.mu(hidden), self.logvar(hidden)
        z = torch.distributions.Normal(mu, (0.5 * logvar).exp()).rsample()
        return self.decoder(z), mu, logvar


def main():
    torch.manual_seed(3)
    with open(sys.argv[1]) as file:
        rows = torch.tensor([[int(v) for v in line.split(",")] for line in file])
    images = rows[:512, :64].float().div_(16)
    model = VAE()
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(3):
        total = 0
        for batch in images.split(64):
            optimizer.zero_grad()
            loss = loss_function(*(lambda out: (out[0], batch, *out[1:]))(model(batch)))
            loss.backward()
            total += loss.item()
            optimizer.step()
        print(f"epoch {epoch + 1}: average loss {total / len(images):.3f}")
    with torch.no_grad():
        sample = model.decode(torch.randn(4, 5))
        print([round(v, 3) for v in sample.mean(1).tolist()])

    model = ConvVAE()
    optimizer = optim.RMSprop(model.parameters(), lr=1e-3)
    for epoch in range(2):
        total = 0
        for batch in images.view(-1, 1, 8, 8).split(64):
            out, mu, logvar = model(batch)
            posterior, prior = torch.distributions.Normal(mu, (0.5 * logvar).exp()), torch.distributions.Normal(0, 1)
            loss = F.mse_loss(out, batch, reduction="sum") + torch.distributions.kl_divergence(posterior, prior).sum()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"convolutional, epoch {epoch + 1}: average loss {total / len(images):.3f}")


if __name__ == "__main__":
    main()
