import gradus as torch
import gradus.nn as nn
from gradus import Tensor


class Policy(nn.Module):
    def __init__(self, observations: int, actions: int) -> None:
        super().__init__()
        self.body = nn.Linear(observations, 32)
        self.head = nn.Linear(32, actions)

    def forward(self, observation: Tensor) -> Tensor:
        return torch.log_softmax(self.head(torch.tanh(self.body(observation))), dim=-1)


policy = Policy(4, 2)
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
rewards: list[float] = []
log_probs: list[Tensor] = []
for _ in range(5):
    logits = policy(torch.randn(4))
    action = int(torch.multinomial(logits.exp(), 1).item())
    log_probs.append(logits[action])
    rewards.append(1.0 if action == 0 else 0.0)
returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
loss = -(torch.stack(log_probs) * (returns - returns.mean())).sum()
optimizer.zero_grad()
loss.backward()
optimizer.step()
torch.stack(loss, 3.5)  # error
torch.multinomial(logits)  # error
Policy(4)  # error
returns.mean(dim="rows")  # error
