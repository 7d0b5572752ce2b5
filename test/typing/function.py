from typing import Any

import gradus as torch
from gradus import Tensor
from gradus.autograd import Function


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        (x,) = ctx.saved_tensors
        (grad,) = grad_outputs
        return 3 * x * x * grad


x = torch.ones(2, dtype=torch.float64, requires_grad=True)
y = Cube.apply(x)
y.sum().backward()
(first,) = torch.autograd.grad(Cube.apply(x).sum(), [x], create_graph=True)
torch.autograd.gradcheck(Cube.apply, (x,), eps=1e-6)
with torch.enable_grad(), torch.autograd.set_grad_enabled(True):
    pass
torch.autograd.grad()  # error
torch.autograd.backward()  # error
x.requires_grad_("yes")  # error
torch.ones(2, requires_grad="yes")  # error
