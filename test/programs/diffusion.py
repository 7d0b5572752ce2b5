"""Trains a diffusion model (Ho et al., 2020) of points on two half-moons."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class SinusoidalEmbedding(nn.Module):
    def __init__(self, size, scale=1.0):
        super().__init__()
        self.size, self.scale = size, scale

    def forward(self, x):
        x = x * self.scale
        half = self.size // 2
        emb = torch.exp(-math.log(10000.0) / (half - 1) * torch.arange(half))
        emb = x.unsqueeze(-1) * emb.unsqueeze(0)
        return torch.cat((torch.sin(emb), torch.cos(emb)), dim=-1)


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.ff = nn.Linear(size, size)
        self.act = nn.GELU()

    def forward(self, x):
        return x + self.act(self.ff(x))


class Denoiser(nn.Module):
    def __init__(self, hidden=64, layers=3, emb=32):
        super().__init__()
        self.time = SinusoidalEmbedding(emb)
        self.input1, self.input2 = SinusoidalEmbedding(emb, 25.0), SinusoidalEmbedding(emb, 25.0)
        self.joint = nn.Sequential(nn.Linear(3 * emb, hidden), nn.GELU(), *[Block(hidden) for _ in range(layers)], nn.Linear(hidden, 2))

    def forward(self, x, t):
        return self.joint(torch.cat((self.input1(x[:, 0]), self.input2(x[:, 1]), self.time(t)), dim=-1))


class NoiseScheduler:
    def __init__(self, steps=50):
        self.steps = steps
        self.betas = torch.linspace(0.0001, 0.02, steps, dtype=torch.float32)
        self.alphas = 1.0 - self.betas
        self.cumprod = torch.cumprod(self.alphas, axis=0)
        self.cumprod_prev = F.pad(self.cumprod[:-1], (1, 0), value=1.)

    def add_noise(self, x, noise, t):
        return self.cumprod[t].sqrt().reshape(-1, 1) * x + (1 - self.cumprod[t]).sqrt().reshape(-1, 1) * noise

    def step(self, output, t, sample):
        original = (1 / self.cumprod[t]).sqrt() * sample - (1 / self.cumprod[t] - 1).sqrt() * output
        mean = (self.betas[t] * self.cumprod_prev[t].sqrt() / (1 - self.cumprod[t]) * original
                + (1 - self.cumprod_prev[t]) * self.alphas[t].sqrt() / (1 - self.cumprod[t]) * sample)
        if t == 0:
            return mean
        variance = (self.betas[t] * (1. - self.cumprod_prev[t]) / (1. - self.cumprod[t])).clip(1e-20)
        return mean + variance ** 0.5 * torch.randn_like(output)


def moons(n):
    angle = torch.rand(n) * math.pi
    upper = torch.rand(n) < 0.5
    x = torch.where(upper, angle.cos(), 1 - angle.cos())
    y = torch.where(upper, angle.sin(), 0.5 - angle.sin())
    return torch.stack([x, y], 1) + 0.05 * torch.randn(n, 2)


def main():
    torch.manual_seed(0)
    scheduler, model = NoiseScheduler(), Denoiser()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    warmup = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=40)
    averaged = torch.optim.swa_utils.AveragedModel(model, avg_fn=lambda old, new, n: 0.9 * old + 0.1 * new)
    for step in range(40):
        batch = moons(64)
        noise = torch.randn(batch.shape)
        t = torch.randint(0, scheduler.steps, (batch.shape[0],)).long()
        pred = model(scheduler.add_noise(batch, noise, t), t)
        loss = F.mse_loss(pred, noise)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        warmup.step()
        optimizer.zero_grad()
        averaged.update_parameters(model)
        if step % 8 == 0:
            print(f"step {step} loss {loss.detach().item():.4f} lr {warmup.get_last_lr()[0]:.5f}")
    model.eval()
    sample = torch.randn(8, 2)
    for t in reversed(range(scheduler.steps)):
        with torch.no_grad():
            sample = scheduler.step(averaged(sample, torch.full((8,), t, dtype=torch.long)), t, sample)
    print([[round(v, 2) for v in row] for row in sample.tolist()])


if __name__ == "__main__":
    main()
