"""Trains a controller of a pendulum by soft actor-critic (Haarnoja et al., 2018), with two critics and a learned temperature."""
import copy
import math
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Independent, Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform


class Pendulum:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.reset()

    def reset(self):
        self.theta, self.speed, self.steps = self.rng.uniform(-math.pi, math.pi), self.rng.uniform(-1, 1), 0
        return self.observe()

    def observe(self):
        return np.array([math.cos(self.theta), math.sin(self.theta), self.speed], dtype=np.float32)

    def step(self, u):
        angle = (self.theta + math.pi) % (2 * math.pi) - math.pi
        cost = angle ** 2 + 0.1 * self.speed ** 2 + 0.001 * u ** 2
        self.speed = min(8.0, max(-8.0, self.speed + (15.0 * math.sin(self.theta) + 3.0 * u) * 0.05))
        self.theta += self.speed * 0.05
        self.steps += 1
        return self.observe(), -cost, self.steps >= 30


def mlp(inner, outer):
    return nn.Sequential(nn.Linear(inner, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, outer))


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(3, 2)

    def forward(self, state):
        mean, log_std = self.net(state).chunk(2, dim=-1)
        log_std = torch.clamp(log_std, min=-5, max=2)
        normal = Normal(mean, log_std.exp())
        x_t = normal.rsample()
        y_t = torch.tanh(x_t)
        log_prob = normal.log_prob(x_t) - torch.log(1 - y_t.pow(2) + 1e-6)
        return y_t, log_prob.sum(1, keepdim=True)

    def squashed(self, state):
        mean, log_std = self.net(state).chunk(2, dim=-1)
        return TransformedDistribution(Independent(Normal(mean, log_std.clamp(-5, 2).exp()), 1), [TanhTransform(cache_size=1)])


def main():
    random.seed(0)
    torch.manual_seed(0)
    env = Pendulum(0)
    policy = Policy()
    q1, q2 = mlp(4, 1), mlp(4, 1)
    targets = [copy.deepcopy(q).requires_grad_(False) for q in (q1, q2)]
    q_optimizer = torch.optim.Adam([*q1.parameters(), *q2.parameters()], lr=3e-3)
    p_optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    log_alpha = torch.zeros(1, requires_grad=True)
    a_optimizer = torch.optim.Adam([log_alpha], lr=1e-2)
    memory, state = [], env.reset()
    for step in range(60):
        with torch.no_grad():
            action, _ = policy(torch.from_numpy(state).unsqueeze(0))
        after, reward, done = env.step(2 * action.numpy()[0, 0])
        memory.append((state, action[0].numpy(), np.float32(reward), after, np.float32(done)))
        state = env.reset() if done else after
        if step < 16:
            continue
        s, a, r, s2, d = (torch.from_numpy(np.stack(part)) for part in zip(*random.sample(memory, 16)))
        with torch.no_grad():
            a2, log2 = policy(s2)
            least = torch.min(*(target(torch.cat([s2, a2], 1)) for target in targets)) - log_alpha.exp() * log2
            wanted = r.unsqueeze(1) + 0.98 * (1 - d.unsqueeze(1)) * least
        sa = torch.cat([s, a], 1)
        q_loss = F.mse_loss(q1(sa), wanted) + F.mse_loss(q2(sa), wanted)
        q_optimizer.zero_grad()
        q_loss.backward()
        q_optimizer.step()
        pi, log_pi = policy(s)
        sp = torch.cat([s, pi], 1)
        p_loss = (log_alpha.exp().detach() * log_pi - torch.min(q1(sp), q2(sp))).mean()
        p_optimizer.zero_grad()
        p_loss.backward()
        p_optimizer.step()
        a_loss = (-log_alpha.exp() * (log_pi.detach() - 1.0)).mean()
        a_optimizer.zero_grad()
        a_loss.backward()
        a_optimizer.step()
        with torch.no_grad():
            for target, q in zip(targets, (q1, q2)):
                for t, p in zip(target.parameters(), q.parameters()):
                    t.data.mul_(0.95).add_(0.05 * p.data)
        if step % 6 == 0:
            print(f"step {step} q {q_loss.item():.4f} policy {p_loss.item():.4f} alpha {log_alpha.exp().item():.4f}")
    squashed = policy.squashed(s)
    sample = squashed.rsample()
    print(f"squashed {sample.mean().item():.4f} {squashed.log_prob(sample).mean().item():.4f} {squashed.event_shape} {squashed.batch_shape}")


if __name__ == "__main__":
    main()
