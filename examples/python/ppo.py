"""Teaches a cart to balance a pole by proximal policy optimization (Schulman et al., 2017). With `import torch` instead of gradus it prints the same
numbers.

    python examples/python/ppo.py [--updates 60] [--seed 0]

After every ten updates the program prints the mean number of steps of the 16 most recently ended episodes. At the end it prints a bar chart with this
mean after each update. An episode has at most 500 steps.
"""
import argparse
import sys

import gradus as torch
from gradus import nn
from gradus.distributions import Categorical

MOST_STEPS = 500
CARTS, STEPS, EPOCHS, BATCH = 16, 128, 4, 256
DISCOUNT, SMOOTHING, CLIP = 0.99, 0.95, 0.2


class Carts:
    """A batch of cart-pole systems (Barto, Sutton and Anderson, 1983), integrated by Euler's method. A state is a row with the position and velocity
    of the cart and the angle and angular velocity of the pole."""

    def __init__(self, count):
        self.states = self.fresh(count)
        self.steps = torch.zeros(count)

    @staticmethod
    def fresh(count):
        return torch.rand(count, 4) * 0.1 - 0.05

    def step(self, actions):
        """Pushes each cart to the left (0) or right (1) for 0.02 s. Returns a tensor with a 1 for each cart whose episode ended, and a list of the
        numbers of steps in these episodes. These carts start a new episode."""
        x, speed, angle, turn = self.states.unbind(1)
        force = 20.0 * actions - 10
        push = (force + 0.05 * turn ** 2 * angle.sin()) / 1.1
        turned = (9.8 * angle.sin() - angle.cos() * push) / (0.5 * (4 / 3 - 0.1 * angle.cos() ** 2 / 1.1))
        moved = push - 0.05 * turned * angle.cos() / 1.1
        self.states = self.states + 0.02 * torch.stack([speed, moved, turn, turned], 1)
        self.steps += 1
        ended = (self.states[:, 0].abs() > 2.4) | (self.states[:, 2].abs() > 0.2095) | (self.steps >= MOST_STEPS)
        lengths = self.steps[ended].tolist()
        self.states = torch.where(ended.unsqueeze(1), self.fresh(len(ended)), self.states)
        self.steps[ended] = 0
        return ended.float(), lengths


class Agent(nn.Module):
    """An agent: a policy network (actor), which chooses actions, and a value network (critic), which estimates returns."""

    def __init__(self):
        super().__init__()
        self.actor, self.critic = self.network(2, 0.01), self.network(1, 1.0)

    @staticmethod
    def network(outputs, gain):
        layers = [nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)]
        for layer, scale in zip(layers[::2], (2 ** 0.5, 2 ** 0.5, gain)):
            nn.init.orthogonal_(layer.weight, scale)
            nn.init.zeros_(layer.bias)
        return nn.Sequential(*layers)

    def forward(self, states):
        return Categorical(logits=self.actor(states)), self.critic(states).squeeze(-1)


@torch.no_grad()
def play(agent, carts):
    """Plays STEPS steps with all carts. Returns a list of states, actions, log-probabilities of the actions, advantages and returns, each with one
    row for each step of each cart. Also returns the numbers of steps in the episodes that ended."""
    seen, lengths = [], []
    for _ in range(STEPS):
        states = carts.states
        policy, values = agent(states)
        actions = policy.sample()
        ended, finished = carts.step(actions)
        lengths += finished
        seen.append((states, actions, policy.log_prob(actions), values, ended))
    states, actions, log_probs, values, ended = (torch.stack(part) for part in zip(*seen))
    after = torch.cat([values[1:], agent(carts.states)[1].unsqueeze(0)])
    surprise = 1 + DISCOUNT * after * (1 - ended) - values
    advantages = torch.zeros_like(values)
    running = torch.zeros(CARTS)
    for t in reversed(range(STEPS)):  # generalized advantage estimation (Schulman et al., 2015)
        running = surprise[t] + DISCOUNT * SMOOTHING * (1 - ended[t]) * running
        advantages[t] = running
    return [part.flatten(0, 1) for part in (states, actions, log_probs, advantages, advantages + values)], lengths


def learn(agent, optimizer, data):
    """Makes EPOCHS passes over the steps that were played, in batches, and returns the last loss."""
    for _ in range(EPOCHS):
        for rows in torch.randperm(CARTS * STEPS).split(BATCH):
            states, actions, old, advantages, returns = (part[rows] for part in data)
            policy, values = agent(states)
            ratio = (policy.log_prob(actions) - old).exp()
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
            gained = torch.min(ratio * advantages, ratio.clamp(1 - CLIP, 1 + CLIP) * advantages).mean()
            loss = -gained + 0.5 * nn.functional.mse_loss(values, returns) - 0.01 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    return loss.item()


def curve(values, height=10):
    """Returns the lines of a bar chart of `height` rows with a column for each value. The last line labels the first and the last column."""
    top = max(values)
    rows = [f"{top * (row + 1) / height:5.0f} |" + "".join("#" if value > top * row / height else " " for value in values) for row in reversed(range(height))]
    return rows + ["      +" + "-" * len(values), f"       1{'updates':^{max(0, len(values) - 4)}}{len(values)}"]


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Teaches a cart to balance a pole.")
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    torch.manual_seed(options.seed)
    agent, carts = Agent(), Carts(CARTS)
    optimizer = torch.optim.Adam(agent.parameters(), lr=2e-3, eps=1e-5)
    lengths, means = [20.0], []
    for update in range(1, options.updates + 1):
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * (1 - (update - 1) / options.updates)
        data, ended = play(agent, carts)
        lengths = (lengths + ended)[-CARTS:]
        loss = learn(agent, optimizer, data)
        means.append(sum(lengths) / len(lengths))
        filled = 30 * update // options.updates
        print(f"\r[{'#' * filled}{'.' * (30 - filled)}] update {update}/{options.updates}  steps {means[-1]:5.1f}", end="", file=sys.stderr, flush=True)
        if update % 10 == 0 or update == options.updates:
            print(f"\rupdate {update:3d}: the pole stood {means[-1]:5.1f} steps, loss {loss:.3f}")
    print("\n".join(curve(means)))
    print(f"last episodes: {means[-1]:.1f} steps")


if __name__ == "__main__":
    main()
