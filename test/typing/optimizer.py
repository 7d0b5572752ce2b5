from collections.abc import Iterable
from typing import Any

import gradus as torch
from gradus import Tensor
from gradus.optim import SGD, Adam, Optimizer
from gradus.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, StepLR


class SignDescent(Optimizer):
    def __init__(self, params: Iterable[Tensor], lr: float = 0.1) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.add_(p.grad.sign(), alpha=-group["lr"])
        return None


w = torch.ones(3, requires_grad=True)
optimizers: list[Optimizer] = [SignDescent([w]), SGD([w], lr=0.1, momentum=0.9), Adam([{"params": [w], "lr": 0.1}], betas=(0.9, 0.99))]
for optimizer in optimizers:
    optimizer.zero_grad(set_to_none=True)
    (w * w).sum().backward()
    optimizer.step()
    saved: dict[str, Any] = optimizer.state_dict()
    optimizer.load_state_dict(saved)
scheduler = StepLR(optimizers[0], step_size=10, gamma=0.5)
scheduler.step()
CosineAnnealingLR(optimizers[0], T_max=10)
LambdaLR(optimizers[0], lambda epoch: 0.9 ** epoch)
SGD([w], lr="fast")  # error
Adam([w], betas=0.9)  # error
StepLR(optimizers[0])  # error
optimizers[0].stepp()  # error
