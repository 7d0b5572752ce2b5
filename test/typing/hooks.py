from typing import Any

import gradus as torch
import gradus.nn as nn
from gradus import Tensor
from gradus.utils.hooks import RemovableHandle

shapes: dict[str, torch.Size] = {}


def remember(module: nn.Module, args: Any, output: Tensor) -> None:
    shapes[type(module).__name__] = output.shape


net = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
handles: list[RemovableHandle] = [layer.register_forward_hook(remember) for layer in net.children()]
x = torch.ones(1, 2, requires_grad=True)
hook = x.register_hook(lambda grad: grad * 2)
net(x).sum().backward()
hook.remove()
for handle in handles:
    handle.remove()
net[0].register_forward_hook()  # error
handles[0].delete()  # error
net.children(3)  # error
x.register_hook()  # error
