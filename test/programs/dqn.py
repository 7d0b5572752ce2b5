"""Trains an agent in a corridor by deep Q-learning (Mnih et al., 2015), with a replay memory and a target network."""
import math
import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class Corridor:
    """A corridor of eight cells; the right end gives a reward of 1, the left end 0.1."""

    def reset(self):
        self.cell, self.steps = 4, 0
        return self.observe()

    def observe(self):
        return [float(i == self.cell) for i in range(8)]

    def step(self, action):
        self.cell += 1 if action == 1 else -1
        self.steps += 1
        reward = 1.0 if self.cell == 7 else 0.1 if self.cell == 0 else 0.0
        return self.observe(), reward, self.cell in (0, 7), self.steps >= 20


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 32)
        self.layer2 = nn.Linear(32, 32)
        self.layer3 = nn.Linear(32, n_actions)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        return self.layer3(x)


def main(batch_size=32, gamma=0.95, tau=0.05):
    random.seed(3)
    torch.manual_seed(3)
    device = torch.device("cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu")
    env = Corridor()
    policy_net, target_net = DQN(8, 2).to(device), DQN(8, 2).to(device)
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = optim.AdamW(policy_net.parameters(), lr=5e-3, amsgrad=True)
    memory = ReplayMemory(500)
    steps_done = 0
    for episode in range(12):
        state = torch.tensor(env.reset(), dtype=torch.float32, device=device).unsqueeze(0)
        total, loss = 0.0, None
        while True:
            threshold = 0.05 + 0.85 * math.exp(-steps_done / 60)
            steps_done += 1
            if random.random() > threshold:
                with torch.no_grad():
                    action = policy_net(state).max(1).indices.view(1, 1)
            else:
                action = torch.tensor([[random.randrange(2)]], device=device, dtype=torch.long)
            observation, reward, terminated, truncated = env.step(action.item())
            total += reward
            reward = torch.tensor([reward], device=device)
            next_state = None if terminated else torch.tensor(observation, dtype=torch.float32, device=device).unsqueeze(0)
            memory.push(state, action, next_state, reward)
            state = next_state
            if len(memory) >= batch_size:
                batch = Transition(*zip(*memory.sample(batch_size)))
                non_final_mask = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), device=device, dtype=torch.bool)
                non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
                state_batch, action_batch, reward_batch = torch.cat(batch.state), torch.cat(batch.action), torch.cat(batch.reward)
                state_action_values = policy_net(state_batch).gather(1, action_batch)
                next_state_values = torch.zeros(batch_size, device=device)
                with torch.no_grad():
                    next_state_values[non_final_mask] = target_net(non_final_next_states).max(1).values
                expected = next_state_values * gamma + reward_batch
                loss = nn.SmoothL1Loss()(state_action_values, expected.unsqueeze(1))
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
                optimizer.step()
            target_net_state_dict, policy_net_state_dict = target_net.state_dict(), policy_net.state_dict()
            for key in policy_net_state_dict:
                target_net_state_dict[key] = policy_net_state_dict[key] * tau + target_net_state_dict[key] * (1 - tau)
            target_net.load_state_dict(target_net_state_dict)
            if terminated or truncated:
                break
        print(f"episode {episode}: reward {total:.1f} loss {loss.item() if loss is not None else float('nan'):.5f}")
    with torch.no_grad():
        print([round(v, 3) for v in policy_net(torch.eye(8)).max(1)[0].tolist()])


if __name__ == "__main__":
    main()
