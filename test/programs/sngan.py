"""Trains a GAN with spectral normalization (Miyato et al., 2018) and the hinge loss, for points on a circle and for small images."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import spectral_norm
from torch.nn.utils import parametrizations


class ResBlock(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.conv1 = spectral_norm(nn.Conv2d(inner, outer, 3, padding=1))
        self.conv2 = spectral_norm(nn.Conv2d(outer, outer, 3, padding=1))
        self.bypass = spectral_norm(nn.Conv2d(inner, outer, 1))

    def forward(self, x):
        h = self.conv2(F.relu(self.conv1(F.relu(x))))
        return F.avg_pool2d(h + self.bypass(x), 2)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(ResBlock(1, 8), ResBlock(8, 16))
        self.fc = spectral_norm(nn.Linear(16, 1))

    def forward(self, x):
        return self.fc(F.relu(self.blocks(x)).sum((2, 3)))


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 16 * 4)
        self.conv1 = nn.Conv2d(16, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, z):
        x = self.fc(z).view(-1, 16, 2, 2)
        x = self.conv1(F.interpolate(x, scale_factor=2))
        x = F.relu(self.bn(x))
        return torch.tanh(self.conv2(F.interpolate(x, scale_factor=2, mode="nearest")))


def images():
    torch.manual_seed(2)
    generator, critic = Generator(), Critic()
    g_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.0, 0.9))
    c_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.0, 0.9))
    for step in range(4):
        for _ in range(2):
            real = torch.where(torch.rand(8, 1, 8, 8) < 0.3, 1.0, -1.0)
            fake = generator(torch.randn(8, 8)).detach()
            loss = F.relu(1 - critic(real)).mean() + F.relu(1 + critic(fake)).mean()
            c_optimizer.zero_grad()
            loss.backward()
            c_optimizer.step()
        g_loss = -critic(generator(torch.randn(8, 8))).mean()
        g_optimizer.zero_grad()
        g_loss.backward()
        g_optimizer.step()
        print(f"images {step}: critic {loss.item():.4f}, generator {g_loss.item():.4f}")
    print(*list(critic.state_dict())[:8])


def points():
    """Trains a GAN for points on a circle. The gradient penalty needs second derivatives."""
    torch.manual_seed(4)
    generator = nn.Sequential(nn.Linear(4, 32), nn.LeakyReLU(0.1), nn.Linear(32, 2))
    critic = nn.Sequential(parametrizations.spectral_norm(nn.Linear(2, 32)), nn.SiLU(), parametrizations.spectral_norm(nn.Linear(32, 1)))
    optimizers = [torch.optim.RMSprop(net.parameters(), lr=1e-3) for net in (generator, critic)]
    for step in range(6):
        angle = torch.rand(32) * 2 * torch.pi
        real, fake = torch.stack([angle.cos(), angle.sin()], 1), generator(torch.randn(32, 4))
        mixed = torch.lerp(real, fake.detach(), torch.rand(32, 1)).requires_grad_()
        slope, = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        penalty = (slope.norm(2, dim=1) - 1).square().mean()
        c_loss = critic(fake.detach()).mean() - critic(real).mean() + 10 * penalty
        optimizers[1].zero_grad()
        c_loss.backward()
        optimizers[1].step()
        g_loss = -critic(fake).mean()
        optimizers[0].zero_grad()
        g_loss.backward()
        optimizers[0].step()
        print(f"points {step}: critic {c_loss.item():.4f}, generator {g_loss.item():.4f}, penalty {penalty.item():.4f}")


if __name__ == "__main__":
    images()
    points()
