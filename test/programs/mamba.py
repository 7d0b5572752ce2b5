"""Trains a selective state-space model like Mamba (Gu and Dao, 2023), with a depthwise convolution over time and the scan written as a loop."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class MambaBlock(nn.Module):
    def __init__(self, d_model, d_state=8, d_conv=4, expand=2):
        super().__init__()
        self.d_inner, self.d_state = expand * d_model, d_state
        self.dt_rank = math.ceil(d_model / 16)
        self.in_proj = nn.Linear(d_model, self.d_inner * 2, bias=False)
        self.conv1d = nn.Conv1d(self.d_inner, self.d_inner, bias=True, kernel_size=d_conv, groups=self.d_inner, padding=d_conv - 1)
        self.x_proj = nn.Linear(self.d_inner, self.dt_rank + d_state * 2, bias=False)
        self.dt_proj = nn.Linear(self.dt_rank, self.d_inner, bias=True)
        A = torch.arange(1, d_state + 1, dtype=torch.float32).repeat(self.d_inner, 1)
        self.A_log = nn.Parameter(torch.log(A))
        self.D = nn.Parameter(torch.ones(self.d_inner))
        self.out_proj = nn.Linear(self.d_inner, d_model, bias=False)

    def forward(self, x):
        b, l, _ = x.shape
        x, res = self.in_proj(x).split(split_size=[self.d_inner, self.d_inner], dim=-1)
        x = self.conv1d(x.transpose(1, 2))[:, :, :l].transpose(1, 2)
        x = F.silu(x)
        delta, B, C = self.x_proj(x).split(split_size=[self.dt_rank, self.d_state, self.d_state], dim=-1)
        y = self.scan(x, F.softplus(self.dt_proj(delta)), -torch.exp(self.A_log.float()), B, C)
        return self.out_proj(y * F.silu(res))

    def scan(self, u, delta, A, B, C):
        b, l, d = u.shape
        deltaA = torch.exp(torch.einsum("bld,dn->bldn", delta, A))
        deltaB_u = torch.einsum("bld,bln,bld->bldn", delta, B, u)
        x = torch.zeros((b, d, self.d_state), device=deltaA.device)
        ys = []
        for i in range(l):
            x = deltaA[:, i] * x + deltaB_u[:, i]
            ys.append(torch.einsum("bdn,bn->bd", x, C[:, i, :]))
        return torch.stack(ys, dim=1) + u * self.D


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Mamba(nn.Module):
    def __init__(self, vocab, d_model, n_layer):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_model)
        self.layers = nn.ModuleList([nn.ModuleDict({"norm": RMSNorm(d_model), "mixer": MambaBlock(d_model)}) for _ in range(n_layer)])
        self.norm_f = RMSNorm(d_model)
        self.lm_head = nn.Linear(d_model, vocab, bias=False)
        self.lm_head.weight = self.embedding.weight
        nn.init.normal_(self.embedding.weight, std=0.02)

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = x + layer["mixer"](layer["norm"](x))
        return self.lm_head(self.norm_f(x))


TEXT = "the quick brown fox jumps over the lazy dog. pack my box with five dozen liquor jugs. "


def main():
    torch.manual_seed(42)
    letters = sorted(set(TEXT))
    data = torch.tensor([letters.index(c) for c in TEXT * 8])
    model = Mamba(len(letters), 32, 2)
    print(sum(p.numel() for p in model.parameters()), len(list(model.named_parameters())))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1)
    for step in range(8):
        starts = torch.randint(len(data) - 33, (8,))
        batch = torch.stack([data[i:i + 33] for i in starts])
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, len(letters)), batch[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")
    with torch.no_grad():
        ids = data[:16].unsqueeze(0)
        for _ in range(8):
            ids = torch.cat([ids, model(ids)[:, -1].argmax(-1, keepdim=True)], 1)
        print(repr("".join(letters[i] for i in ids[0].tolist())))


if __name__ == "__main__":
    main()
