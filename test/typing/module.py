from typing import Optional

import gradus as torch
import gradus.nn as nn
import gradus.nn.functional as F
from gradus import Tensor


class Block(nn.Module):
    def __init__(self, width: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.scale = nn.Parameter(torch.ones(width))
        self.drop = nn.Dropout(dropout)
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])
        self.register_buffer("mask", torch.ones(width))

    def forward(self, x: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        y, _ = self.attention(self.norm(x), self.norm(x), self.norm(x), attn_mask=mask)
        x = x + self.drop(y) * self.scale
        for layer in self.layers:
            x = x + F.relu(layer(x))
        return x + self.mlp(x)


block = Block(8).to(torch.float32).eval()
count: int = sum(p.numel() for p in block.parameters() if p.requires_grad)
for name, parameter in block.named_parameters():
    text: str = name
    nn.init.xavier_uniform_(parameter.data) if parameter.dim() > 1 else nn.init.zeros_(parameter.data)
state = block.state_dict()
block.load_state_dict(state, strict=True)
nn.utils.clip_grad_norm_(block.parameters(), 1.0)
nn.LayerNorm()  # error
nn.Dropout("half")  # error
nn.ModuleList(3)  # error
block.load_state_dict(3)  # error
width: str = block.training  # error
