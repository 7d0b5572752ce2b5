"""Trains a policy with continuous actions by advantage actor-critic (Mnih et al., 2016), and one with discrete actions by REINFORCE. The first policy
moves a point to the origin."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Bernoulli, Categorical, MultivariateNormal, Normal


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 32), nn.ELU(), nn.Linear(32, 32), nn.ELU())
        self.mean, self.log_std, self.value = nn.Linear(32, 2), nn.Parameter(torch.zeros(2)), nn.Linear(32, 1)

    def forward(self, x):
        hidden = self.body(x)
        return Normal(torch.tanh(self.mean(hidden)), self.log_std.exp().expand(x.size(0), 2)), self.value(hidden).squeeze(-1)


def a2c():
    torch.manual_seed(0)
    model = Actor()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3, alpha=0.99, eps=1e-5)
    place = torch.rand(8, 2) * 4 - 2
    for update in range(8):
        log_probs, values, rewards, masks, entropy = [], [], [], [], 0
        for _ in range(5):
            dist, value = model(place)
            action = dist.sample()
            place = place + 0.3 * action
            reward = -place.norm(dim=1)
            done = (place.abs() > 3).any(1)
            log_probs.append(dist.log_prob(action).sum(1))
            values.append(value)
            rewards.append(reward)
            masks.append(1 - done.float())
            entropy = entropy + dist.entropy().mean()
            place = torch.where(done.unsqueeze(1), torch.rand(8, 2) * 4 - 2, place)
        with torch.no_grad():
            _, R = model(place)
        returns = []
        for step in reversed(range(5)):
            R = rewards[step] + 0.95 * R * masks[step]
            returns.insert(0, R)
        log_probs, returns, values = torch.cat(log_probs), torch.cat(returns).detach(), torch.cat(values)
        advantage = returns - values
        loss = -(log_probs * advantage.detach()).mean() + 0.5 * advantage.pow(2).mean() - 0.001 * entropy
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"a2c {update}: loss {loss.item():.4f} reward {torch.stack(rewards).mean().item():.4f}")


def reinforce():
    torch.manual_seed(1)
    random.seed(1)
    policy = nn.Sequential(nn.Linear(3, 16), nn.Dropout(p=0.1), nn.ReLU(), nn.Linear(16, 3), nn.Softmax(dim=-1))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    eps = torch.finfo(torch.float32).eps
    for episode in range(5):
        saved, rewards = [], []
        for _ in range(10):
            state = torch.tensor([random.random() for _ in range(3)]).float().unsqueeze(0)
            m = Categorical(policy(state))
            action = m.sample()
            saved.append(m.log_prob(action))
            rewards.append(1.0 if action.item() == state.argmax().item() else 0.0)
        R, returns = 0, []
        for r in rewards[::-1]:
            R = r + 0.9 * R
            returns.insert(0, R)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + eps)
        loss = torch.cat([-log_prob * R for log_prob, R in zip(saved, returns)]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"reinforce {episode}: loss {loss.item():.4f} reward {sum(rewards)}")


def evolution():
    """Runs the cross-entropy method with a full covariance matrix. Also trains Bernoulli parameters with the score-function estimator."""
    torch.manual_seed(2)
    mean, cov = torch.zeros(2), torch.eye(2)
    for step in range(4):
        dist = MultivariateNormal(mean, covariance_matrix=cov)
        samples = dist.sample((24,))
        scores = -(samples - torch.tensor([1.0, -2.0])).pow(2).sum(1)
        elite = samples[scores.topk(6).indices]
        mean, cov = elite.mean(0), torch.cov(elite.T) + 0.01 * torch.eye(2)
        print(f"evolution {step}: best {scores.max().item():.4f} entropy {dist.entropy().item():.4f} {dist.log_prob(mean).item():.4f}")
    logit = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.SGD([logit], lr=0.5)
    for step in range(4):
        switch = Bernoulli(logits=logit)
        b = switch.sample((16,))
        reward = b[:, 0] - b[:, 1] * b[:, 2]
        loss = -(switch.log_prob(b).sum(-1) * (reward - reward.mean())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"switch {step}: {[round(v, 4) for v in F.sigmoid(logit).tolist()]}")


if __name__ == "__main__":
    a2c()
    reinforce()
    evolution()
