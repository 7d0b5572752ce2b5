"""Trains normalizing flows, namely RealNVP (Dinh et al., 2016) of points on a spiral, and learned transforms of torch.distributions."""
import torch
import torch.nn as nn
import torch.distributions as D
from torch.distributions import constraints, transforms


class Coupling(nn.Module):
    def __init__(self, mask, hidden=32):
        super().__init__()
        self.register_buffer("mask", torch.tensor(mask))
        self.scale = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 2), nn.Tanh())
        self.shift = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 2))

    def forward(self, x):
        kept = x * self.mask
        s, t = self.scale(kept) * (1 - self.mask), self.shift(kept) * (1 - self.mask)
        return kept + (1 - self.mask) * (x * s.exp() + t), s.sum(-1)

    def inverse(self, y):
        kept = y * self.mask
        s, t = self.scale(kept) * (1 - self.mask), self.shift(kept) * (1 - self.mask)
        return kept + (1 - self.mask) * (y - t) * (-s).exp()


class RealNVP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(mask) for mask in ([1.0, 0.0], [0.0, 1.0]) * 2)
        self.register_buffer("zero", torch.zeros(2))

    @property
    def base(self):
        return D.MultivariateNormal(self.zero, torch.eye(2))

    def log_prob(self, x):
        total = 0
        for layer in self.layers:
            x, log_det = layer(x)
            total = total + log_det
        return self.base.log_prob(x) + total

    def sample(self, n):
        z = self.base.sample((n,))
        for layer in reversed(self.layers):
            z = layer.inverse(z)
        return z


def spiral(n):
    angle = torch.rand(n).sqrt() * 9
    return torch.stack([angle * angle.cos(), angle * angle.sin()], 1) / 4 + 0.1 * torch.randn(n, 2)


class PlanarTransform(transforms.Transform):
    bijective = True
    domain = constraints.real_vector
    codomain = constraints.real_vector

    def __init__(self, u, w, b):
        super().__init__(cache_size=1)
        self.u, self.w, self.b = u, w, b

    def _call(self, x):
        return x + self.u * torch.tanh(x @ self.w + self.b).unsqueeze(-1)

    def _inverse(self, y):
        raise KeyError("the inverse is known for cached values alone")

    def log_abs_det_jacobian(self, x, y):
        psi = (1 - torch.tanh(x @ self.w + self.b) ** 2).unsqueeze(-1) * self.w
        return torch.log(torch.abs(1 + psi @ self.u) + 1e-6)


def main():
    torch.manual_seed(0)
    flow = RealNVP()
    optimizer = torch.optim.Adam(flow.parameters(), lr=5e-3)
    for step in range(20):
        loss = -flow.log_prob(spiral(64)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 0:
            print(f"realnvp {step}: {loss.item():.4f}")
    with torch.no_grad():
        print([[round(v, 3) for v in row] for row in flow.sample(4).tolist()])

    torch.manual_seed(1)
    loc, log_scale = torch.zeros(2, requires_grad=True), torch.zeros(2, requires_grad=True)
    u, w, b = (torch.randn(size).mul_(0.1).requires_grad_() for size in (2, 2, 1))
    optimizer = torch.optim.Adam([loc, log_scale, u, w, b], lr=0.05)
    target = D.MixtureSameFamily(D.Categorical(torch.tensor([0.3, 0.7])), D.Independent(D.Normal(torch.tensor([[-2.0, 0.0], [2.0, 1.0]]), torch.ones(2, 2)), 1))
    for step in range(10):
        base = D.Independent(D.Normal(loc, log_scale.exp()), 1)
        q = D.TransformedDistribution(base, [PlanarTransform(u, w, b), transforms.AffineTransform(0.0, torch.tensor([1.5, 0.5]), event_dim=1, cache_size=1)])
        z = q.rsample((32,))
        elbo = (target.log_prob(z) - q.log_prob(z)).mean()
        optimizer.zero_grad()
        (-elbo).backward()
        optimizer.step()
        if step % 3 == 0:
            print(f"planar {step}: elbo {elbo.item():.4f}")

    torch.manual_seed(2)
    concentration = torch.tensor([1.5, 0.7], requires_grad=True)
    rate = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([concentration, rate], lr=0.02)
    for step in range(5):
        gamma, beta = D.Gamma(concentration, rate), D.Beta(concentration, rate)
        loss = (gamma.rsample((8,)) - 2).pow(2).mean() + (beta.rsample((8,)) - 0.3).pow(2).mean() + D.kl_divergence(gamma, D.Gamma(2.0, 1.0)).sum()
        loss = loss + (D.Dirichlet(concentration).rsample((4,)) * torch.tensor([1.0, -1.0])).sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"gamma {step}: {loss.item():.4f} {[round(v, 4) for v in concentration.tolist()]}")


if __name__ == "__main__":
    main()
